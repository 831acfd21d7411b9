"""Packages of servers that a setting names, which requirements.txt does not bring."""

from importlib.util import find_spec

from crag_core.base.errors import BadRecord


def check_installed(setting: str, module: str, install: str) -> None:
    """Raises `BadRecord` where `module` is not there; it names the setting, and what pip is told to install."""
    try:
        is_there = find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it
        is_there = False
    if not is_there:
        raise BadRecord(
            f"{setting}: expected the package {module.partition('.')[0]}, which this setting needs; found none.",
            hint=f"Run: pip install {install}",
        )

"""Which packages of this environment a list of requirements brings, those that they require included."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def read_requirements(file: Path) -> list[Requirement]:
    lines = (line.partition("#")[0].strip() for line in file.read_text("utf-8").splitlines())
    return [Requirement(line) for line in lines if line]


def brought_by(requirements: Iterable[Requirement]) -> set[str]:
    """By their normalised names."""
    todo = list(requirements)
    seen: set[tuple[str, str]] = set()
    while todo:
        one = todo.pop()
        name = canonicalize_name(one.name)
        new = {(name, extra) for extra in ("", *one.extras)} - seen
        try:
            inner = [Requirement(text) for text in requires(name) or ()] if new else []
        except PackageNotFoundError:  # an extra of another system
            continue
        seen |= new
        for made in inner:
            if made.marker is None or any(made.marker.evaluate({"extra": extra}) for _, extra in new):
                made.marker = None
                todo.append(made)
    return {name for name, _ in seen}

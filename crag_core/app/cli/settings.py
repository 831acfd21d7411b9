"""The commands that print settings: `settings` those that hold or the reference page of all, `policy` a policy file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import Field, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from crag_core.app.config import Config, load
from crag_core.decision.policy_file import present_form
from crag_core.evaluators.policies import read_policy

OTHERS = {
    "OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER": "spans, as "
    "OpenTelemetry's SDK documents them; headers may be secret",
    "HF_HUB_OFFLINE": "1: no model is fetched from the hub, for `CRAG_EMBEDDING` or an evaluator by name; the "
    "image of the Dockerfile sets it",
}
_HEAD = """# Settings

Made by `python -m crag_core settings --markdown > docs/settings.md` from `crag_core/app/config.py`;
`tests/deployment/test_settings_page.py` fails when it is stale.

Environment variables, or lines `NAME=value` in a file `.env` in the folder of the application; the
environment wins. They are read at the start. An empty value counts as none, a wrong one is refused by name,
and so is a name that is nearly one of these.
`python -m crag_core settings` prints those that hold now, without what is secret.

**secret**: is, or may hold, a key or a password. It is never shown or logged; keep it out of repositories.
**list**: several with commas between."""
_OTHERS_HEAD = """
## Of others

From the environment only, not from `.env`.

| variable | meaning |
|---|---|"""


def add_commands(commands: Any) -> None:
    command = commands.add_parser("settings", help="print the settings that hold now, without what is secret")
    command.add_argument("--markdown", action="store_true", help="print docs/settings.md, the reference of all of them")
    command.set_defaults(command=settings)
    found = commands.add_parser("policy", help="check a policy file, and print it as a list of steps an action")
    found.add_argument("file", metavar="FILE.toml", type=Path)
    found.set_defaults(command=policy)


def settings(options: argparse.Namespace) -> int:
    print(page() if options.markdown else "\n".join(now(load())))
    return 0


def policy(options: argparse.Namespace) -> int:
    read_policy(options.file)
    print(present_form(options.file.read_text("utf-8")), end="")
    return 0


def now(config: Config) -> Iterator[str]:
    """A line for each, with what is secret left out."""
    for title, group in _groups():
        yield f"# {title}"
        for field in group:
            value = getattr(config, field.name)
            is_default = value == field.default
            shown = value if is_default or field.repr else "(set, not shown)"
            yield f"{field.metadata['variable']}={shown}" + ("  # default" if is_default else "")
        yield ""


def page() -> str:
    """docs/settings.md."""
    lines = [_HEAD]
    for title, group in _groups():
        lines += ["", f"## {title}", "", "| variable | default | example | | meaning |", "|---|---|---|---|---|"]
        lines += map(_row, group)
    lines += [_OTHERS_HEAD]
    lines += [
        f"| {', '.join(f'`{one}`' for one in names.split(', '))} | {meaning} |" for names, meaning in OTHERS.items()
    ]
    return "\n".join(lines)


def _groups() -> Iterator[tuple[str, list[Field[Any]]]]:
    for title, group in groupby(fields(Config), lambda field: field.metadata["group"]):
        yield title, list(group)


def _row(field: Field[Any]) -> str:
    about = field.metadata
    marks = [name for name, is_so in (("secret", not field.repr), ("list", about["is_list"])) if is_so]
    default = f"`{field.default}`" if str(field.default) else "(empty)"
    return f"| `{about['variable']}` | {default} | `{about['example']}` | {', '.join(marks)} | {about['meaning']} |"

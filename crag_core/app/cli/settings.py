"""The commands that print settings: `settings` those that hold, `policy` a policy file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from crag_core.app.config import Config, load
from crag_core.base.errors import WrongUse
from crag_core.decision.policy_file import present_form
from crag_core.evaluators.policies import known_card, policy_text, read_policy


def add_commands(commands: Any) -> None:
    command = commands.add_parser("settings", help="print the settings that hold now, without what is secret")
    command.set_defaults(command=settings)
    found = commands.add_parser("policy", help="check a policy file, and print it as a list of steps an action")
    found.add_argument("file", metavar="FILE.toml", type=Path)
    found.set_defaults(command=policy)


def settings(options: argparse.Namespace) -> int:
    print("\n".join(now(load())))
    return 0


def policy(options: argparse.Namespace) -> int:
    if not options.file.exists():
        raise WrongUse(f"There is no file {options.file}.", hint="Name a policy file, such as mine.toml.")
    known_card(read_policy(options.file).evaluator)
    print(present_form(policy_text(options.file)), end="")
    return 0


def now(config: Config) -> Iterator[str]:
    for field in fields(config):
        value = getattr(config, field.name)
        is_default = value == field.default
        shown = value if is_default or field.repr else "(set, not shown)"
        yield f"{field.metadata['variable']}={shown}" + ("  # default" if is_default else "")

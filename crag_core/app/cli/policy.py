"""The command `policy`: checks a policy file and prints it in the present form."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from crag_core.decision.policy_file import present_form
from crag_core.evaluators.policies import read_policy


def add_commands(commands: Any) -> None:
    found = commands.add_parser("policy", help="check a policy file, and print it as a list of steps an action")
    found.add_argument("file", metavar="FILE.toml", type=Path)
    found.set_defaults(command=policy)


def policy(options: argparse.Namespace) -> int:
    read_policy(options.file)
    print(present_form(options.file.read_text("utf-8")), end="")
    return 0

"""The command `run`: starts the application, as `python -m ui` does."""

from __future__ import annotations

import argparse
import runpy
import sys
from typing import Any

from crag_core.base.data_files import APPLICATION


def add_commands(commands: Any) -> None:
    command = commands.add_parser(
        "run", help="start the application; its options are Streamlit's, such as --server.port 8600",
        prefix_chars="\0", add_help=False,  # so that every option is handed on
    )  # fmt: skip
    command.add_argument("options", nargs=argparse.REMAINDER)
    command.set_defaults(command=start)


def start(options: argparse.Namespace) -> int:
    """Returns when the application has ended."""
    sys.argv[1:] = options.options
    runpy.run_path(str(APPLICATION / "ui" / "__main__.py"), run_name="__main__")
    return 0

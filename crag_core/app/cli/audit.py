"""The command `audit`: the lines of the audit log."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from crag_core.app.workbench import Workbench
from crag_core.base.errors import WrongUse


def add_commands(commands: Any) -> None:
    lines = commands.add_parser("audit", help="print the audit log, one JSON object a line, oldest first")
    lines.add_argument("--delete", action="store_true", help="forget what was printed, once all of it is")
    lines.set_defaults(command=audit)


def audit(options: argparse.Namespace) -> int:
    log = Workbench().audit
    if log is None:
        raise WrongUse("There is no audit log: CRAG_AUDIT is off.", hint="Set CRAG_AUDIT=on.")
    last = 0
    for number, line in log.lines():
        print(line)
        last = number
    sys.stdout.flush()
    if options.delete and last:
        log.forget(last)
    return 0

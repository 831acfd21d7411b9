"""The command line: `python -m crag_core COMMAND …`, or `crag-explorer COMMAND …` where it is installed.

Parses options and prints; the commands are in `app/cli`.
"""

from __future__ import annotations

import signal
import sys

# Until the imports below are done, Ctrl-C would show where in them it came.
if __name__ == "__main__" or sys.argv[0].endswith("crag-explorer"):
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import io
import os
from typing import NoReturn

from crag_core.app.cli import (
    ask,
    audit,
    backup,
    calibrate,
    compare,
    documents,
    import_log,
    report,
    settings,
    start,
    tune,
)
from crag_core.base.concurrency import shutdown
from crag_core.base.errors import CragError, ModelMissing, WrongUse
from crag_core.pipeline.run import VERSION
from crag_core.service import command as service

FAILED, WRONG, STOPPED, UNHEARD = 1, 2, 130, 141
MODEL_COMMANDS = {"run", "serve", "ingest", "reindex", "ask", "evaluate", "tune", "calibrate", "compare"}
"""They may load models."""
NEEDED = 3 * 10**9
"""Bytes of address space that they take for a few documents: with 2 GB some end in a library, without a word."""
SERVING = ("fastapi", "starlette", "uvicorn")
"""Packages of the extra `serve`; those of the others are in the extra `app`."""
EXIT_CODES = (
    "exit code: 0 done; 1 something was refused or failed; 2 wrong use: an option, a value or a name (of a file, "
    "policy, preset, model, …) that does not exist, and nothing was started; 3 evaluate and tune: a limit is not kept; "
    "130 stopped by Ctrl-C; 141 the reader of the output closed it"
)


def console() -> NoReturn:
    """The script `crag-explorer`, which without arguments starts the application."""
    sys.argv[1:] = sys.argv[1:] or ["run"]
    shutdown.run(run)


def run() -> int:
    """`main` on a console or in a pipe, which may be closed at any time, be full, or write less than every letter."""
    sys.stdin, sys.stdout, sys.stderr = (
        stream or open(os.devnull, mode)  # noqa: SIM115  closed by whoever started this
        for stream, mode in ((sys.stdin, "r"), (sys.stdout, "w"), (sys.stderr, "w"))
    )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else FAILED
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        code = UNHEARD
    except OSError as error:  # of the output: other faults of the disk are reported where they happen
        print(f"error: the output cannot be written ({error.strerror or error}).", file=sys.stderr)
        code = FAILED
    # What is left in the buffers would be written once more at the end, and complained of.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2) if code == UNHEARD else (1,):
        os.dup2(nowhere, number)
    return code


def main(arguments: list[str] | None = None) -> int:
    """The exit code, as `EXIT_CODES` tells; wrong use of options raises `SystemExit` with it."""
    try:
        options = _parser().parse_args(arguments)
        if options.chosen in MODEL_COMMANDS or vars(options).get("stages"):
            _check_memory()
        return int(options.command(options))
    except CragError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG if isinstance(error, WrongUse | ModelMissing) else FAILED
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] in ("crag_core", "ui"):
            raise
        message = f"error: Expected the package {error.name}, found none."
        extra = "serve" if error.name.partition(".")[0] in SERVING else "app"
        print(message, f'Run: pip install "crag-explorer[{extra}]"', file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return STOPPED


def _check_memory() -> None:
    """Raises `CragError` below `NEEDED`: libraries end there with faults of every kind, or blame the network."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < NEEDED:
        raise CragError(
            f"Expected {NEEDED / 1e9:g} GB of memory (address space), found a limit of {limit / 1e9:.1f} GB.",
            hint="Raise it, with ulimit -v or prlimit --as, or where the service manager sets it.",
        )


def _parser() -> argparse.ArgumentParser:
    program = "crag-explorer" if sys.argv[0].endswith("crag-explorer") else "python -m crag_core"
    parser = argparse.ArgumentParser(
        prog=program, description="Corrective RAG, from the command line.", epilog=EXIT_CODES
    )
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="chosen")
    for module in (
        start, service, documents, ask, report, tune, calibrate, compare, import_log, audit, backup,
        settings,
    ):  # fmt: skip
        module.add_commands(commands)
    return parser


if __name__ == "__main__":
    shutdown.run(run)

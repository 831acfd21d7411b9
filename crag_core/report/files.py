"""A recorded run from a file or a pipe, and its report into one."""

from __future__ import annotations

import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

from crag_core.base.data_files import read_input
from crag_core.base.errors import BadRecord
from crag_core.trace.trace import Trace

STREAM = "-"
"""In place of a file's name: standard input, or output."""
LARGEST_MB = 100

_RECORDING = 'Make one with: python -m crag_core ask "…" --json > run.json'


def read_run(name: str) -> Trace:
    """Raises as `read_input`; `BadRecord` says what was found instead of a run."""
    data = read_input(name, "recorded run", LARGEST_MB, _RECORDING)
    try:
        return Trace.from_json(data.decode(encoding_of(data)))
    except UnicodeDecodeError as error:
        raise BadRecord(f"{name}: expected a recorded run (JSON), found no text.", hint=_RECORDING) from error
    except BadRecord as error:
        raise BadRecord(f"{name}: {error.message}", hint=error.hint or _RECORDING) from error


def encoding_of(data: bytes) -> str:
    """PowerShell writes UTF-16 into a file or a pipe, everything else UTF-8."""
    return "utf-16" if data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else "utf-8-sig"


def page_beside(run: str) -> str:
    return STREAM if run == STREAM else str(Path(run).with_suffix(".html"))


def write_page(page: str, name: str, run: str) -> int:
    """Write the report of `run`, and give its size in bytes; `BadRecord` if it cannot be, or would replace the run."""
    data = page.encode()
    if name == STREAM:
        return sys.stdout.buffer.write(data)
    if Path(name).resolve() == Path(run).resolve():
        raise BadRecord(f"{name}: the report would replace the run.", hint="Name another file with --output.")
    try:
        return Path(name).write_bytes(data)
    except OSError as error:
        hint = "Name another file with --output."
        raise BadRecord(f"{name}: the report cannot be written there: {error.strerror}.", hint=hint) from error

"""How a process that parses documents is started: isolated, and without what only we need to know.

Not through multiprocessing, which imports the main script again; under Streamlit that is a page.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from crag_core.records import to_plain
from crag_core.retrieval.parse_wire import Limits

_ROOT = Path(__file__).resolve().parents[2]
# Isolated (-I), it finds our package only where it is told to.
_PROGRAM = (
    "import sys; sys.path[:0] = {sys.argv[1]} - {*sys.path}; "
    "from crag_core.retrieval.parse_worker import main; main(sys.argv)"
)
# No settings and no keys: what a parser has not got, no file can make it tell.
_ENVIRONMENT = ("PATH", "LANG", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def start_process(limits: Limits) -> subprocess.Popen[bytes]:
    """With pipes to all three of its streams; raises `OSError`."""
    return subprocess.Popen(
        [sys.executable, "-I", "-B", "-X", "utf8", "-c", _PROGRAM, str(_ROOT), json.dumps(to_plain(limits))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
        # Ctrl-C in the terminal is for the application, which ends this one.
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _ENVIRONMENT or name.startswith("LC_")}
    # NumPy, which some parser brings along, would start a thread for each core.
    return {**kept, "OPENBLAS_NUM_THREADS": "1"}

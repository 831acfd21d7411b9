"""Starts a parsing process: isolated, with a minimal environment."""

from __future__ import annotations

import json
import os
import subprocess

from crag_core.base.serialization import to_plain
from crag_core.retrieval.sandbox.child_process import start_isolated
from crag_core.retrieval.sandbox.protocol import Limits

# No settings and no keys: what a parser has not got, no file can make it tell.
_ENVIRONMENT = ("PATH", "LANG", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def start_process(limits: Limits) -> subprocess.Popen[bytes]:
    """With pipes to all three of its streams; raises `OSError`."""
    return start_isolated("crag_core.retrieval.sandbox.worker", json.dumps(to_plain(limits)), _environment())


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _ENVIRONMENT or name.startswith("LC_")}
    # NumPy, which some parser brings along, would start a thread for each core.
    return {**kept, "OPENBLAS_NUM_THREADS": "1"}

"""Processes as the system sees them, and frames that one of them may send."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path


def is_alive(number: int) -> bool:
    """Whether there is such a process; a zombie of somebody else's is none."""
    try:
        os.kill(number, 0)
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc").is_dir()


def frame(header: bytes) -> bytes:
    return struct.pack(">II", len(header), 0) + header


def wait_until(is_so: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it should have come to pass"
        time.sleep(0.02)


def children() -> list[int]:
    """Of this process, zombies among them."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = status.read_text().partition(" ")
        except OSError:  # it ended
            continue
        if int(rest.rpartition(")")[2].split()[1]) == os.getpid():
            found.append(int(number))
    return found

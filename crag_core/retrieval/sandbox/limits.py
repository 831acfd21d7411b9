"""Drops privileges and sets limits of a process before it reads untrusted files, as far as the system can."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

_NICE = 5
_FILES = 64
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_NO_NEW_PRIVILEGES = 38


def confine(memory: int) -> None:
    """For this process from now on: `memory` bytes, no network (Linux), no writing to files, no core dumps.

    It also runs behind others, and goes first when the machine's memory is full. To be called before a second thread.
    """
    if hasattr(os, "nice"):
        os.nice(_NICE)
    go_first()
    if sys.platform == "linux":
        _leave_network()
    # Not RLIMIT_AS: libraries reserve far more addresses than they use.
    _limit("RLIMIT_DATA", memory)
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_NOFILE", _FILES)


def go_first() -> None:
    """When the machine's memory is full, before the application; and without a core dump."""
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("800")
    _limit("RLIMIT_CORE", 0)


def forbid_processes() -> None:
    """No further process or thread either; root is not bound by it."""
    _limit("RLIMIT_NPROC", 0)


def _leave_network() -> None:
    import ctypes

    system = ctypes.CDLL(None)
    system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    # Where the system refuses (many containers do), all stays as it is. Without being root it takes a user namespace;
    # root would lose there the right to read the files of others, which the imports may need.
    system.unshare(_NEW_NETWORK | (_NEW_USER if os.geteuid() else 0))


def _limit(name: str, value: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    kind = getattr(resource, name, None)
    if kind is None:
        return
    most = resource.getrlimit(kind)[1]
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    with suppress(OSError, ValueError):
        resource.setrlimit(kind, (value, value))

"""Set-up of a child process from within: its pipes, its privileges, and its limits as far as the system has them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

from crag_core.retrieval.sandbox.messages import WireEnded, read_frame

Frame = tuple[Any, bytes]

_NICE = 5
_FILES = 64
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_NO_NEW_PRIVILEGES = 38


def take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """For requests and replies alone: stdin then reads as empty, and what is printed goes to stderr."""
    requests_from, replies_to = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests_from, replies_to


def listen(stream: IO[bytes], requests: SimpleQueue[Frame], most: int, most_header: int) -> None:
    """Puts requests into a queue. In its own thread, so that a busy process notices the end of the application."""
    try:
        while True:
            requests.put(read_frame(stream, most, most_header))
    except WireEnded:
        os._exit(0)
    except BaseException:  # without this thread the process would wait for ever
        os._exit(1)


def confine(memory: int) -> None:
    """Limit this process to `memory` bytes, without network (Linux), writing to files, and core dumps.

    It also gets a lower priority, and is the first to be killed when memory is full. Call it before a second thread.
    """
    if hasattr(os, "nice"):
        os.nice(_NICE)
    set_first_to_kill()
    if sys.platform == "linux":
        _leave_network()
    # Not RLIMIT_AS: libraries reserve far more addresses than they use.
    _limit("RLIMIT_DATA", memory)
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_NOFILE", _FILES)


def set_first_to_kill() -> None:
    """When memory is full, let the system kill this process before the application; without a core dump."""
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("800")
    _limit("RLIMIT_CORE", 0)


def forbid_processes() -> None:
    """No further process or thread either; root is not bound by this."""
    _limit("RLIMIT_NPROC", 0)


def _leave_network() -> None:
    import ctypes

    system = ctypes.CDLL(None)
    system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    # Where the system refuses (many containers do), nothing changes. Only root can do it without a user namespace, in
    # which root would lose the right to read other users' files, which the imports may need.
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

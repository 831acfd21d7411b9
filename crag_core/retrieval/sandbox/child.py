"""A child process from within: frames of a JSON header and bytes, its limits, and the loop that answers requests."""

from __future__ import annotations

import json
import os
import resource
import struct
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any

from crag_core.base.serialization import to_plain

# Enough for 100 000 pages, 50 000 chunks or 10 000 boxes, and too little to fill our memory with what stands in it.
MOST_HEADER = 2 * 1024 * 1024
_SIZES = struct.Struct(">II")
_NICE = 5
_FILES = 64
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_NO_NEW_PRIVILEGES = 38


class BadFrame(Exception):
    pass


class WireEnded(Exception):
    pass


def write_frame(stream: IO[bytes], record: Any, body: bytes = b"") -> None:
    header = json.dumps(to_plain(record)).encode()
    stream.write(_SIZES.pack(len(header), len(body)) + header)
    stream.write(body)
    stream.flush()


def read_frame(stream: IO[bytes], most: int, most_header: int = MOST_HEADER) -> tuple[Any, bytes]:
    """The header, which may be any JSON value, and at most `most` bytes; raises `BadFrame` or `WireEnded`."""
    header_size, body_size = _SIZES.unpack(_read(stream, _SIZES.size))
    if header_size > most_header or body_size > most:
        raise BadFrame(f"expected at most {most_header} and {most} bytes, found {header_size} and {body_size}")
    try:
        header = json.loads(_read(stream, header_size))
    except (ValueError, RecursionError) as error:
        raise BadFrame("expected JSON") from error
    return header, _read(stream, body_size)


def _read(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise WireEnded
    return content


def serve(
    answer: Callable[[Any, bytes], tuple[Any, bytes]], most: int, most_header: int, memory: int, idle: float
) -> None:
    """Answers requests until stdin ends, or there is none for `idle` seconds, and the process with it.

    A request has a header of at most `most_header` bytes and a body of `most`; both come from the application, which is
    trusted. The process is limited to `memory` bytes, without network and writing to files: see `_confine`.
    """
    try:
        requests_from, replies_to = _take_pipes()
        _set_first_to_kill()
        _confine(memory)
        requests: SimpleQueue[tuple[Any, bytes]] = SimpleQueue()
        Thread(target=_listen, args=(requests_from, requests, most, most_header), daemon=True).start()
        write_frame(replies_to, None)  # it is ready
        while True:
            write_frame(replies_to, *answer(*requests.get(timeout=idle)))
    except Empty:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        # At once: cleaning up would close the pipes first, and the application would miss the exit status.
        os._exit(1)


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """For requests and replies alone: stdin then reads as empty, and what is printed goes to stderr."""
    requests_from, replies_to = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests_from, replies_to


def _listen(stream: IO[bytes], requests: SimpleQueue[tuple[Any, bytes]], most: int, most_header: int) -> None:
    """Puts requests into a queue. In its own thread, so that a busy process notices the end of the application."""
    try:
        while True:
            requests.put(read_frame(stream, most, most_header))
    except WireEnded:
        os._exit(0)
    except BaseException:  # without this thread the process would wait for ever
        os._exit(1)


def _set_first_to_kill() -> None:
    """When memory is full, let the system kill this process before the application; without a core dump."""
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("800")
    _limit("RLIMIT_CORE", 0)


def _confine(memory: int) -> None:
    """Limit this process to `memory` bytes, without network (Linux) and writing to files, at a lower priority.

    Call it before a second thread.
    """
    os.nice(_NICE)
    if sys.platform == "linux":
        import ctypes

        system = ctypes.CDLL(None)
        system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        # Where the system refuses (many containers do), nothing changes. Only root can do it without a user namespace,
        # in which root would lose the right to read other users' files, which the imports may need.
        system.unshare(_NEW_NETWORK | (_NEW_USER if os.geteuid() else 0))
    # Not RLIMIT_AS: libraries reserve far more addresses than they use.
    _limit("RLIMIT_DATA", memory)
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_NOFILE", _FILES)


def _limit(name: str, value: int) -> None:
    with suppress(AttributeError, OSError, ValueError):
        kind = getattr(resource, name)
        most = resource.getrlimit(kind)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (value, value))

"""The child process that parses documents and draws pages: reads requests from stdin, writes replies to stdout.

Started by `process`, with the limits as its last argument. It ends when its stdin does.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any

from crag_core.base.errors import DocumentRefused
from crag_core.base.serialization import from_plain
from crag_core.retrieval.chunking.split import cut_document
from crag_core.retrieval.page_view.page_image import page_picture
from crag_core.retrieval.readers import MAX_BYTES, READERS, read_document
from crag_core.retrieval.sandbox.messages import (
    Limits,
    Reply,
    Request,
    WireEnded,
    pack_chunks,
    pack_pages,
    pack_picture,
    read_frame,
    write_frame,
)

# The application stops what takes too long; this is for when it has ended and the parser blocks all threads.
_GRACE = 2
# A text to be looked for may be a whole file, and a letter takes six bytes there. The application is trusted.
_MOST_REQUEST = 10 * MAX_BYTES
_NICE = 5
_FILES = 64
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_NO_NEW_PRIVILEGES = 38


def main(arguments: list[str]) -> None:
    """Answers requests until stdin ends, or there is none for a while, and the process with it."""
    try:
        limits = from_plain(Limits, json.loads(arguments[-1]))
        if limits.readers:
            READERS.update(import_module(limits.readers).READERS)
        requests_from, replies_to = _take_pipes()
        _confine(limits.memory)
        requests: SimpleQueue[tuple[Any, bytes]] = SimpleQueue()
        Thread(target=_listen, args=(requests_from, requests), daemon=True).start()
        write_frame(replies_to, None)  # it is ready
        while True:
            header, content = requests.get(timeout=limits.idle)
            signal.alarm(int(limits.seconds) + _GRACE)
            write_frame(replies_to, *answer(from_plain(Request, header), content, limits))
            signal.alarm(0)
    except Empty:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        # At once: cleaning up would close the pipes first, and the application would miss the exit status.
        os._exit(1)


def answer(request: Request, content: bytes, limits: Limits) -> tuple[Reply, bytes]:
    id_, asked = request.id, request.drawing
    try:
        if asked:
            return pack_picture(id_, page_picture(content, asked.page, asked.text, asked.spans, asked.width))
        pages = read_document(content, request.name)
        if sum(len(page.text) for page in pages) > limits.characters:
            raise DocumentRefused(
                f"{request.name}: holds more than {limits.characters:,} characters of text.",
                hint="Split the document into smaller files and add those.",
            )
        if request.cut:
            return pack_chunks(id_, cut_document(pages, request.name, request.cut, limit=limits.chunks))
        return pack_pages(id_, pages)
    except DocumentRefused as error:
        # Many parsers call a refused allocation a fault of the file. A buffer that doubles is refused above a third of
        # the memory; if an earlier file took that, the application asks a new process.
        cause = error.__cause__
        if isinstance(cause, MemoryError) or (cause and _peak_memory() > limits.memory / 3):
            return Reply(id_, is_out_of_memory=True), b""
        return Reply(id_, message=error.message, hint=error.hint), b""
    except MemoryError:
        return Reply(id_, is_out_of_memory=True), b""


def _peak_memory() -> int:
    """Bytes that this process has had at most; 0 where the system does not tell.

    `getrusage` would count what the application had that started it.
    """
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
    return 1024 * int(found[1]) if found else 0


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """For requests and replies alone: stdin then reads as empty, and what is printed goes to stderr."""
    requests_from, replies_to = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests_from, replies_to


def _listen(stream: IO[bytes], requests: SimpleQueue[tuple[Any, bytes]]) -> None:
    """Puts requests into a queue. In its own thread, so that a busy process notices the end of the application."""
    try:
        while True:
            requests.put(read_frame(stream, MAX_BYTES, _MOST_REQUEST))
    except WireEnded:
        os._exit(0)
    except BaseException:  # without this thread the process would wait for ever
        os._exit(1)


def _confine(memory: int) -> None:
    """Limit this process to `memory` bytes, without network (Linux) and writing to files, at a lower priority.

    When memory is full, the system kills it before the application. Call it before a second thread.
    """
    os.nice(_NICE)
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("800")
        system = ctypes.CDLL(None)
        system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        # Where the system refuses (many containers do), nothing changes. Only root can do it without a user namespace,
        # in which root would lose the right to read other users' files, which the imports may need.
        system.unshare(_NEW_NETWORK | (_NEW_USER if os.geteuid() else 0))
    # Not RLIMIT_AS: libraries reserve far more addresses than they use.
    limits = {"RLIMIT_CORE": 0, "RLIMIT_DATA": memory, "RLIMIT_FSIZE": 0, "RLIMIT_NOFILE": _FILES}
    for name, value in limits.items():
        with suppress(AttributeError, OSError, ValueError):
            kind = getattr(resource, name)
            most = resource.getrlimit(kind)[1]
            value = value if most == resource.RLIM_INFINITY else min(value, most)
            resource.setrlimit(kind, (value, value))

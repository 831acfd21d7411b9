"""The child's side of its pipes."""

from __future__ import annotations

import os
from queue import SimpleQueue
from typing import IO, Any

from crag_core.retrieval.sandbox.protocol import WireEnded, read_frame

Frame = tuple[Any, bytes]


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

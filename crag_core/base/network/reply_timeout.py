"""Aborts a blocked database read after a time-out, by shutting its socket down."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Timer


@contextmanager
def limited(fileno: int, seconds: float, faults: type[Exception]) -> Iterator[None]:
    """Cut the line `fileno` after `seconds`; what the driver then raises, one of `faults`, becomes a `TimeoutError`."""
    is_late = Event()

    def cut() -> None:
        is_late.set()
        line.cut()

    line = Line(fileno)
    timer = Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except faults:
        if is_late.is_set():
            raise TimeoutError(f"no reply within {seconds:g} s") from None
        raise
    finally:
        timer.cancel()
        line.close()


class Line:
    """A name of its own for the line of a connection: the number of the driver's may be another's by then."""

    def __init__(self, fileno: int) -> None:
        self._socket = socket.fromfd(fileno, socket.AF_INET, socket.SOCK_STREAM)

    def cut(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

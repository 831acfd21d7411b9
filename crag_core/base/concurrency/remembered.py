"""What parts of this process remember of what they read, so that a run that is timed can start without it."""

from threading import Lock
from typing import Protocol
from weakref import WeakSet


class Remembers(Protocol):
    """`forget` drops what an earlier call has left, and no model that is loaded."""

    def forget(self) -> None: ...


_KNOWN: WeakSet[Remembers] = WeakSet()
_LOCK = Lock()


def register(part: Remembers) -> None:
    with _LOCK:
        _KNOWN.add(part)


def forget_all() -> None:
    """Of every part of this process: the next call takes the time that the work takes."""
    with _LOCK:
        known = list(_KNOWN)
    for part in known:
        part.forget()

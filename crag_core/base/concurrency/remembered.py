"""What parts of this process remember of what they read, so that a run that is timed can start without it."""

from threading import Lock
from typing import Any
from weakref import WeakSet

_PARTS: WeakSet[Any] = WeakSet()
_LOCK = Lock()


def register(part: Any) -> None:
    """Its `forget()` drops what an earlier call has left, and no model that is loaded."""
    with _LOCK:
        _PARTS.add(part)


def forget_all() -> None:
    """Of every part of this process: the next call takes the time that the work takes."""
    with _LOCK:
        parts = list(_PARTS)
    for part in parts:
        part.forget()

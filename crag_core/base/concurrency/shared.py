"""What all sessions of a process share, made once.

Not in Streamlit's caches: whoever reaches the server empties those for everybody, by a message that no page sends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")
_made: list[Any] = []


def shared(make: Callable[[], T]) -> Callable[[], T]:
    """`make` is called at the first use, and at the next one where it raised."""
    lock, once = Lock(), cache(make)
    _made.append(once)

    @wraps(make)
    def get() -> T:
        with lock:
            return once()

    return get


def forget() -> None:
    """As in a new process, for tests."""
    for once in _made:
        once.cache_clear()

"""What all sessions of a process share, made once.

Not in Streamlit's caches: whoever reaches the server empties those for everybody, by a message that no page sends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")
_made: dict[Callable[[], Any], Any] = {}


def shared(make: Callable[[], T]) -> Callable[[], T]:
    """`make` is called at the first use, and at the next one where it raised."""
    lock = threading.Lock()

    @wraps(make)
    def get() -> T:
        if make not in _made:  # else no thread waits for another
            with lock:
                if make not in _made:
                    _made[make] = make()
        found: T = _made[make]
        return found

    return get


def forget() -> None:
    """As in a new process, for tests."""
    _made.clear()

"""A minimum time between two web searches."""

from __future__ import annotations

import time
from threading import Lock

from crag_core.base.protocols import Clock


class Cooldown:
    """Remembers when the web was last searched. Safe to share between threads."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._last: float | None = None
        self._lock = Lock()

    def left(self, seconds: float) -> float:
        """Seconds until the next search is allowed, when at least `seconds` must lie between two; 0.0: now."""
        with self._lock:
            return 0.0 if self._last is None else max(0.0, self._last + seconds - self._clock())

    def note(self) -> None:
        """The web was searched now."""
        with self._lock:
            self._last = self._clock()

    def forget(self) -> None:
        """As if the web had never been searched."""
        with self._lock:
            self._last = None

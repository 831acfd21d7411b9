"""Leaves a server alone for a while that did not answer, so that it does not cost each run a wait."""

from __future__ import annotations

import math
from threading import Lock

from crag_core.base.protocols import Clock

AWAY_S = 30.0


class Absence:
    """Of one server, for all threads that use it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = -math.inf
        self._lock = Lock()

    def is_now(self) -> bool:
        """False for one thread after a while, which then asks; the others go on without waiting."""
        with self._lock:
            now = self._clock()
            if now < self._until:
                return True
            if math.isfinite(self._until):
                self._until = now + AWAY_S
            return False

    def begin(self) -> None:
        self._until = self._clock() + AWAY_S

    def end(self) -> None:
        self._until = -math.inf

"""Limits how many calls all runs together make at one model server at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel, Clock


@dataclass(eq=False)
class LimitedCall:
    """A call of the run with the flag `run`; `since` is when it got its turn, None: it waits for one."""

    run: Cancel
    model: str
    since: float | None = None
    is_begun: bool = False
    """Whether a piece of its reply has come."""


class CallLimit:
    """`at_once` calls under way; the others wait in the order in which they came.

    Only the loop of the model calls may take turns; what there is may be looked at from anywhere.
    """

    def __init__(self, at_once: int, clock: Clock = time.monotonic) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._clock = clock
        self._calls: set[LimitedCall] = set()

    @property
    def under_way(self) -> int:
        return sum(call.since is not None for call in self._calls.copy())

    @asynccontextmanager
    async def turn(self, model: str, cancel: Cancel) -> AsyncIterator[LimitedCall]:
        """Waits for a turn, which lasts as long as the block; raises `Stopped` where `cancel` was set meanwhile."""
        call = LimitedCall(run_of(cancel), model)
        self._calls.add(call)
        try:
            async with self._free:
                if cancel.is_set():
                    raise Stopped("Stopped by you.")
                call.since = self._clock()
                yield call
        finally:
            self._calls.discard(call)

    def is_waiting(self, cancel: Cancel) -> bool:
        """Whether calls of this run wait while none is under way: those of others are."""
        own = self._calls_of(cancel)
        return bool(own) and not cancel.is_set() and all(call.since is None for call in own)

    def silent_model(self, cancel: Cancel, seconds: float) -> str:
        """The model that this run has asked for so many seconds while no piece has come of any of its calls; or ""."""
        asked = [(call.since, call) for call in self._calls_of(cancel) if call.since is not None]
        if not asked or any(call.is_begun for _, call in asked):
            return ""
        since, first = min(asked, key=lambda pair: pair[0])
        return first.model if self._clock() - since >= seconds else ""

    def _calls_of(self, cancel: Cancel) -> list[LimitedCall]:
        run = run_of(cancel)
        return [call for call in self._calls.copy() if call.run is run]


def run_of(cancel: Cancel) -> Cancel:
    """The flag of the run itself, of which this one may be a flag with a time limit."""
    while (parent := getattr(cancel, "parent", None)) is not None:
        cancel = parent
    return cancel

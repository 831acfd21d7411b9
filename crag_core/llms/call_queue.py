"""Where the calls of all runs wait for their turn at the servers of a pool, run by run in turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass
from threading import Lock

from crag_core.base.concurrency.fair_queue import FairQueue
from crag_core.base.errors import ModelMissing, ModelUnavailable
from crag_core.base.protocols import Cancel, Clock, Reply
from crag_core.llms.server_pool import Pool, Turn


@dataclass(frozen=True, eq=False)
class _Call:
    """One that waits; `turn` is what it waits for."""

    cancel: Cancel
    model: str
    but: frozenset[str]
    turn: asyncio.Future[Turn]


@dataclass
class _UnderWay:
    """A call that has its turn: of which run, since when, and whether a piece of its reply has come."""

    run: Cancel
    since: float
    is_begun: bool = False


class Line:
    """One for all models and runs that use the same servers, one server or several.

    A run is told by its flag `cancel`. Only the loop of the model calls may call `take` and `give_back`; `pool` and
    `ahead` may be looked at from anywhere.
    """

    def __init__(self, pool: Pool, clock: Clock = time.monotonic) -> None:
        self.pool = pool
        self._clock = clock
        self._fair_queue: FairQueue[Cancel, _Call] = FairQueue()
        self._lock = Lock()
        self._under_way: dict[Turn, _UnderWay] = {}
        self._retry: asyncio.TimerHandle | None = None

    async def take(self, model: str, cancel: Cancel, but: Collection[str] = ()) -> Turn:
        """A turn at a server that is not in `but`; a call that is cancelled leaves the line."""
        call = _Call(cancel, model, frozenset(but), asyncio.get_running_loop().create_future())
        run = origin(cancel)
        with self._lock:
            self._fair_queue.join(run, call)
        self._serve()
        try:
            return await call.turn
        except asyncio.CancelledError:
            with self._lock:
                self._fair_queue.leave(run, call)
            if call.turn.done() and not call.turn.cancelled():  # its turn came just before
                self.give_back(call.turn.result(), None)
            raise

    def give_back(self, turn: Turn, came: object) -> None:
        """`came`: the reply, or the error in place of it; anything else: the call was given up."""
        if isinstance(came, Reply):
            self.pool.served(turn)
        elif isinstance(came, ModelMissing):
            self.pool.lacks(turn)
        elif isinstance(came, ModelUnavailable) and came.is_of_request:
            self.pool.answered(turn)
        elif isinstance(came, ModelUnavailable):
            self.pool.failed(turn, came.message)
        else:
            self.pool.dropped(turn)
        with self._lock:
            self._under_way.pop(turn, None)
        self._serve()

    def begin(self, turn: Turn) -> None:
        """The first piece of the reply has come."""
        with self._lock:
            if turn in self._under_way:
                self._under_way[turn].is_begun = True

    def unheard(self, cancel: Cancel, seconds: float) -> Turn | None:
        """The call of this run that has waited longest for a first piece, where all that are under way wait for one.

        None: there is none, or it has not waited for so many seconds.
        """
        run = origin(cancel)
        with self._lock:
            own = [(one.since, turn) for turn, one in self._under_way.items() if one.run is run]
            is_begun = any(self._under_way[turn].is_begun for _, turn in own)
        if not own or is_begun:
            return None
        since, turn = min(own, key=lambda pair: pair[0])
        return turn if self._clock() - since >= seconds else None

    def ahead(self, cancel: Cancel) -> int | None:
        """How many calls of other runs get their turn before the first of this one.

        None: none of its calls waits, or one of them is under way, or it was stopped. As things stand now: who comes
        later gets a turn later, and who leaves makes the line shorter.
        """
        run = origin(cancel)
        with self._lock:
            is_waiting_for_nothing = run.is_set() or any(one.run is run for one in self._under_way.values())
            return None if is_waiting_for_nothing else self._fair_queue.ahead(run)

    def _serve(self) -> None:
        """Give out all turns that can be had now, and look again when a server may be tried again."""
        full: set[tuple[str, frozenset[str]]] = set()
        while (found := self._next(full)) is not None:
            call, turn = found
            call.turn.set_result(turn)
        self._look_again()

    def _next(self, full: set[tuple[str, frozenset[str]]]) -> tuple[_Call, Turn] | None:
        """`full` are the wishes that nobody has room for; of many calls that wish the same one asks the pool."""
        turns: list[Turn] = []

        def is_possible(call: _Call) -> bool:
            wish = (call.model, call.but)
            if call.cancel.is_set() or call.turn.done() or wish in full:
                return False
            turn = self.pool.take(*wish)
            turns.extend([turn] if turn else [])
            full.update([] if turn else [wish])
            return turn is not None

        with self._lock:
            call = self._fair_queue.next(is_possible)
            if call is None:
                return None
            self._under_way[turns[0]] = _UnderWay(origin(call.cancel), self._clock())
            return call, turns[0]

    def _look_again(self) -> None:
        if self._retry:
            self._retry.cancel()
        seconds = self.pool.wait() if len(self._fair_queue) else None
        self._retry = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self._serve)


def origin(cancel: Cancel) -> Cancel:
    """The flag of the run itself, of which this one may be a flag with a time limit."""
    while (parent := getattr(cancel, "parent", None)) is not None:
        cancel = parent
    return cancel

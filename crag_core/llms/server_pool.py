"""Which of several servers is asked next, and which is left out for a while. No network and no waiting in here."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from threading import Lock

from crag_core.base.protocols import Clock
from crag_core.llms.servers import Standing

SHORTEST, LONGEST = 5.0, 300.0
"""Seconds that a server is left out after its first failure, doubled with each further one, up to the longest."""


@dataclass(frozen=True, eq=False)
class Turn:
    """Leave to make one call to `server` for `model`, to be given back by exactly one method of the pool."""

    server: str
    model: str
    failures: int
    is_last_resort: bool


@dataclass
class _Server:
    busy: int = 0
    served: int = 0
    last_turn: int = 0
    failures: int = 0
    until: float = 0.0
    trial: Turn | None = None
    reason: str = ""
    lacks: dict[str, float] = field(default_factory=dict)
    """Until when each model that it does not have is not looked for there."""


class Pool:
    """Servers by URL, at most `at_once` calls under way on each. Safe to share between threads.

    The least busy is next, ties in turn. One that fails is left out, longer each time; when its time is over one call
    tries it. One that lacks a model is left out for that model. Who is left out is asked only where nobody else can be:
    for a call it is better than to fail unasked.
    """

    def __init__(self, servers: Sequence[str], at_once: int, clock: Clock = time.monotonic) -> None:
        if not servers or at_once < 1:
            raise ValueError(f"expected servers and at least one call at once, found {len(servers)} and {at_once}")
        self.servers = tuple(servers)
        self._at_once = at_once
        self._clock = clock
        self._known = {server: _Server() for server in servers}
        self._turns = 0
        self._lock = Lock()

    def take(self, model: str, but: Collection[str] = ()) -> Turn | None:
        """The next turn for a call that the servers in `but` have failed; None: whoever could be asked is busy."""
        with self._lock:
            now = self._clock()
            ranks = {one: _rank(self._known[one], model, now) for one in self.servers if one not in but}
            if not ranks:
                raise ValueError("expected a server that was not asked yet, found none")
            best = min(ranks.values())
            ready = [one for one, rank in ranks.items() if rank == best and self._has_room(self._known[one])]
            if not ready:
                return None
            chosen = min(ready, key=lambda one: (self._known[one].busy, self._known[one].last_turn))
            known = self._known[chosen]
            self._turns += 1
            known.last_turn = self._turns
            known.busy += 1
            turn = Turn(chosen, model, known.failures, is_last_resort=_is_left_out(known, now))
            # A trial keeps calls for the other servers; where there is no other it would only make them wait.
            if known.failures and not turn.is_last_resort and len(self.servers) > 1:
                known.trial = turn
            return turn

    def wait(self) -> float | None:
        """Seconds until another server may be tried again; None: nobody is left out."""
        with self._lock:
            now = self._clock()
            left = [known.until - now for known in self._known.values() if _is_left_out(known, now)]
            return min(left, default=None)

    def served(self, turn: Turn) -> None:
        """The call got its reply: the server is in again, whatever was before."""
        with self._lock:
            self._heard_from(turn).served += 1

    def answered(self, turn: Turn) -> None:
        """The server works and refused this one call."""
        with self._lock:
            self._heard_from(turn)

    def lacks(self, turn: Turn) -> None:
        """The server works and does not have the model."""
        with self._lock:
            self._heard_from(turn).lacks[turn.model] = self._clock() + LONGEST

    def failed(self, turn: Turn, reason: str) -> None:
        """The server failed: it is left out. Calls that were under way together are one failure, not several."""
        with self._lock:
            known = self._end(turn)
            known.reason = reason
            if turn.is_last_resort or turn.failures != known.failures:
                return
            known.until = self._clock() + min(SHORTEST * 2 ** min(known.failures, 10), LONGEST)
            known.failures += 1

    def dropped(self, turn: Turn) -> None:
        """The call was given up; nothing was learned."""
        with self._lock:
            self._end(turn)

    def standings(self, called: Sequence[str]) -> tuple[Standing, ...]:
        """How each server does now, in order, under the names by which people know them."""
        with self._lock:
            now = self._clock()
            return tuple(
                Standing(
                    name,
                    known.busy,
                    known.served,
                    known.failures,
                    known.until - now if _is_left_out(known, now) else 0.0,
                    known.reason if known.failures else "",
                )
                for name, known in zip(called, self._known.values(), strict=True)
            )

    def _has_room(self, known: _Server) -> bool:
        return known.busy < self._at_once and not (known.failures and known.trial)

    def _heard_from(self, turn: Turn) -> _Server:
        known = self._end(turn)
        known.failures = 0
        known.lacks.pop(turn.model, None)
        return known

    def _end(self, turn: Turn) -> _Server:
        known = self._known[turn.server]
        known.busy -= 1
        if known.trial is turn:
            known.trial = None
        return known


def _rank(known: _Server, model: str, now: float) -> int:
    """0: in, or to be tried again; 1: left out; 2: it lacks the model."""
    return 2 if now < known.lacks.get(model, now) else int(_is_left_out(known, now))


def _is_left_out(known: _Server, now: float) -> bool:
    return known.failures > 0 and now < known.until

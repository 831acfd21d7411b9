"""Limits how many runs of the process go on at once; the others wait in a fair queue."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Event, Lock

from crag_core.base.concurrency.cancellation import GLANCE
from crag_core.base.errors import Busy
from crag_core.base.protocols import Cancel


class Ticket:
    """A place in the line of `run_queue`, of `who`; to be used for one turn."""

    def __init__(self, run_queue: RunQueue, who: Hashable, is_patient: bool) -> None:
        self.who = who
        self.is_patient = is_patient
        self.called = Event()
        self._run_queue = run_queue

    @property
    def before(self) -> int | None:
        """How many runs get their turn before this one's; None: it has had it, or left the line."""
        return self._run_queue.before(self)

    @contextmanager
    def turn(self, cancel: Cancel) -> Iterator[bool]:
        """Waits for the turn, which lasts as long as the block. Once `cancel` is set it waits no more.

        Then the block is entered without a turn (False), to tell by its own means that it was stopped.
        """
        try:
            while not self.called.wait(GLANCE) and not cancel.is_set():
                pass
            is_mine = self.called.is_set()
            if not is_mine:
                self.leave()
            yield is_mine
        finally:
            self.leave()

    def leave(self) -> None:
        """Out of the line, or the turn is over; again does nothing."""
        self._run_queue.leave(self)


class FairQueue:
    """Waiting tickets: those of one asker in order, and between two of them one of every other asker that waits.

    Who comes goes to the end of the round, so nobody is overtaken by somebody who came later and has had as many turns.
    Not safe to share between threads.
    """

    def __init__(self) -> None:
        self._waiting: dict[Hashable, list[Ticket]] = {}  # in the order of their next turns; no list is empty

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __iter__(self) -> Iterator[Ticket]:
        """All that wait, in no order that means anything."""
        return (ticket for tickets in self._waiting.values() for ticket in tickets)

    def join(self, ticket: Ticket) -> None:
        self._waiting.setdefault(ticket.who, []).append(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Does nothing for one that does not wait."""
        own = self._waiting.get(ticket.who, [])
        if ticket in own:
            own.remove(ticket)
            if not own:
                del self._waiting[ticket.who]

    def next(self) -> Ticket | None:
        """Takes out the next one; None: nobody waits."""
        for who, own in self._waiting.items():
            del self._waiting[who]
            if own[1:]:
                self._waiting[who] = own[1:]
            return own[0]
        return None

    def before(self, ticket: Ticket) -> int | None:
        """How many get their turn before this one if nobody comes or leaves; None: it does not wait."""
        own = self._waiting.get(ticket.who, [])
        if ticket not in own:
            return None
        rounds = own.index(ticket)
        askers = list(self._waiting)
        first = askers[: askers.index(ticket.who)]
        others = ((who, len(tickets)) for who, tickets in self._waiting.items() if who != ticket.who)
        return rounds + sum(min(count, rounds + (who in first)) for who, count in others)


class RunQueue:
    """`at_once` turns under way, at most `room` tickets in line, the patient ones not counted. Safe between threads.

    Those of one asker come in order; between askers it goes in turn, so that who asks ten times at once does not keep
    others waiting for all ten.
    """

    def __init__(self, at_once: int, room: int) -> None:
        if at_once < 1 or room < 0:
            raise ValueError(f"expected at least one turn at once and room for none or more, found {at_once}, {room}")
        self._at_once = at_once
        self._room = room
        self._waiting = FairQueue()
        self._inside: set[Ticket] = set()
        self._lock = Lock()

    @property
    def under_way(self) -> int:
        return len(self._inside)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def join(self, who: Hashable, *, is_patient: bool = False) -> Ticket:
        """A place in line for `who`, or a turn at once. Raises `Busy` when the line is full.

        `is_patient`: it comes in however long the line is, and takes no room from others; for the questions of a set,
        of which a few at a time come into the line.
        """
        with self._lock:
            counted = sum(not ticket.is_patient for ticket in self._waiting)
            if not is_patient and len(self._inside) >= self._at_once and counted >= self._room:
                raise Busy(
                    f"Too many questions at the same time: expected at most {self._room} in line behind "
                    f"{self._at_once} under way, found {counted}.",
                    hint="Your question is still in its field: ask again in a minute.",
                )
            ticket = Ticket(self, who, is_patient)
            self._waiting.join(ticket)
            self._call_next()
            return ticket

    def before(self, ticket: Ticket) -> int | None:
        with self._lock:
            return self._waiting.before(ticket)

    def leave(self, ticket: Ticket) -> None:
        with self._lock:
            self._waiting.leave(ticket)
            self._inside.discard(ticket)
            self._call_next()

    def _call_next(self) -> None:
        while len(self._inside) < self._at_once and (ticket := self._waiting.next()) is not None:
            self._inside.add(ticket)
            ticket.called.set()

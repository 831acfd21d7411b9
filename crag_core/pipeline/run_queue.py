"""Limits how many runs of the process go on at once; the others wait, first come, first served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock

from crag_core.base.concurrency.cancellation import POLL_SECONDS
from crag_core.base.errors import Busy
from crag_core.base.protocols import Cancel


@dataclass(eq=False)
class Ticket:
    """A place in the line of a `RunQueue`, to be used for one turn; `called` is set when the turn has come."""

    run_queue: RunQueue
    is_patient: bool
    called: Event = field(default_factory=Event)

    @property
    def before(self) -> int | None:
        """How many runs get their turn before this one's; None: it has had it, or left the line."""
        with self.run_queue.lock:
            line = self.run_queue.line
            return line.index(self) if self in line else None

    @contextmanager
    def turn(self, cancel: Cancel) -> Iterator[bool]:
        """Waits for the turn, which lasts as long as the block. Once `cancel` is set it waits no more.

        Then the block is entered without a turn (False), to tell by its own means that it was stopped.
        """
        try:
            while not self.called.wait(POLL_SECONDS) and not cancel.is_set():
                pass
            if not (is_mine := self.called.is_set()):
                self.leave()
            yield is_mine
        finally:
            self.leave()

    def leave(self) -> None:
        """Out of the line, or the turn is over; again does nothing."""
        with self.run_queue.lock:
            if self in self.run_queue.tickets:
                self.run_queue.tickets.remove(self)
            self.run_queue.call()


class RunQueue:
    """`at_once` turns under way, at most `room` tickets in line, the patient ones not counted. Safe between threads."""

    def __init__(self, at_once: int, room: int) -> None:
        if at_once < 1 or room < 0:
            raise ValueError(f"expected at least one turn at once and room for none or more, found {at_once}, {room}")
        self._at_once, self._room = at_once, room
        self.tickets: list[Ticket] = []  # as they came; the first `at_once` have their turn
        self.lock = Lock()

    @property
    def line(self) -> list[Ticket]:
        return self.tickets[self._at_once :]

    @property
    def active(self) -> int:
        return min(len(self.tickets), self._at_once)

    @property
    def waiting(self) -> int:
        return len(self.line)

    def join(self, *, is_patient: bool = False) -> Ticket:
        """A place in line, or a turn at once. Raises `Busy` when the line is full.

        `is_patient`: it comes in however long the line is, and takes no room from others; for the questions of a set.
        """
        with self.lock:
            counted = sum(not ticket.is_patient for ticket in self.line)
            if not is_patient and self.active == self._at_once and counted >= self._room:
                raise Busy(
                    f"Too many questions at the same time: expected at most {self._room} in line behind "
                    f"{self._at_once} under way, found {counted}.",
                    hint="Your question is still in its field: ask again in a minute.",
                )
            self.tickets.append(ticket := Ticket(self, is_patient))
            self.call()
            return ticket

    def call(self) -> None:
        for ticket in self.tickets[: self._at_once]:
            ticket.called.set()

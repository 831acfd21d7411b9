"""Work in the background: one job of a name in each session; what it is about may make it that of every session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import streamlit as st

from crag_core.app.background_jobs import Job
from crag_core.base.concurrency.shared import shared
from crag_core.base.protocols import Cancel
from crag_core.experiments.batch import TakeTurn
from crag_core.pipeline.run_queue import Ticket
from ui.session import startup

P = TypeVar("P")
R = TypeVar("R")


@shared
def live() -> dict[tuple[str, object], Job[Any, Any]]:
    """Of all sessions, by name and what they are about: a page that is loaded again finds its own."""
    return {}


def _own() -> dict[str, Job[Any, Any]]:
    """Those of this session, by name."""
    found: dict[str, Job[Any, Any]] = st.session_state.setdefault("jobs", {})
    return found


def start(
    name: str, work: Callable[[Job[P, R]], R], progress: P, about: object = None, ticket: Ticket | None = None
) -> None:
    """Begin it; nothing where one of this name is under way. `about` None: it is this session's alone."""

    def work_in_turn(job: Job[P, R]) -> R:
        with in_turn(ticket, job.cancel):
            return work(job)

    if not is_busy(name, about):
        begin(name, Job(work_in_turn, progress, ticket=ticket), about)


def begin(name: str, job: Job[Any, Any], about: object = None) -> None:
    startup.warm_up().start()
    job.start()
    join(name, job)
    if about is not None:
        _forget(lambda known, other: known == name and not other.is_running)
        live()[name, about] = job


def join(name: str, job: Job[Any, Any]) -> None:
    """Follow a job that another session has begun, or this one before its page was loaded again."""
    _own()[name] = job


@contextmanager
def in_turn(ticket: Ticket | None, cancel: Cancel) -> Iterator[None]:
    """In its place in the line of runs, and once the documents of the very first start are in."""
    warming = startup.warm_up()
    with ticket.turn(cancel) if ticket else nullcontext():
        while warming.is_running and not cancel.wait(0.1):
            pass
        yield


def in_line() -> Ticket:
    """A place in the line of all runs of this process; raises `Busy` where it is full."""
    return startup.shared_workbench().run_queue.join()


def turns() -> TakeTurn:
    """For work of this session on many questions: each waits in line by itself, and nobody for them all."""
    run_queue = startup.shared_workbench().run_queue
    return lambda cancel: run_queue.join(is_patient=True).turn(cancel)


def job(name: str, about: object = None) -> Job[Any, Any] | None:
    """Under way, or ended since somebody looked: that which all sessions share, else this session's."""
    return (live().get((name, about)) if about is not None else None) or _own().get(name)


def jobs_of_others(name: str) -> tuple[Job[Any, Any], ...]:
    """Under way in other sessions, one that was left by loading its page again among them."""
    mine = _own().get(name)
    return tuple(
        one for (known, _), one in list(live().items()) if known == name and one is not mine and one.is_running
    )


def is_busy(name: str, about: object = None) -> bool:
    found = job(name, about)
    return found is not None and found.is_running


def take_ended(name: str, about: object = None) -> Job[Any, Any] | None:
    """The job that has ended since the last redraw, put away; None without one."""
    done = job(name, about)
    if done is None or done.is_running:
        return None
    put_away(name)
    _forget(lambda known, other: other is done)
    return done


def put_away(name: str) -> None:
    _own().pop(name, None)


def _forget(is_over: Callable[[str, Job[Any, Any]], bool]) -> None:
    for key, one in list(live().items()):
        if is_over(key[0], one):
            live().pop(key, None)

"""Work in the background: one job of a name in each session; what it is about may make it that of every session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

import streamlit as st

from crag_core.app.background_jobs import Job, LiveJobs
from crag_core.base.concurrency.shared import shared
from crag_core.pipeline.run_queue import Ticket
from ui.session import app_state

P = TypeVar("P")
R = TypeVar("R")


@shared
def live() -> LiveJobs[Job[Any, Any]]:
    """Of all sessions, by name and what they are about."""
    return LiveJobs()


def _own() -> dict[str, Job[Any, Any]]:
    """Those of this session, by name."""
    found: dict[str, Job[Any, Any]] = st.session_state.setdefault("jobs", {})
    return found


def start(
    name: str,
    work: Callable[[Job[P, R]], R],
    progress: P,
    about: object = None,
    ticket: Ticket | None = None,
) -> None:
    """Begin it once the documents of the very first start are in; nothing where one of this name is under way.

    `about` None: it is this session's alone. `ticket`: its place in the line of runs, where it waits first.
    """
    if is_busy(name, about):
        return
    warming = app_state.warm_up()

    def work_afterwards(job: Job[P, R]) -> R:
        with ticket.turn(job.cancel) if ticket else nullcontext():
            while warming.is_running and not job.cancel.wait(0.1):
                pass
            return work(job)

    warming.start()
    _own()[name] = started = Job(work_afterwards, progress, ticket=ticket)
    started.start()
    if about is not None:
        live().add((name, about), started)


def job(name: str, about: object = None) -> Job[Any, Any] | None:
    """Under way, or ended since somebody looked: this session's, else whichever has the same `about`."""
    return _own().get(name) or live().get((name, about))


def is_busy(name: str, about: object = None) -> bool:
    found = job(name, about)
    return found is not None and found.is_running


def take_ended(name: str, about: object = None) -> Job[Any, Any] | None:
    """The job that has ended since the last redraw, put away; None without one."""
    done = job(name, about)
    if done is None or done.is_running:
        return None
    _own().pop(name, None)
    live().forget(done)
    return done

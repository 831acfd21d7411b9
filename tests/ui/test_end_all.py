"""At the end of the program every run under way is kept as far as it came, and nobody waits long for it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from crag_core.app import background_jobs
from crag_core.app.background_jobs import Job, job_of
from crag_core.base.concurrency.shutdown import Background
from crag_core.base.types.steps import Step, StepState
from crag_core.pipeline.run import Run
from crag_core.pipeline.run_queue import RunQueue
from crag_core.trace.trace import Trace
from tests import builders

BEGUN = builders.trace(builders.policy("paper"), steps=(Step("retrieve", "4 chunks"),), answer=None)
STOPPED = Step("grade", "Stopped by you.", StepState.STOPPED)


@pytest.fixture
def background(monkeypatch: pytest.MonkeyPatch) -> Background:
    """Of this test alone."""
    own = Background()
    monkeypatch.setattr(background_jobs, "at_end", own.at_end)
    return own


def stopped(run: Run) -> Trace:
    return replace(BEGUN, steps=(*BEGUN.steps, STOPPED)) if run.cancel.is_set() else BEGUN


def test_runs_that_hear_it_that_wait_in_line_and_that_are_deaf_are_kept(background: Background) -> None:
    kept: dict[str, Trace] = {}
    wakes = threading.Event()
    line = RunQueue(at_once=1, room=1)
    inside, waits = line.join(), line.join()

    def hears(run: Run) -> Trace:
        run.cancel.wait()
        return stopped(run)

    def in_line(run: Run) -> Trace:
        with waits.turn(run.cancel) as is_mine:
            assert not is_mine
            return stopped(run)

    def deaf(run: Run) -> Trace:
        run.listener.started("search")
        wakes.wait()
        return BEGUN

    works = {"hears": hears, "in line": in_line, "deaf": deaf, "done": lambda run: BEGUN}
    jobs = {
        name: job_of(work, BEGUN, lambda trace, name=name: kept.__setitem__(name, trace))
        for name, work in works.items()
    }
    for job in jobs.values():
        job.start()
    jobs["done"].wait()
    background.close(seconds=0.5)
    told = {name: trace.failure and (trace.failure.name, trace.failure.summary) for name, trace in kept.items()}
    ended = "The program was ended."
    assert told == {"hears": ("grade", ended), "in line": ("grade", ended), "deaf": ("search", ended), "done": None}
    wakes.set()
    inside.leave()


def test_whatever_works_in_the_background_is_stopped_and_waited_for(background: Background) -> None:
    def work(job: Job[None, str]) -> str:
        job.cancel.wait()
        time.sleep(0.2)
        return "stopped"

    begun, never_begun = Job(work, None), Job(work, None)
    begun.start()
    begun.start()
    background.close(seconds=20)
    assert (begun.result, begun.is_running) == ("stopped", False)
    assert (never_begun.result, never_begun.is_running) == (None, True)


def test_nobody_waits_for_a_model_that_is_being_loaded(background: Background) -> None:
    wakes = threading.Event()
    loading = Job(lambda job: wakes.wait(), None)
    loading.can_be_left = True
    loading.start()
    background.close(seconds=600)
    assert loading.is_running and loading.is_stopping
    wakes.set()

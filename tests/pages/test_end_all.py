"""At the end of the program every run under way is kept as far as it came, and nobody waits long for it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from crag_core.run import Run
from crag_core.trace import Trace
from crag_core.turnstile import Turnstile
from crag_core.types import Step, StepState
from tests.core import builders
from ui.jobs import Job, end_all

BEGUN = builders.trace(builders.policy("paper"), steps=(Step("retrieve", "4 passages"),), answer=None)
STOPPED = Step("grade", "Stopped by you.", StepState.STOPPED)


def stopped(run: Run) -> Trace:
    return replace(BEGUN, steps=(*BEGUN.steps, STOPPED)) if run.cancel.is_set() else BEGUN


def test_runs_that_hear_it_that_wait_in_line_and_that_are_deaf_are_kept() -> None:
    kept: dict[str, Trace] = {}
    wakes = threading.Event()
    line = Turnstile(at_once=1, room=1)
    inside, waits = line.join("one"), line.join("two")

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
        name: Job(work, BEGUN, keep=lambda trace, name=name: kept.__setitem__(name, trace))
        for name, work in works.items()
    }
    jobs["done"].wait()
    began = time.monotonic()
    end_all(jobs, seconds=0.5)
    assert time.monotonic() - began < 5
    told = {name: trace.failure and (trace.failure.name, trace.failure.summary) for name, trace in kept.items()}
    ended = "The program was ended."
    assert told == {"hears": ("grade", ended), "in line": ("grade", ended), "deaf": ("search", ended), "done": None}
    wakes.set()
    inside.leave()

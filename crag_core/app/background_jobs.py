"""Jobs in background threads, runs among them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from crag_core.base.concurrency.priority import give_way
from crag_core.base.concurrency.shutdown import at_end
from crag_core.base.errors import CragError
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.steps import Step, StepState
from crag_core.pipeline.run import Listener, Run
from crag_core.pipeline.run_queue import Ticket
from crag_core.trace.trace import Trace

P = TypeVar("P")
R = TypeVar("R")


class Job(Generic[P, R]):
    """Something done in a thread of its own, once `start` is called (again does nothing).

    `work` is given the job: it tells its `progress`, and heeds `cancel`. What it returns is the `result`, and
    what ends it early the `error`, or the `bug` where it is one of ours. `owner` is who asked, ""
    where nobody signs in; `ticket` is its place in line, None where it needs none.

    When the program ends it is stopped, and waited for unless `can_be_left`; if it still goes on, `give_up` is called.
    """

    def __init__(
        self,
        work: Callable[[Job[P, R]], R],
        progress: P,
        *,
        owner: str = "",
        ticket: Ticket | None = None,
        give_up: Callable[[], object] = lambda: None,
    ) -> None:
        self.progress = progress
        self.owner, self.ticket = owner, ticket
        self.result: R | None = None
        self.error: CragError | None = None
        self.bug: Exception | None = None
        self.cancel = threading.Event()
        self.started_at = time.monotonic()
        self.can_be_left = False
        """For work that cannot be stopped, and of which nothing would be kept."""
        self.is_program_ending = False
        self._work, self._give_up = work, give_up
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._starting = threading.Lock()
        self._is_over = False

    def start(self, when_over: Callable[[], object] = lambda: None) -> None:
        """`when_over` is called at the end, from the thread of the job."""
        with self._starting:
            if self._thread.ident is None:
                self._when_over = when_over
                self._leave = at_end(self._end, self._finish)
                self._thread.start()

    @property
    def is_running(self) -> bool:
        """From the beginning, before it is started too."""
        return not self._is_over

    @property
    def is_stopping(self) -> bool:
        return self.cancel.is_set() and self.is_running

    def stop(self) -> None:
        self.cancel.set()

    def tell(self, progress: P) -> None:
        self.progress = progress

    def wait(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        give_way()
        try:
            self.result = self._work(self)
        except CragError as error:
            self.error = error
        except Exception as error:  # a bug of ours must reach the page, not die with the thread
            self.bug = error
        finally:
            self._is_over = True
            self._leave()
            self._when_over()

    def _end(self) -> None:
        """Stop it because the program ends."""
        self.is_program_ending = True
        self.stop()

    def _finish(self, seconds: float) -> None:
        """Wait so long for its end, because the program ends."""
        if self._thread.ident is not None and not self.can_be_left:
            self.wait(seconds)
        if self.is_running:
            self._give_up()


class RunProgress(Listener):
    """A run as it grows: what it does now, what it has recorded, the answer so far."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.step = "starting"
        self.counted: tuple[int, int] | None = None
        """How much of the step is done, and of how much."""
        self.text = ""

    def started(self, name: str) -> None:
        self.step, self.counted = name, None

    def progressed(self, name: str, done: int, total: int) -> None:
        if name == self.step:  # of two lanes, the one that was begun last is shown
            self.counted = (done, total)

    def finished(self, step: Step, trace: Trace) -> None:
        self.trace = trace

    def wrote(self, piece: str) -> None:
        self.text += piece


RunJob = Job[RunProgress, Trace]


def job_of(
    work: Callable[[Run], Trace],
    begun: Trace,
    keep: Callable[[Trace], object] = lambda trace: None,
    owner: str = "",
    ticket: Ticket | None = None,
) -> RunJob:
    """A job that does a run; `keep` is given the record at its end, or when the program ends before."""

    def do(job: RunJob) -> Trace:
        done = work(Run(progress, job.cancel))
        progress.trace = program_ended(done) if job.is_program_ending else done
        keep(progress.trace)
        return progress.trace

    def give_up() -> None:
        keep(program_ended(progress.trace, progress.step))

    progress = RunProgress(begun)
    return Job(do, progress, owner=owner, ticket=ticket, give_up=give_up)


def program_ended(trace: Trace, step: str = "") -> Trace:
    """The record of a run that was stopped because the program ended, or that still was at `step` then.

    One that came to its end all the same stays as it is.
    """
    if step and trace.is_unfinished and trace.failure is None:
        return replace(trace, steps=(*trace.steps, Step(step, "The program was ended.", StepState.STOPPED)))
    answer = trace.answer
    if answer is not None and answer.state is AnswerState.STOPPED:
        answer = replace(answer, message=_not_by_you(answer.message))
    return replace(trace, steps=tuple(map(_describe, trace.steps)), answer=answer)


def _describe(step: Step) -> Step:
    return replace(step, summary=_not_by_you(step.summary)) if step.state is StepState.STOPPED else step


def _not_by_you(words: str) -> str:
    return words.replace("Stopped by you", "The program was ended").replace("stopped by you", "the program was ended")

"""Work that goes on in its own thread while the page keeps answering; knows nothing of the screen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from crag_core.batch import Controls, OnScoring, Scoring
from crag_core.documents import Ingested, OnProgress, Progress, Rebuilt
from crag_core.ending import program_ended
from crag_core.errors import CragError
from crag_core.run import Listener, Run
from crag_core.trace import Trace
from crag_core.turnstile import Ticket
from crag_core.types import Step


class _Work:
    """Something done in a thread of its own, begun at once; `bug` holds what of ours went wrong in it."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self.bug: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), name=name, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def wait(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # a bug of ours must reach the page, not die with the thread
            self.bug = error


class Job(_Work, Listener):
    """A run under way: what it does now, what it has recorded, the answer so far. `stop()` stops it for real.

    `keep` is given the record at the end. `owner` is who asked, "" where nobody signs in; `ticket` is its place in
    line, None where it needs none.
    """

    def __init__(
        self,
        work: Callable[[Run], Trace],
        trace: Trace,
        owner: str = "",
        ticket: Ticket | None = None,
        keep: Callable[[Trace], object] = lambda trace: None,
    ) -> None:
        self.owner = owner
        self.ticket = ticket
        self._keep = keep
        self._is_program_ending = False
        self.trace = trace
        self.step = "starting"
        self.progress: tuple[int, int] | None = None
        self.text = ""
        self.started_at = time.monotonic()
        self.cancel = threading.Event()

        def run() -> None:
            done = work(Run(self, self.cancel))
            self.trace = program_ended(done) if self._is_program_ending else done
            keep(self.trace)

        super().__init__(run, "run")

    @property
    def is_stopping(self) -> bool:
        return self.cancel.is_set() and self.is_running

    def stop(self) -> None:
        self.cancel.set()

    def end(self) -> None:
        """Stop it because the program ends."""
        self._is_program_ending = True
        self.stop()

    def give_up(self) -> None:
        """Keep what there is of one that does not come to its end: the program waits no longer."""
        self._keep(program_ended(self.trace, self.step))

    def started(self, name: str) -> None:
        self.step, self.progress = name, None

    def progressed(self, name: str, done: int, total: int) -> None:
        if name == self.step:  # of two lanes, the one that was begun last is told of
            self.progress = (done, total)

    def finished(self, step: Step, trace: Trace) -> None:
        self.trace = trace

    def wrote(self, piece: str) -> None:
        self.text += piece


def end_all(jobs: Mapping[str, Job], seconds: float = 5.0) -> None:
    """At the end of the program: stop the runs under way, and let each keep what was done, within so many seconds."""
    under_way = [job for job in list(jobs.values()) if job.is_running]
    for job in under_way:
        job.end()
    until = time.monotonic() + seconds
    for job in under_way:
        job.wait(max(until - time.monotonic(), 0.0))
    for job in under_way:
        if job.is_running:
            job.give_up()


class Comparing(_Work, Listener):
    """One question on its way through several configurations: the runs so far, and what the present one does."""

    def __init__(self, work: Callable[[Run], tuple[Trace, ...]], count: int, ticket: Ticket | None = None) -> None:
        self.ticket = ticket
        self.traces: tuple[Trace, ...] = ()
        self.step = "starting"
        self.done, self.count = 0, count
        self.started_at = time.monotonic()
        self.cancel = threading.Event()
        self._last = ""

        def run() -> None:
            self.traces = work(Run(self, self.cancel))

        super().__init__(run, "comparing")

    @property
    def is_stopping(self) -> bool:
        return self.cancel.is_set() and self.is_running

    def stop(self) -> None:
        self.cancel.set()

    def started(self, name: str) -> None:
        self.step = name

    def finished(self, step: Step, trace: Trace) -> None:
        self.done += bool(self._last) and trace.id != self._last
        self._last = trace.id


class Filling:
    """Work on the index that reports its progress, once `start` is called (again does nothing)."""

    def __init__(self, name: str) -> None:
        self.progress: Progress | None = None
        self.error: CragError | None = None
        self.bug: Exception | None = None
        self.is_running = True
        self._cancel = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._starting = threading.Lock()

    @property
    def is_stopping(self) -> bool:
        return self._cancel.is_set() and self.is_running

    def start(self) -> None:
        with self._starting:
            if self._thread.ident is None:
                self._thread.start()

    def stop(self) -> None:
        self._cancel.set()

    def wait(self) -> None:
        self._thread.join()

    def _do(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        try:
            self._do()
        except CragError as error:
            self.error = error
        except Exception as error:  # a bug of ours must reach the page, not die with the thread
            self.bug = error
        finally:
            self.is_running = False

    def _report(self, progress: Progress) -> None:
        self.progress = progress


class Indexing(Filling):
    """Documents on their way into the index.

    `work` is given where to report progress, and the event that stops it; it returns what became of each file.
    """

    def __init__(self, work: Callable[[OnProgress, threading.Event], tuple[Ingested, ...]]) -> None:
        super().__init__("indexing")
        self.outcomes: tuple[Ingested, ...] = ()
        self.interrupted: tuple[Ingested, ...] = ()
        """What an earlier process had begun and `work` has finished."""
        self._work = work

    def _do(self) -> None:
        self.outcomes = self._work(self._report, self._cancel)


class Rebuilding(Filling):
    """All passages on their way to be made anew; `work` as for `Indexing`, None where there was nothing to do."""

    def __init__(self, work: Callable[[OnProgress, threading.Event], Rebuilt | None]) -> None:
        super().__init__("rebuilding")
        self.rebuilt: Rebuilt | None = None
        self._work = work

    def _do(self) -> None:
        self.rebuilt = self._work(self._report, self._cancel)


class Grading(_Work):
    """A labelled set on its way, graded or run whole: how far it is, and what ended it early."""

    def __init__(self, work: Callable[[Controls, OnScoring], Scoring]) -> None:
        self.scoring: Scoring | None = None
        self.error: CragError | None = None
        self.controls = Controls()

        def run() -> None:
            try:
                self.scoring = work(self.controls, self._tell)
            except CragError as error:
                self.error = error

        super().__init__(run, "grading")

    @property
    def is_paused(self) -> bool:
        return self.controls.pause.is_set()

    @property
    def is_stopping(self) -> bool:
        return self.controls.cancel.is_set() and self.is_running

    def pause(self) -> None:
        self.controls.pause.set()

    def go_on(self) -> None:
        self.controls.pause.clear()

    def stop(self) -> None:
        self.controls.cancel.set()

    def _tell(self, scoring: Scoring) -> None:
        self.scoring = scoring

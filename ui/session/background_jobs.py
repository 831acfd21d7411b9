"""Jobs in background threads; independent of Streamlit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from crag_core.base.concurrency.shutdown import at_end
from crag_core.base.documents import Ingested, OnProgress, Progress, Rebuilt
from crag_core.base.errors import CragError
from crag_core.base.types import Step
from crag_core.experiments.batch import Controls, OnScoring, Scoring
from crag_core.pipeline.run import Listener, Run
from crag_core.pipeline.run_queue import Ticket
from crag_core.trace.trace import Trace
from ui.session.interrupted import program_ended


class _Work:
    """Something done in a thread of its own, once it is begun; `bug` holds what of ours went wrong in it.

    When the program ends it is stopped, and waited for.
    """

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self.bug: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), name=name, daemon=True)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def wait(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def stop(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Stop it because the program ends."""
        self.stop()

    def finish(self, seconds: float) -> None:
        """Wait so long for its end, because the program ends."""
        if self._thread.ident is not None:
            self.wait(seconds)

    def _begin(self) -> None:
        self._leave = at_end(self.end, self.finish)
        self._thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # a bug of ours must reach the page, not die with the thread
            self.bug = error
        finally:
            self._leave()


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
        self._begin()

    @property
    def is_stopping(self) -> bool:
        return self.cancel.is_set() and self.is_running

    def stop(self) -> None:
        self.cancel.set()

    def end(self) -> None:
        self._is_program_ending = True
        self.stop()

    def finish(self, seconds: float) -> None:
        """Of one that does not come to its end by then, keep what there is."""
        super().finish(seconds)
        if self.is_running:
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
        self._begin()

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


class Filling(_Work):
    """Work on the index that reports its progress, once `start` is called (again does nothing)."""

    def __init__(self, name: str) -> None:
        super().__init__(self._work_on, name)
        self.progress: Progress | None = None
        self.error: CragError | None = None
        self.is_loading = False
        """A model: that cannot be stopped, and nothing is kept of it, so the end of the program waits for nothing."""
        self._cancel = threading.Event()
        self._starting = threading.Lock()
        self._is_over = False

    @property
    def is_running(self) -> bool:
        """From the beginning, before it is started too."""
        return not self._is_over

    @property
    def is_stopping(self) -> bool:
        return self._cancel.is_set() and self.is_running

    def start(self) -> None:
        with self._starting:
            if self._thread.ident is None:
                self._begin()

    def stop(self) -> None:
        self._cancel.set()

    def finish(self, seconds: float) -> None:
        if not self.is_loading:
            super().finish(seconds)

    def _do(self) -> None:
        raise NotImplementedError

    def _work_on(self) -> None:
        try:
            self._do()
        except CragError as error:
            self.error = error
        except Exception as error:
            self.bug = error
        finally:
            self._is_over = True

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
        self._begin()

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

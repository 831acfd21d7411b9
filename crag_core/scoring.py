"""Retrieve and grade a labelled set, once: several questions at a time, to be paused, stopped and taken up again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event
from typing import Protocol

from crag_core import errors
from crag_core.errors import CragError, Stopped
from crag_core.pipeline import Pipeline
from crag_core.protocols import Cancel, Clock
from crag_core.run import Run
from crag_core.trace import Trace
from crag_core.tuning.labelled import LabelledQuestion
from crag_core.tuning.scored import ScoredQuestion, scored_from
from crag_core.waiting import GLANCE
from crag_core.words import fold

FAILURES = 3
"""Questions that fail one after the other until the rest is not tried: then something is away."""
_RECENT = 20


class ScoreKeeper(Protocol):
    """Keeps what was graded under one set of conditions; raises `ScoresUnavailable`."""

    def keys(self) -> set[str]: ...

    def add(self, scored: ScoredQuestion, trace: Trace) -> None: ...


@dataclass(frozen=True)
class Scoring:
    """How far it is. `left` is the estimated time in seconds, None before the first question is done."""

    done: int
    total: int
    failed: int = 0
    left: float | None = None


@dataclass(frozen=True)
class Controls:
    """What others do to a scoring: `cancel` ends it after the questions under way, `pause` holds it while set."""

    cancel: Cancel = field(default_factory=Event)
    pause: Event = field(default_factory=Event)


OnScoring = Callable[[Scoring], None]


def score(
    questions: Sequence[LabelledQuestion],
    pipeline: Pipeline,
    keeper: ScoreKeeper,
    clock: Clock,
    *,
    workers: int = 1,
    sentences: bool = True,
    controls: Controls | None = None,
    on_progress: OnScoring = lambda scoring: None,
) -> Scoring:
    """Grade what `keeper` does not hold yet; what is graded is kept at once, so that a kill loses what was under way.

    `sentences`: score those of passages that hold a known answer too. Raises the error of the last question where
    `FAILURES` of them failed in a row, or all did.
    """
    controls = controls or Controls()
    known = keeper.keys()
    todo = [question for question in questions if question.key not in known]
    progress = _Progress(clock, len(questions) - len(todo), len(questions), on_progress)
    waiting = iter(todo)
    with ThreadPoolExecutor(workers, thread_name_prefix="scoring") as pool:
        # No more than a few are in memory at a time, however long the set is.
        going = {pool.submit(_grade, asked, pipeline, sentences, controls) for asked in _take(waiting, 2 * workers)}
        while going:
            done, going = wait(going, return_when=FIRST_COMPLETED)
            for one in done:
                progress.note(_kept(one, keeper))
            if progress.is_hopeless or controls.cancel.is_set():
                controls.cancel.set()
                continue
            going |= {pool.submit(_grade, asked, pipeline, sentences, controls) for asked in _take(waiting, len(done))}
    if progress.error and (progress.is_hopeless or progress.failed == len(todo)):
        raise progress.error
    return progress.now()


class _Progress:
    """Counts, and estimates by the last few questions how long the rest takes."""

    def __init__(self, clock: Clock, done: int, total: int, tell: OnScoring) -> None:
        self._clock, self._tell = clock, tell
        self.done, self.total, self.failed, self._in_a_row = done, total, 0, 0
        self._times = [clock()]
        self.error: CragError | None = None
        tell(self.now())

    @property
    def is_hopeless(self) -> bool:
        return self._in_a_row >= FAILURES

    def note(self, error: CragError | None) -> None:
        if isinstance(error, Stopped):
            return
        self.error = error or self.error
        self.failed += error is not None
        self._in_a_row = self._in_a_row + 1 if error else 0
        self.done += error is None
        self._times = [*self._times[-_RECENT:], self._clock()]
        self._tell(self.now())

    def now(self) -> Scoring:
        each = (self._times[-1] - self._times[0]) / (len(self._times) - 1) if len(self._times) > 1 else math.nan
        left = each * (self.total - self.done - self.failed)
        return Scoring(self.done, self.total, self.failed, None if math.isnan(left) else max(left, 0.0))


def _grade(
    asked: LabelledQuestion, pipeline: Pipeline, sentences: bool, controls: Controls
) -> tuple[LabelledQuestion, Trace]:
    while controls.pause.is_set() and not controls.cancel.wait(GLANCE):
        pass
    run = Run(cancel=controls.cancel)
    trace = pipeline.grade(asked.question, run, asked.without)
    answers = tuple(filter(None, map(fold, asked.answers)))
    holding = tuple(
        passage for passage in trace.passages or () if any(answer in fold(passage.text) for answer in answers)
    )
    if sentences and holding and trace.failure is None:
        trace = pipeline.score_strips(trace, holding, run)
    return asked, trace


def _kept(done: Future[tuple[LabelledQuestion, Trace]], keeper: ScoreKeeper) -> CragError | None:
    """Keep what was graded; why a question failed."""
    asked, trace = done.result()
    if failure := trace.failure:
        return errors.kind_named(failure.error)(failure.summary, hint=failure.hint) if failure.error else Stopped("")
    keeper.add(scored_from(trace, asked), trace)
    return None


def _take(waiting: Iterable[LabelledQuestion], count: int) -> list[LabelledQuestion]:
    return [asked for _, asked in zip(range(count), waiting, strict=False)]

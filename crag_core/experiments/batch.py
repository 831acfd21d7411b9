"""Runs many questions, several at a time, with stop, resume and an estimate of the time left; grades a set."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from threading import Event
from typing import Protocol, TypeVar

from crag_core.base import errors
from crag_core.base.concurrency import remembered
from crag_core.base.errors import BadRecord, CragError, Stopped
from crag_core.base.protocols import Cancel, Clock
from crag_core.base.types.passages import Logged, Passage
from crag_core.experiments.labelled.graded import ScoredQuestion, scored_from
from crag_core.experiments.labelled.questions import Gradable
from crag_core.pipeline.run import QuestionRunner, Run
from crag_core.trace.trace import Trace

FAILURES = 3
"""Questions that fail one after the other until the rest is not tried: then something is away."""
_RECENT = 20

Recorded = Mapping[str, tuple[tuple[Passage, ...], Logged]]
"""By the key of a question, the chunks that the record of a log has, and what it says besides."""

Asked = TypeVar("Asked")
Facts = TypeVar("Facts")


@dataclass(frozen=True)
class SetProgress:
    """How far it is. `left` is the estimated time in seconds, None before the first question is done."""

    done: int
    total: int
    failed: int = 0
    left: float | None = None


OnSetProgress = Callable[[SetProgress], None]
TakeTurn = Callable[[Cancel], AbstractContextManager[object]]
"""What each question is done within: it may wait there until it is its turn, or until the flag is set."""


def at_once(cancel: Cancel) -> AbstractContextManager[object]:
    """No question waits for anybody."""
    return nullcontext()


def run_batch(
    todo: Sequence[Asked],
    do: Callable[[Asked], CragError | None],
    clock: Clock,
    *,
    total: int,
    workers: int = 1,
    cancel: Event,
    on_progress: OnSetProgress,
    take_turn: TakeTurn = at_once,
) -> SetProgress:
    """`do` each of `todo`, which tells why it failed; what it made it has kept by then. `total` counts those done
    before too; `cancel` ends it after those under way. Raises the error of the last question where `FAILURES` of them
    failed in a row, or all did.
    """
    waiting, last, in_a_row = iter(todo), None, 0
    times = deque([clock()], maxlen=_RECENT + 1)
    progress = SetProgress(total - len(todo), total)
    on_progress(progress)

    def work(asked: Asked) -> CragError | None:
        with take_turn(cancel):
            return do(asked)

    with ThreadPoolExecutor(workers, thread_name_prefix="batch") as pool:
        # No more than a few are in memory at a time, however long the set is.
        going = {pool.submit(work, asked) for asked in islice(waiting, 2 * workers)}
        try:
            while going:
                ended, going = wait(going, return_when=FIRST_COMPLETED)
                for error in [one.result() for one in ended]:
                    if isinstance(error, Stopped):
                        continue
                    last, in_a_row = error or last, in_a_row + 1 if error else 0
                    times.append(clock())
                    progress = _further(progress, error is None, times)
                    on_progress(progress)
                if in_a_row >= FAILURES or cancel.is_set():
                    cancel.set()
                    continue
                going |= {pool.submit(work, asked) for asked in islice(waiting, len(ended))}
        except BaseException:  # Ctrl-C too must not wait for all that the pool still holds
            cancel.set()
            raise
    if last and (in_a_row >= FAILURES or progress.failed == len(todo)):
        raise last
    return progress


def _further(progress: SetProgress, is_done: bool, times: Sequence[float]) -> SetProgress:
    """By one question; the last few tell how long the rest takes."""
    done, failed = progress.done + is_done, progress.failed + (not is_done)
    each = (times[-1] - times[0]) / (len(times) - 1)
    return SetProgress(done, progress.total, failed, max(each * (progress.total - done - failed), 0.0))


# --- grading a set ----------------------------------------------------------------------------------------------------


class Keeper(Protocol[Facts]):
    """Keeps what runs of questions came to, by the key of the question; raises `ScoresUnavailable`."""

    def load(self) -> dict[str, Facts]: ...

    def add(self, facts: Facts, trace: Trace) -> None: ...


def score(
    questions: Sequence[Gradable],
    engine: QuestionRunner,
    keeper: Keeper[ScoredQuestion],
    clock: Clock,
    *,
    workers: int = 1,
    recorded: Recorded | None = None,
    cancel: Event | None = None,
    on_progress: OnSetProgress = lambda scoring: None,
    take_turn: TakeTurn = at_once,
) -> SetProgress:
    """Grade what `keeper` does not hold yet; what is graded is kept at once, so that a kill loses what was under way.

    Of a log's record its sentences are scored too. Raises as `run_batch` does.
    """
    cancel, logs = cancel or Event(), recorded or {}
    known = keeper.load().keys()  # of rows that can be read
    todo = [question for question in questions if question.key not in known]
    remembered.forget_all()  # what an earlier run has read would take no time

    def do(asked: Gradable) -> CragError | None:
        try:
            own = prepared(engine, asked, logs)
        except BadRecord as error:
            return error
        trace = _grade(asked, own, Run(cancel=cancel))
        failure = failure_of(trace)
        if failure is None:
            keeper.add(scored_from(trace, asked), trace)
        return failure

    return run_batch(
        todo, do, clock, total=len(questions), workers=workers, cancel=cancel, on_progress=on_progress,
        take_turn=take_turn,
    )  # fmt: skip


def prepared(engine: QuestionRunner, asked: Gradable, recorded: Recorded) -> QuestionRunner:
    """The engine for one question: without what it is asked without, and over the chunks that its log has.

    Raises `BadRecord` for a record that is gone.
    """
    if not asked.log:
        return engine.hiding(asked.without)
    found = recorded.get(asked.key)
    if found is None:
        raise BadRecord(
            f"The log {asked.log!r} has no record {asked.record!r}.", hint="Import it again, or delete this set."
        )
    return engine.over(*found).hiding(asked.without)


def failure_of(trace: Trace) -> CragError | None:
    """What broke a run off, `Stopped` where somebody stopped it."""
    failure = trace.failure
    if failure is None:
        return None
    return errors.kind_named(failure.error)(failure.summary, hint=failure.hint) if failure.error else Stopped("")


def _grade(asked: Gradable, engine: QuestionRunner, run: Run) -> Trace:
    trace = engine.grade(asked.question, run)
    if asked.log and trace.passages and trace.failure is None:
        trace = engine.score_strips(trace, trace.passages, run)
    return trace

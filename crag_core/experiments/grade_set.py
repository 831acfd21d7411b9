"""Retrieves and grades a labelled set once, with pause, stop and resume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from crag_core.base import errors
from crag_core.base.errors import CragError, Stopped
from crag_core.base.protocols import Clock
from crag_core.base.text.words import fold
from crag_core.experiments.batch import Controls, OnSetProgress, SetProgress, TakeTurn, at_once, run_batch
from crag_core.experiments.labelled.questions import LabelledQuestion
from crag_core.experiments.labelled.scored import ScoredQuestion, scored_from
from crag_core.pipeline.pipeline import Pipeline
from crag_core.pipeline.run import Run
from crag_core.trace.trace import Trace


class ScoreKeeper(Protocol):
    """Keeps what was graded under one set of conditions; raises `ScoresUnavailable`."""

    def keys(self) -> set[str]: ...

    def add(self, facts: ScoredQuestion, trace: Trace) -> None: ...


def score(
    questions: Sequence[LabelledQuestion],
    pipeline: Pipeline,
    keeper: ScoreKeeper,
    clock: Clock,
    *,
    workers: int = 1,
    sentences: bool = True,
    controls: Controls | None = None,
    on_progress: OnSetProgress = lambda scoring: None,
    take_turn: TakeTurn = at_once,
) -> SetProgress:
    """Grade what `keeper` does not hold yet; what is graded is kept at once, so that a kill loses what was under way.

    `sentences`: score those of passages that hold a known answer too. Raises as `run_batch` does.
    """
    controls = controls or Controls()
    known = keeper.keys()
    todo = [question for question in questions if question.key not in known]

    def do(asked: LabelledQuestion) -> CragError | None:
        trace = _grade(asked, pipeline, sentences, Run(cancel=controls.cancel))
        failure = failure_of(trace)
        if failure is None:
            keeper.add(scored_from(trace, asked), trace)
        return failure

    return run_batch(
        todo, do, clock, total=len(questions), workers=workers, controls=controls, on_progress=on_progress,
        take_turn=take_turn,
    )  # fmt: skip


def failure_of(trace: Trace) -> CragError | None:
    """What broke a run off, `Stopped` where somebody stopped it."""
    failure = trace.failure
    if failure is None:
        return None
    return errors.kind_named(failure.error)(failure.summary, hint=failure.hint) if failure.error else Stopped("")


def _grade(asked: LabelledQuestion, pipeline: Pipeline, sentences: bool, run: Run) -> Trace:
    trace = pipeline.hiding(asked.without).grade(asked.question, run)
    answers = tuple(filter(None, map(fold, asked.answers)))
    holding = tuple(
        passage for passage in trace.passages or () if any(answer in fold(passage.text) for answer in answers)
    )
    if sentences and holding and trace.failure is None:
        trace = pipeline.score_strips(trace, holding, run)
    return trace

"""Runs one question, or a labelled set, under several configurations.

Each configuration runs by itself, one after the other, and makes every call of its own, so its record holds what it
really cost: what an earlier run has read is forgotten before. Models are loaded before anything is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event

from crag_core.base.concurrency import remembered
from crag_core.base.errors import BadRecord, CragError, Stopped
from crag_core.base.protocols import Cancel, Clock
from crag_core.experiments.batch import (
    Keeper,
    OnSetProgress,
    Recorded,
    SetProgress,
    TakeTurn,
    at_once,
    failure_of,
    prepared,
    run_batch,
)
from crag_core.experiments.comparison.outcome import Outcome, outcome_of
from crag_core.experiments.labelled.questions import LabelledQuestion
from crag_core.pipeline.answer_stages import unmeasured
from crag_core.pipeline.run import QuestionRunner, Run
from crag_core.trace.trace import Trace

Judged = Mapping[str, Mapping[str, int]]
"""By the key of a question, the grades of files, where its set has them."""
QUESTION = "Is everything in its place?"


@dataclass(frozen=True)
class Contender:
    """A configuration that takes part: its engine, and where its outcomes go."""

    engine: QuestionRunner
    keeper: Keeper[Outcome]


def run_each(question: str, engines: Sequence[QuestionRunner], run: Run | None = None) -> tuple[Trace, ...]:
    """The runs of one question, in the order of `engines`; a stop ends the one under way, and no other is begun."""
    run = run or Run()
    traces: list[Trace] = []
    for engine in engines:
        remembered.forget_all()
        traces.append(_without_pause(engine).run(question, run))
        if run.cancel.is_set():
            break
    return tuple(traces)


def run_set(
    questions: Sequence[LabelledQuestion],
    contenders: Sequence[Contender],
    clock: Clock,
    *,
    judged: Judged | None = None,
    recorded: Recorded | None = None,
    cancel: Event | None = None,
    on_progress: OnSetProgress = lambda scoring: None,
    prepare: Callable[[], None] | None = None,
    take_turn: TakeTurn = at_once,
) -> SetProgress:
    """Run what the keepers do not hold yet; a question counts as done when every configuration has run it.

    `prepare` is called before the first one is run, and not at all where nothing is missing. Each run is kept at once,
    but not one that broke off or whose answer could not be measured, for it would count as whole. Raises as
    `run_batch` does.
    """
    cancel, grades, logs = cancel or Event(), judged or {}, recorded or {}
    known = [contender.keeper.load().keys() for contender in contenders]  # of rows that can be read
    todo = [asked for asked in questions if not all(asked.key in keys for keys in known)]

    def do(asked: LabelledQuestion) -> CragError | None:
        failure: CragError | None = None
        for contender, keys in zip(contenders, known, strict=True):
            if asked.key in keys:
                continue
            try:
                engine = prepared(_without_pause(contender.engine), asked, logs)
            except BadRecord as error:
                return error
            remembered.forget_all()
            trace = engine.run(asked.question, Run(cancel=cancel))
            broken = failure_of(trace) or unmeasured(trace)
            if isinstance(broken, Stopped):
                return broken
            if broken is None:
                contender.keeper.add(outcome_of(trace, asked, grades.get(asked.key)), trace)
            failure = failure or broken
        return failure

    total = len(questions)
    if todo and prepare:
        on_progress(SetProgress(total - len(todo), total))
        prepare()
    return run_batch(todo, do, clock, total=total, cancel=cancel, on_progress=on_progress, take_turn=take_turn)


def _without_pause(engine: QuestionRunner) -> QuestionRunner:
    """The web search of one configuration, or for one question, does not keep the next from searching."""
    return engine.with_parts(pause=None)


# --- warming up -------------------------------------------------------------------------------------------------------


def warm_up(engines: Iterable[QuestionRunner], cancel: Cancel) -> None:
    """Let each part do a little work, so that its model is loaded; neither a language model nor the web is asked.

    Never raises a `CragError`: the run that meets a fault tells it.
    """
    used: set[Hashable] = set()
    for engine in engines:
        made, parts = engine.settings, engine.parts
        key = (made.embedding, made.evaluator.identity, made.strip_evaluator.identity)
        if key in used or cancel.is_set():
            continue
        used.add(key)
        with suppress(CragError):
            passages = parts.retriever.retrieve(QUESTION, 1).passages if parts.retriever else ()
            if passages and not parts.evaluator.card.calls_model:
                parts.evaluator.grade(QUESTION, passages, cancel)
            if passages:
                parts.strip_evaluator.grade(QUESTION, passages, cancel)

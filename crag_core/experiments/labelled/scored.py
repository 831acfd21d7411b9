"""A graded labelled question: everything that a policy decides from, without texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from crag_core.base.text.words import fold
from crag_core.base.types import Grade, Passage, Scores, Usage
from crag_core.experiments.labelled.questions import LabelledQuestion
from crag_core.trace.trace import Trace


@dataclass(frozen=True)
class StripFact:
    """A strip without its text: its score, its length in characters, and whether a known answer stands in it."""

    score: float | None
    length: int
    answers: bool


@dataclass(frozen=True)
class ScoredQuestion:
    """One first retrieval and its grades. `key` is that of the labelled question.

    `passages` have no text and `grades` no raw reply: the run `run_id` has both. `strips` is None where sentences were
    not scored. `seconds` is what retrieval and grading took.
    """

    key: str
    run_id: str
    passages: tuple[Passage, ...]
    grades: tuple[Grade, ...] | None
    signals: Scores = ()
    strips: tuple[StripFact, ...] | None = None
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Case:
    """A question with what is expected of it and what was found for it."""

    asked: LabelledQuestion
    scored: ScoredQuestion


def scored_from(trace: Trace, asked: LabelledQuestion) -> ScoredQuestion:
    """Of a run that retrieved and graded, and perhaps scored sentences."""
    passages = trace.passages or ()
    strips = None
    if trace.strips is not None:
        answers = tuple(filter(None, map(fold, asked.answers)))
        strips = tuple(
            StripFact(strip.score, len(strip.text), any(answer in fold(strip.text) for answer in answers))
            for strip in trace.strips
        )
    return ScoredQuestion(
        key=asked.key,
        run_id=trace.id,
        passages=tuple(replace(passage, text="") for passage in passages),
        grades=None
        if trace.grades is None
        else tuple(replace(grade, reason="", raw=None, cause=grade.cause[:200]) for grade in trace.grades),
        signals=trace.signals,
        strips=strips,
        seconds=trace.seconds,
        usage=trace.usage,
    )


def cases(questions: Iterable[LabelledQuestion], scored: Mapping[str, ScoredQuestion]) -> tuple[Case, ...]:
    """Those that were graded, in the order of the questions."""
    return tuple(Case(question, scored[question.key]) for question in questions if question.key in scored)

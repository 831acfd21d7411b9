"""The metrics of a labelled set: title, direction, and the contribution of one question.

Hit and reciprocal rank of one ranked list are as `trec_eval` defines them, the list as long as it is: a document counts
that answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crag_core.base.types.decisions import Action
from crag_core.base.types.web import WebOutcome
from crag_core.experiments.comparison.outcome import ANSWERS, Evidence, Outcome
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, word

_WHEN = (("before", "retrieved"), ("after", "in the context"))
_OF_TEXT = "of the text, what stands in chunks that neither answer nor are on the subject; answerable questions"


def hit(ranked: Sequence[int]) -> float:
    """1 where any of them answers, else 0."""
    return float(any(grade >= ANSWERS for grade in ranked))


def reciprocal_rank(ranked: Sequence[int]) -> float:
    """1 over the rank of the first that answers, 0 where none does; its mean is the MRR."""
    return next((1.0 / rank for rank, grade in enumerate(ranked, start=1) if grade >= ANSWERS), 0.0)


# --- measures of a set ------------------------------------------------------------------------------------------------


Counts = tuple[float, float]
"""(part, whole) of one question: a measure is the sum of the parts over the sum of the wholes."""

Count = Callable[[LabelledQuestion, Outcome], Counts | None]
"""None where a question has no part in the measure."""


class Group(StrEnum):
    ROUTING = "Routing"
    RETRIEVAL = "Retrieval"
    ANSWERS = "Answers"
    CORRECTION = "Correction"
    COST = "Cost a question"


class Unit(StrEnum):
    """SHARE and SCORE lie in 0..1."""

    SHARE = "share"
    SCORE = "score"
    COUNT = "count"
    SECONDS = "seconds"


@dataclass(frozen=True)
class Measure:
    """`better` is 1 where more is better, -1 where less is, 0 where neither. `least`: of a share or score."""

    name: str
    title: str
    group: Group
    unit: Unit
    better: int
    description: str
    counts: Count
    least: float = 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which every question lies."""
        return (self.least, 1.0) if self.unit in (Unit.SHARE, Unit.SCORE) else (-math.inf, math.inf)


def _once(value: float | None) -> Counts | None:
    return None if value is None else (float(value), 1.0)


def _answerable(asked: LabelledQuestion, value: float | None) -> Counts | None:
    return _once(value) if asked.expected.is_answerable else None


def _unanswerable(asked: LabelledQuestion, value: float | None) -> Counts | None:
    return None if asked.expected.is_answerable else _once(value)


def _ranked(measure: Callable[[Sequence[int]], float], when: str) -> Count:
    """Of answerable questions whose evidence the labels can judge."""

    def counts(asked: LabelledQuestion, found: Outcome) -> Counts | None:
        seen: Evidence | None = getattr(found, when)
        return None if seen is None or seen.ranked is None else _answerable(asked, measure(seen.ranked))

    return counts


def _irrelevant(when: str) -> Count:
    def counts(asked: LabelledQuestion, found: Outcome) -> Counts | None:
        seen: Evidence | None = getattr(found, when)
        is_known = asked.expected.is_answerable and seen is not None and seen.ranked is not None and seen.tokens
        return (float(seen.irrelevant), float(seen.tokens)) if seen and is_known else None

    return counts


_RANKED: tuple[tuple[str, str, Callable[[Sequence[int]], float], str], ...] = (
    ("hit", "Hit", hit, "questions with a document that answers"),
    ("mrr", "MRR", reciprocal_rank, "1 over the rank of the first that answers"),
)

_RETRIEVAL = (
    *(
        Measure(
            f"{name}_{when}", f"{title}, {where}", Group.RETRIEVAL, Unit.SHARE if name == "hit" else Unit.SCORE, 1,
            f"{description}; answerable questions", _ranked(of, when),
        )
        for name, title, of, description in _RANKED
        for when, where in _WHEN
    ),
    *(
        Measure(
            f"irrelevant_{when}", f"Irrelevant, {where}", Group.RETRIEVAL, Unit.SHARE, -1, _OF_TEXT, _irrelevant(when)
        )
        for when, where in _WHEN
    ),
)  # fmt: skip


def _right(asked: LabelledQuestion, found: Outcome) -> Counts | None:
    return _once(found.action in asked.expected.actions)


def _right_of(expected: Expected) -> Count:
    return lambda asked, found: _right(asked, found) if asked.expected is expected else None


def _score_gain(found: Outcome) -> float | None:
    """What a correction did to the best score; None where nothing was corrected, graded before, or left after."""
    if found.action is Action.CORRECT or found.score_before is None or found.score_after is None:
        return None
    return found.score_after - found.score_before


def _improved(asked: LabelledQuestion, found: Outcome) -> Counts | None:
    gain = _score_gain(found)
    return None if gain is None else _once(gain > 0)


_SHARE, _SCORE, _COUNT = Unit.SHARE, Unit.SCORE, Unit.COUNT

_ROUTING = (
    ("right", "Right route", _SHARE, 1, "questions routed as the label says", _right),
    *(
        (f"right_{one.name.lower()}", f"Right route: {word(one)}", _SHARE, 1, f"routed {' or '.join(one.actions)}",
         _right_of(one))
        for one in Expected
    ),
)  # fmt: skip

_ANSWERS = (
    ("contains", "Known answer in the answer", _SHARE, 1,
     "its words stand in it one after the other; answerable questions with known answers",
     lambda asked, found: _answerable(asked, found.contains)),
    ("grounded", "Grounded sentences", _SHARE, 1,
     "sentences of answers whose words the context has, or that a model calls supported, of those that were checked",
     lambda asked, found: (found.grounded, found.sentences) if found.sentences else None),
    ("abstained_answerable", "Abstained although answerable", _SHARE, -1,
     "answerable questions that got no answer, or only a doubtful one",
     lambda asked, found: _answerable(asked, not found.is_answered)),
    ("answered_unanswerable", "Answered although unanswerable", _SHARE, -1,
     "questions that the documents do not answer, and that got an answer without a known one in it",
     lambda asked, found: _unanswerable(asked, found.is_answered and not found.contains)),
    ("answered_elsewhere", "Known answer, not from the documents", _SHARE, 1,
     "known answers in answers, of questions with known answers that the documents do not answer: from the web",
     lambda asked, found: _unanswerable(asked, found.contains)),
)  # fmt: skip

_CORRECTION = (
    ("corrected", "Corrected", _SHARE, 0, "questions not routed CORRECT",
     lambda asked, found: _once(found.action is not Action.CORRECT)),
    ("improved", "Corrections that raised the best score", _SHARE, 1,
     "of those after which graded evidence was left", _improved),
    ("gain", "Best score, after less before", _SCORE, 1, "of the same corrections",
     lambda asked, found: _once(_score_gain(found)), -1.0),
    ("web", "Sent to the web", _SHARE, 0, "questions whose web search was answered",
     lambda asked, found: _once(_is_searched(found))),
    ("needless_web", "Sent to the web although answerable", _SHARE, -1,
     "answerable questions whose web search was answered",
     lambda asked, found: _answerable(asked, _is_searched(found))),
)  # fmt: skip

_COST = (
    ("seconds", "Seconds", Unit.SECONDS, -1,
     "from question to answer, on average, as if run alone; web results from the cache take no time",
     lambda asked, found: _once(found.seconds)),
    ("calls", "LLM calls", _COUNT, -1, "of grading, correcting and answering",
     lambda asked, found: _once(found.usage.calls)),
    ("tokens", "Tokens", _COUNT, -1, "read and written by the model, as it counts them",
     lambda asked, found: _once(found.usage.prompt_tokens + found.usage.completion_tokens)),
)  # fmt: skip


def _is_searched(found: Outcome) -> bool:
    return found.web in (WebOutcome.USED, WebOutcome.EMPTY)


def _of(group: Group, rows: Sequence[tuple[Any, ...]]) -> tuple[Measure, ...]:
    """Of rows with the fields of a `Measure` but its group."""
    return tuple(Measure(name, title, group, *rest) for name, title, *rest in rows)


MEASURES: tuple[Measure, ...] = (
    *_of(Group.ROUTING, _ROUTING),
    *_RETRIEVAL,
    *_of(Group.ANSWERS, _ANSWERS),
    *_of(Group.CORRECTION, _CORRECTION),
    *_of(Group.COST, _COST),
)

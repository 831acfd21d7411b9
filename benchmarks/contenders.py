"""The project's evaluators that need no language model, built as the application does, and what they say of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from benchmarks.nearest import RememberingEmbedder
from benchmarks.sets import Question, Task
from crag_core.base.data_files import DATA
from crag_core.base.protocols import Cancel, Embedder, Evaluator
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.decision.signals import SignalMeter
from crag_core.evaluators import EVALUATORS, cards
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator
from crag_core.evaluators.named.evaluator import NamedEvaluator
from crag_core.evaluators.named.names import is_named, parse_name
from crag_core.evaluators.shared.parts import EvaluatorParts

CROSS_ENCODER = "cross-encoder"
NAMES = tuple(name for name, card in cards().items() if not card.calls_model)
MODEL = DATA / "models" / "retrieval-evaluator"
PARTS = (ANSWERING, TOPICAL)

Column = list[np.ndarray[Any, Any]]
"""Scores by question, one a passage; NaN where it could not be graded."""


def build(name: str, embedder: Embedder, folder: Path = MODEL, *, trusts_cosines: bool = False) -> Evaluator:
    """As the application builds it, but that the trained one works out every cosine itself unless told otherwise."""
    stop_words = frozenset((DATA / "stopwords.txt").read_text("utf-8").split())
    if is_named(name):
        return NamedEvaluator(parse_name(name))  # not calibrated: what is measured here is the order of its scores
    if name == CROSS_ENCODER:
        return CrossEncoderEvaluator(folder, trusts_cosines=trusts_cosines)
    return EVALUATORS[name].build(EvaluatorParts(embedder, SignalMeter(stop_words), folder))


@dataclass(frozen=True)
class Graded:
    """What one evaluator said of every question of a task, graded once."""

    evaluator: Evaluator
    grades: tuple[tuple[Grade, ...], ...]

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The score, and the two signals apart where the evaluator gives both."""
        given = [set(dict(grade.parts)) for grades in self.grades for grade in grades if grade.score is not None]
        parts = PARTS if given and all(set(PARTS) <= names for names in given) else ()
        return {self.evaluator.card.name: self._column(None), **{part: self._column(part) for part in parts}}

    @cached_property
    def best(self) -> dict[str, np.ndarray[Any, Any]]:
        """The best score of each question by column; NaN where no passage was graded."""
        return {name: np.array([_best(scores) for scores in column]) for name, column in self.columns.items()}

    @property
    def ungraded(self) -> int:
        return sum(grade.score is None for grades in self.grades for grade in grades)

    def _column(self, part: str | None) -> Column:
        return [np.array([_score(grade, part) for grade in grades], dtype=float) for grades in self.grades]


def remember(task: Task, embedder: RememberingEmbedder) -> None:
    """Embed all that the evaluators of cosines will ask for, at once."""
    texts = [passage.text for question in task.questions for passage in question.passages]
    embedder.remember([*(question.text for question in task.questions), *texts])


def grade(
    evaluator: Evaluator, task: Task, embedder: RememberingEmbedder, tell: Callable[[str], None] = lambda text: None
) -> Graded:
    """Each question's passages graded in one call, with the cosine that a retriever would have recorded.

    Strips go without, as in a run; the trained evaluator scores those of a text from one reading of it.
    """
    name = evaluator.card.name
    needs_cosines = reads_cosines(name) and not task.is_strips
    cancel = Event()
    grades = []
    for place, question in enumerate(task.questions, start=1):
        passages = _with_cosines(question, embedder) if needs_cosines else question.passages
        if task.is_strips and isinstance(evaluator, CrossEncoderEvaluator):
            grades.append(_score_strips(evaluator, question, cancel))
        else:
            grades.append(tuple(evaluator.grade(question.text, passages, cancel)))
        if place % 500 == 0:
            tell(f"  {name}: {place} of {len(task.questions)} questions")
    return Graded(evaluator, tuple(grades))


def _score_strips(evaluator: CrossEncoderEvaluator, question: Question, cancel: Cancel) -> tuple[Grade, ...]:
    text, strips = "", []
    for index, passage in enumerate(question.passages):
        strips.append(Strip("text", index, len(text), len(text) + len(passage.text), passage.text))
        text += f"{passage.text} "
    scored, why = evaluator.score(question.text, [(Passage("text", text, ""), strips)], cancel)
    return tuple(
        Grade(passage.id, strip.score, parts=((ANSWERING, strip.score),) if strip.score is not None else (), cause=why)
        for passage, strip in zip(question.passages, scored, strict=True)
    )


def reads_cosines(name: str) -> bool:
    return name != CROSS_ENCODER and not is_named(name)


def left_out(graded: Mapping[str, Graded]) -> str:
    """For the reader, who must know what was left out; "" when nothing was."""
    told = [f"{name} {count}" for name, one in graded.items() if (count := one.ungraded)]
    return f"Passages that could not be graded, left out: {', '.join(told)}." if told else ""


def _with_cosines(question: Question, embedder: RememberingEmbedder) -> Sequence[Passage]:
    if not question.passages:
        return ()
    asked = embedder.vectors([question.text])[0]
    cosines = embedder.vectors([passage.text for passage in question.passages]) @ asked
    return [
        passage if passage.score("cosine") is not None else replace(passage, scores=(("cosine", float(cosine)),))
        for passage, cosine in zip(question.passages, cosines, strict=True)
    ]


def _score(grade: Grade, part: str | None) -> float | None:
    return grade.score if part is None else grade.part(part)


def _best(scores: np.ndarray[Any, Any]) -> float:
    return float(np.nanmax(scores)) if np.isfinite(scores).any() else float("nan")

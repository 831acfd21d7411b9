"""What the tests of the cache share: an evaluator that counts, a cache in memory, a clock set by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Usage
from crag_core.evaluators.cached import CachedEvaluator

QUESTION = "When does the ferry to Vennick leave?"
IDENTITY = "llm|ollama/llama3.2|prompts 2"


class CountingEvaluator:
    """Grades by `scoring`, 0.8 unless told otherwise; `asked` holds the ids of each call."""

    def __init__(self, calls_model: bool = True) -> None:
        self.card = EvaluatorCard("counting", "Counting", "0 to 1", 0.3, 0.7, 0.5, calls_model, "one call a chunk")
        self.asked: list[tuple[str, ...]] = []
        self.scoring: Callable[[Passage], float | Grade] = lambda passage: 0.8

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        if cancel.is_set():
            raise Stopped()
        self.asked.append(tuple(passage.id for passage in passages))
        return tuple(self._grade(passage) for passage in passages)

    def _grade(self, passage: Passage) -> Grade:
        found = self.scoring(passage)
        if isinstance(found, Grade):
            return found
        return Grade(passage.id, found, f"about {passage.text}", raw="{}", seconds=1.5, usage=Usage(1, 300, 20))


class MemoryCache:
    def __init__(self) -> None:
        self.kept: dict[str, Grade] = {}

    def get_many(self, keys: Sequence[str]) -> dict[str, Grade]:
        return {key: self.kept[key] for key in keys if key in self.kept}

    def put_many(self, grades: dict[str, Grade]) -> None:
        self.kept.update(grades)


class HandClock:
    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def passage(id: str, text: str = "", cosine: float | None = None, source: str = "a.txt") -> Passage:
    return Passage(id, text or f"text of {id}", source, scores=() if cosine is None else (("cosine", cosine),))


def passages(*ids: str) -> tuple[Passage, ...]:
    return tuple(passage(id) for id in ids)


def ask(evaluator: CachedEvaluator, *asked: Passage, question: str = QUESTION) -> tuple[Grade, ...]:
    return evaluator.grade(question, asked, threading.Event())


def key(number: int) -> str:
    return f"{number:064x}"


def grade(score: float = 0.5, reason: str = "as scored") -> Grade:
    return Grade(
        "p1", score, reason, (("answering", score),), raw='{"score": 0.5}', seconds=1.5, usage=Usage(1, 300, 20)
    )

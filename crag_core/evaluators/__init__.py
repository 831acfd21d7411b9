"""Evaluators by name: each a class with a `card`, `build(parts)` and `grade(question, passages, cancel)`."""

from __future__ import annotations

from typing import Protocol

from crag_core.base.protocols import Evaluator
from crag_core.base.types.grades import EvaluatorCard
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator
from crag_core.evaluators.embedding import EmbeddingEvaluator
from crag_core.evaluators.heuristic import HeuristicEvaluator
from crag_core.evaluators.judges.llm import LLMBatchEvaluator, LLMEvaluator, LLMListEvaluator
from crag_core.evaluators.judges.llm_logprob import LLMLogprobEvaluator
from crag_core.evaluators.shared.parts import EvaluatorParts
from crag_core.evaluators.signals import SignalsEvaluator


class EvaluatorClass(Protocol):
    @property
    def card(self) -> EvaluatorCard: ...

    def build(self, parts: EvaluatorParts) -> Evaluator:
        """Loads nothing heavy; raises `ModelMissing` where a language model is needed and none was chosen."""


EVALUATORS: dict[str, EvaluatorClass] = {
    "cross-encoder": CrossEncoderEvaluator,
    "embedding": EmbeddingEvaluator,
    "heuristic": HeuristicEvaluator,
    "signals": SignalsEvaluator,
    "llm": LLMEvaluator,
    "llm-logprob": LLMLogprobEvaluator,
    "llm-batch": LLMBatchEvaluator,
    "llm-list": LLMListEvaluator,
}
"""By the name on the card, in the order in which they are shown: those without a model first."""


def cards() -> dict[str, EvaluatorCard]:
    return {name: kind.card for name, kind in EVALUATORS.items()}

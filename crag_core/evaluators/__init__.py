"""Evaluators: a class with a `card` and `grade(question, passages, cancel)`, registered here under its name."""

from crag_core.base.types import EvaluatorCard
from crag_core.evaluators.citations.model_check import ModelSupport
from crag_core.evaluators.citations.word_check import WordSupport
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator, CrossEncoderStripEvaluator
from crag_core.evaluators.embedding import EmbeddingEvaluator
from crag_core.evaluators.heuristic import HeuristicEvaluator
from crag_core.evaluators.llm import LLMEvaluator
from crag_core.evaluators.llm_batch import LLMBatchEvaluator
from crag_core.evaluators.llm_list import LLMListEvaluator
from crag_core.evaluators.signals import SignalsEvaluator

__all__ = [
    "EVALUATORS",
    "CrossEncoderEvaluator",
    "CrossEncoderStripEvaluator",
    "EmbeddingEvaluator",
    "HeuristicEvaluator",
    "LLMBatchEvaluator",
    "LLMEvaluator",
    "LLMListEvaluator",
    "ModelSupport",
    "SignalsEvaluator",
    "WordSupport",
    "cards",
]

EVALUATORS = {
    kind.card.name: kind
    for kind in (
        CrossEncoderEvaluator,
        EmbeddingEvaluator,
        HeuristicEvaluator,
        SignalsEvaluator,
        LLMEvaluator,
        LLMBatchEvaluator,
        LLMListEvaluator,
    )
}
"""In the order in which they are shown: those without a model first."""


def cards() -> dict[str, EvaluatorCard]:
    """What each known evaluator declares of itself, by name."""
    return {name: kind.card for name, kind in EVALUATORS.items()}

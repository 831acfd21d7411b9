"""A reranker of LlamaIndex as an evaluator: its scores, whatever their scale, as grades."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, TextNode

from crag_core.base.errors import EvaluatorUnavailable, WrongUse
from crag_core.base.protocols import Cancel
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage

LOGIT = "logit"
Scale = tuple[float, float] | str
"""The lowest and the highest score, or `LOGIT`."""

_SHARE: Scale = (0.0, 1.0)
_JUDGED: Scale = (0.0, 10.0)
"""Where a language model is asked for a number from 1 to 10; what it leaves out has none."""
_SCALES = {"LLMRerank": _JUDGED, "StructuredLLMRerank": _JUDGED, "FlagEmbeddingReranker": LOGIT}
"""By the class of LlamaIndex, of those that do not score from 0 to 1."""
_CROSS_ENCODER = "SentenceTransformerRerank"
_STEEPEST = 700.0
"""Of a logit further from 0 the exponential is no number any more."""


@dataclass(frozen=True)
class RerankerEvaluator:
    """The score that the reranker gives a node, brought into 0..1, is the node's grade; what it leaves out has 0.

    `scale` is that of its scores: (0, 10), or "logit", which goes through the logistic function; None: that of its
    class where it is known, else 0 to 1. A score beyond it raises `EvaluatorUnavailable`; where the reranker asks a
    language model, the node is not graded. `lower` and `upper` are the thresholds to start from. `version` tells models
    of one class apart.
    """

    reranker: BaseNodePostprocessor
    lower: float = 0.3
    upper: float = 0.7
    version: str = ""
    scale: Scale | None = None

    def __post_init__(self) -> None:
        given = self.scale
        is_range = isinstance(given, tuple) and len(given) == 2 and given[0] < given[1]
        if not is_range and given not in (None, LOGIT):
            raise WrongUse(f'Expected a scale such as (0, 10), or "{LOGIT}", found {given!r}.')

    @property
    def card(self) -> EvaluatorCard:
        name, scale = type(self.reranker).__name__, self._scale
        return EvaluatorCard(
            name=name,
            title=f"Reranker {name}",
            scale="as the reranker scores, 0 to 1" + ("" if scale == _SHARE else f", made of {_told(scale)}"),
            lower=self.lower,
            upper=self.upper,
            strip_cutoff=self.lower,
            calls_model=False,
            cost="as the reranker costs",
            version=self.version,
        )

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        nodes = [NodeWithScore(node=TextNode(id_=one.id, text=one.text)) for one in passages]
        reranker = self.reranker
        if "top_n" in type(reranker).model_fields:
            reranker = reranker.model_copy(update={"top_n": len(nodes)})
        found = {one.node.node_id: one.score for one in reranker.postprocess_nodes(nodes, query_str=question)}
        return tuple(self._grade(one.id, found) for one in passages)

    @property
    def _scale(self) -> Scale:
        if self.scale is not None:
            return self.scale
        kinds = [kind.__name__ for kind in type(self.reranker).__mro__]
        # What a cross-encoder makes of its logits is a matter of its model, not of the class.
        made = getattr(getattr(self.reranker, "_model", None), "activation_fn", None)
        if _CROSS_ENCODER in kinds and type(made).__name__ == "Identity":
            return LOGIT
        return next((_SCALES[kind] for kind in kinds if kind in _SCALES), _SHARE)

    def _grade(self, passage_id: str, found: Mapping[str, float | None]) -> Grade:
        if passage_id not in found:
            return Grade(passage_id, 0.0, "left out by the reranker")
        score, scale, name = found[passage_id], self._scale, type(self.reranker).__name__
        if score is None:
            raise EvaluatorUnavailable(
                f"The reranker {name} gives an order and no scores, so it cannot grade.",
                hint="Let it stand before the CRAGPostprocessor, and give that another evaluator.",
            )
        grade = _as_share(float(score), scale)
        if grade is not None:
            return Grade(passage_id, grade, "scored by the reranker")
        wrong = f"The reranker {name} gave the score {score:g}, expected {_told(scale)}."
        if scale == _JUDGED and self.scale is None:
            return Grade(passage_id, None, cause=wrong)
        hint = f'Say what its scores are: RerankerEvaluator(reranker, scale=(0, 10)), or scale="{LOGIT}".'
        raise EvaluatorUnavailable(wrong, hint=hint)


def _as_share(score: float, scale: Scale) -> float | None:
    """In 0..1; None for a score that does not lie on this scale."""
    if isinstance(scale, str):
        return 1.0 / (1.0 + math.exp(min(-score, _STEEPEST))) if math.isfinite(score) else None
    low, high = scale
    return (score - low) / (high - low) if low <= score <= high else None


def _told(scale: Scale) -> str:
    return "logits" if isinstance(scale, str) else "scores from {:g} to {:g}".format(*scale)

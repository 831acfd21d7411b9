"""The four criteria of description 000, for each passage alone. No model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from crag_core.base.protocols import Cancel
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage
from crag_core.decision.crag import mean
from crag_core.decision.signals import CRITERIA, SignalMeter
from crag_core.evaluators.shared.parts import EvaluatorParts


class HeuristicEvaluator:
    """A passage's score is the weighted sum of the criteria for the set of that one passage.

    Its coherence is then its own cosine (left out, and its weight shared out, where no retriever recorded one).
    The policy `heuristic` itself decides by the criteria of the whole set, which every run records as signals.
    """

    card = EvaluatorCard(
        name="heuristic",
        title="Heuristic",
        scale="weighted sum of keyword overlap, cosine, length and diversity, 0 to 1",
        lower=0.50,
        upper=0.75,
        strip_cutoff=0.50,
        calls_model=False,
        cost="no model call, under 1 ms a chunk",
    )

    def __init__(self, meter: SignalMeter) -> None:
        self._meter = meter

    @classmethod
    def build(cls, parts: EvaluatorParts) -> Self:
        return cls(parts.meter)

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        return tuple(self._grade(question, passage) for passage in passages)

    def _grade(self, question: str, passage: Passage) -> Grade:
        measured = dict(self._meter.measure(question, (passage,)))
        parts = tuple((name, measured[name]) for name, _ in CRITERIA if name in measured)
        score = mean(dict(parts), dict(CRITERIA))
        reason = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in parts)
        return Grade(passage.id, score, reason, parts)

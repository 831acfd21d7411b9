"""What the overall score of a weighted sum is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crag_core.base.types import Grade, Passage, Scores
from crag_core.decision.aggregation import effective_scores
from crag_core.decision.policy import Aggregation, Policy
from crag_core.decision.signals import RERANK
from crag_core.view.run_view import RunView

_NAMES = {RERANK: "mean of the three best grades"}


@dataclass(frozen=True)
class Signal:
    name: str
    value: str
    weight: str


def signals_of(view: RunView) -> tuple[Signal, ...]:
    """With what could not be measured; () for other policies."""
    policy = view.policy
    if policy.aggregation is not Aggregation.SIGNALS:
        return ()
    looked_at = view.routed.decision_path.iterations[-1].passages
    values = dict(view.changed.signals + _rerank(policy, looked_at, view.changed.grades))
    return tuple(
        Signal(
            _NAMES.get(name, name.replace("_", " ")),
            f"{values[name]:.2f}" if name in values else "not measured",
            f"{weight:.2f}",
        )
        for name, weight in policy.weights
    )


def _rerank(policy: Policy, passages: tuple[Passage, ...], grades: tuple[Grade, ...] | None) -> Scores:
    counted = (score for score in effective_scores(policy, passages, grades).values() if score is not None)
    top = sorted(counted, reverse=True)[:3]
    return ((RERANK, math.fsum(top) / len(top)),) if top else ()

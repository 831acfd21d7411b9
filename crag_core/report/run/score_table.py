"""The score line of a report as a table, and what a weighted sum is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from crag_core.base.types import ANSWERING, TOPICAL, Grade, Passage, Scores
from crag_core.decision.aggregation import effective_scores
from crag_core.decision.decide import decide
from crag_core.decision.policy import Aggregation, FastPath, Policy
from crag_core.decision.signals import RERANK
from crag_core.report.reported_run import Name, Shown, name_of
from crag_core.report.run.evidence import describe
from crag_core.report.run.score_line import graded_passages

_NAMES = {RERANK: "mean of the three best grades"}


@dataclass(frozen=True)
class Row:
    """`band` is where this passage alone would send the question."""

    number: str
    anchor: str
    name: Name
    scores: tuple[str, ...]
    band: str
    tone: str
    decides: bool


@dataclass(frozen=True)
class Table:
    """`columns` name the scores of each row; `has_bands` is false where thresholds are not those of one passage."""

    columns: tuple[str, ...]
    has_bands: bool
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Signal:
    name: str
    value: str
    weight: str


def table_of(shown: Shown) -> Table:
    found = graded_passages(shown)
    has_two = any(grade and grade.two_signals for _, grade in found)
    alone = _alone(shown.policy)
    rows = []
    for passage, grade in found:
        scores = (describe(grade), *(_part(grade, part) for part in (ANSWERING, TOPICAL) if has_two))
        band = decide(alone, (passage,), (grade,)).action if alone and grade and grade.score is not None else None
        label = shown.policy.route(band).label if band else ""
        decides = passage.id in shown.routed.decision.deciding
        tone = (band or "").lower()
        rows.append(
            Row(shown.numbers[passage.id], shown.anchor(passage.id), name_of(passage), scores, label, tone, decides)
        )
    columns = ("Score", ANSWERING.capitalize(), TOPICAL.capitalize()) if has_two else ("Score",)
    return Table(columns, alone is not None, tuple(rows))


def _part(grade: Grade | None, part: str) -> str:
    return describe(grade, part) if grade and grade.two_signals else "–"


def _alone(policy: Policy) -> Policy | None:
    """The policy as it takes a single passage; None where its thresholds are those of a sum over all of them."""
    if policy.aggregation is Aggregation.SIGNALS:
        return None
    two = policy.aggregation is Aggregation.TWO_SIGNAL
    kind = Aggregation.TWO_SIGNAL if two else Aggregation.BEST
    return replace(policy, aggregation=kind, fast_path=FastPath(), low_variance_promotes=False)


def signals_of(shown: Shown) -> tuple[Signal, ...]:
    """What the overall score is the weighted sum of, with what could not be measured; () for other policies."""
    policy, decision_path = shown.policy, shown.routed.decision_path
    if policy.aggregation is not Aggregation.SIGNALS:
        return ()
    looked_at = decision_path.iterations[-1].passages
    values = dict(shown.changed.signals + _rerank(policy, looked_at, shown.changed.grades))
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

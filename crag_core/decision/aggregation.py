"""Aggregates the grades of passages to the score, or the two scores, that a policy compares with its thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from crag_core.base.types import ANSWERING, TOPICAL, Grade, Passage, Scores
from crag_core.decision.plan import EffectiveScores
from crag_core.decision.policy import Aggregation, Policy
from crag_core.decision.second_opinion import counted
from crag_core.decision.signals import RERANK, SUFFICIENCY, weigh


@dataclass(frozen=True)
class Overall:
    """The overall score in 0..1 (None: nothing to compare), its name for the reason, and the passages that made it.

    A score of None with a name: everything was measured, and nothing was worth counting. `counted` are the passage
    scores that it was made from. `topical` is the number to compare with `lower` where that is another one; the passage
    that made `score` comes first in `deciding` then.
    """

    score: float | None
    name: str = ""
    deciding: tuple[str, ...] = ()
    counted: tuple[float, ...] = ()
    topical: float | None = None


def effective_scores(
    policy: Policy, passages: tuple[Passage, ...], grades: tuple[Grade, ...] | None, part: str = ""
) -> EffectiveScores:
    """What each passage counts as: its grade; `policy.ungraded_score` if grading failed; None if never graded.

    `part` names a part score that counts instead, where the grade has it. None too for a grade that is `set_aside`.
    """
    by_id = {grade.passage_id: grade for grade in grades or ()}
    aside = set_aside(policy, passages, grades)
    scores: EffectiveScores = {}
    for passage in passages:
        grade = by_id.get(passage.id)
        grade = counted(policy, grade) if grade else None
        if grade is None or grade.score is None or passage.id in aside:
            scores[passage.id] = policy.ungraded_score if grade and passage.id not in aside else None
        else:
            scores[passage.id] = grade.part(part) if part else grade.score
    return scores


def set_aside(policy: Policy, passages: tuple[Passage, ...], grades: tuple[Grade, ...] | None) -> frozenset[str]:
    """The passages that are graded on the coarse scale beside others on the fine one: the two cannot be compared."""
    if not policy.reads_grades:
        return frozenset()
    ids = {passage.id for passage in passages}
    scored = (grade for grade in grades or () if grade.passage_id in ids and grade.score is not None)
    scales = {grade.passage_id: grade.coarse for grade in scored}
    if False not in scales.values():
        return frozenset()
    return frozenset(id_ for id_, coarse in scales.items() if coarse)


def aggregate(
    policy: Policy, passages: tuple[Passage, ...], grades: tuple[Grade, ...] | None, signals: Scores
) -> Overall:
    """The overall score, rounded to 9 decimals so that the mean of equal scores equals them.

    rank-weighted: sum of s_r / r over sum of 1 / r, r from 1 in rank order (description 002).
    """
    judged = passages[: policy.grade_top]
    if policy.aggregation is Aggregation.TWO_SIGNAL:
        return _best_two(policy, judged, grades)
    scores = effective_scores(policy, passages, grades)
    if policy.aggregation is Aggregation.SIGNALS:
        counted = tuple(s for passage in judged if (s := scores[passage.id]) is not None)
        return replace(_weigh_signals(policy, passages, scores, signals), counted=counted)
    if policy.judges_together:
        counted = tuple(s for passage in judged if (s := scores[passage.id]) is not None)
        return replace(_whole_context(passages, signals), counted=counted)
    return _of_passages(policy, judged, scores)


def _whole_context(passages: tuple[Passage, ...], signals: Scores) -> Overall:
    score = dict(signals).get(SUFFICIENCY)
    ids = tuple(passage.id for passage in passages)
    return Overall(None) if score is None else Overall(score, SUFFICIENCY, ids)


def _of_passages(policy: Policy, judged: tuple[Passage, ...], scores: EffectiveScores) -> Overall:
    ranked = enumerate(judged, start=1)
    counted = [(rank, passage.id, s) for rank, passage in ranked if (s := scores[passage.id]) is not None]
    if not counted:
        return Overall(None)
    ids, values = tuple(passage_id for _, passage_id, _ in counted), tuple(score for _, _, score in counted)
    if policy.aggregation is Aggregation.RANK_WEIGHTED:
        mean = math.fsum(score / rank for rank, _, score in counted) / math.fsum(1 / rank for rank, _, _ in counted)
        return Overall(round(mean, 9), "rank-weighted mean", ids, values)
    if policy.aggregation is Aggregation.MEAN_OF_KEPT:
        kept = [(passage_id, score) for _, passage_id, score in counted if score >= policy.lower]
        if not kept:
            return Overall(None, "mean of no chunk", ids, values)
        mean = math.fsum(score for _, score in kept) / len(kept)
        name = f"mean of {len(kept)} kept chunks"
        return Overall(round(mean, 9), name, tuple(passage_id for passage_id, _ in kept), values)
    pick, name = (min, "worst chunk") if policy.aggregation is Aggregation.WORST else (max, "best chunk")
    _, passage_id, score = pick(counted, key=lambda item: item[2])
    return Overall(score, name, (passage_id,), values)


def _best_two(policy: Policy, judged: tuple[Passage, ...], grades: tuple[Grade, ...] | None) -> Overall:
    """The best answering and the best topical score; the best score where no grade tells one from the other."""
    ids = {passage.id for passage in judged}
    best = _of_passages(policy, judged, effective_scores(policy, judged, grades, ANSWERING))
    if not any(grade.two_signals for grade in grades or () if grade.passage_id in ids):
        return best
    other = _of_passages(policy, judged, effective_scores(policy, judged, grades, TOPICAL))
    both = tuple(dict.fromkeys(best.deciding + other.deciding))
    return replace(best, name="best answering", deciding=both, topical=other.score)


def _weigh_signals(policy: Policy, passages: tuple[Passage, ...], scores: EffectiveScores, signals: Scores) -> Overall:
    score = weigh(signals + rerank(scores), policy.weights)
    if score is None:
        return Overall(None)
    ids = tuple(passage.id for passage in passages)
    return Overall(round(min(max(score, 0.0), 1.0), 9), "weighted sum of signals", ids)


def rerank(scores: EffectiveScores) -> Scores:
    """The one signal that is made of grades, the mean of the three best; () where nothing is graded."""
    top = sorted((score for score in scores.values() if score is not None), reverse=True)[:3]
    return ((RERANK, math.fsum(top) / len(top)),) if top else ()

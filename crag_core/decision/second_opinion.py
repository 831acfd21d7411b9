"""The second evaluator of a policy: which chunks it is asked about, and what its scores count as. Pure."""

from __future__ import annotations

from dataclasses import replace

from crag_core.base.text.display import against, clean
from crag_core.base.types import ANSWERING, Grade, Passage, SecondGrade
from crag_core.decision.policy import Aggregation, Policy


def in_doubt(policy: Policy, passages: tuple[Passage, ...], grades: tuple[Grade, ...] | None) -> tuple[Passage, ...]:
    """The judged passages whose first score lies in the band of `policy.second_opinion`; () where none can matter.

    `best` and `two-signal` ask nobody where a chunk outside the band is CORRECT already, `worst-chunk` where one is
    INCORRECT already: no second score of another chunk can change that.
    """
    if policy.second_opinion is None:
        return ()
    by_id = {grade.passage_id: grade for grade in grades or ()}
    low, high = policy.second_opinion.band
    judged = [(one, _first_score(policy, by_id[one.id])) for one in passages[: policy.grade_top] if one.id in by_id]
    scored = [(passage, score) for passage, score in judged if score is not None]
    if any(_settles(policy, score) for _, score in scored if not low <= score <= high):
        return ()
    return tuple(passage for passage, score in scored if low <= score <= high)


def counted(policy: Policy, grade: Grade) -> Grade:
    """`grade` as it counts: with the second score on the first scale, where there is one and the first is in doubt.

    Of two signals the second replaces *answering* alone.
    """
    asked, second, first = policy.second_opinion, grade.second, _first_score(policy, grade)
    if asked is None or second is None or second.score is None or first is None:
        return grade
    if second.evaluator != asked.evaluator or not asked.band[0] <= first <= asked.band[1]:
        return grade
    score = on_first_scale(policy, second)
    if policy.aggregation is Aggregation.TWO_SIGNAL and grade.two_signals:
        return replace(grade, parts=tuple({**dict(grade.parts), ANSWERING: score}.items()))
    return replace(grade, score=score)


def on_first_scale(policy: Policy, second: SecondGrade) -> float:
    """Piecewise linear: 0, lower, upper and 1 of the second evaluator become 0, lower, upper and 1 of the policy."""
    score = second.score or 0.0
    if policy.aggregation is Aggregation.TWO_SIGNAL:
        score = min(max(dict(second.parts).get(ANSWERING, score), 0.0), 1.0)
    own = (0.0, second.lower, second.upper, 1.0)
    firsts = (0.0, *sorted((policy.lower, policy.upper)), 1.0)
    at = 2 if score >= second.upper else 1 if score >= second.lower else 0
    width = own[at + 1] - own[at]
    share = (score - own[at]) / width if width else 0.0
    return round(firsts[at] + share * (firsts[at + 1] - firsts[at]), 9)


def second_text(policy: Policy, grade: Grade | None) -> str:
    """The score of the second evaluator and what it counts as; "" where it was not asked."""
    second = grade.second if grade else None
    if grade is None or second is None:
        return ""
    if second.score is None:
        return f"second opinion by {clean(second.called)}: not graded; first score kept"
    said, *_ = against(second.score, second.lower, second.upper)
    text = f"second opinion by {clean(second.called)}: {said}"
    if counted(policy, grade) is grade:
        return f"{text}, not counted: first score outside the band"
    counts, *_ = against(on_first_scale(policy, second), policy.lower, policy.upper)
    return f"{text}, counts as {counts}"


def _first_score(policy: Policy, grade: Grade) -> float | None:
    return grade.part(ANSWERING) if policy.aggregation is Aggregation.TWO_SIGNAL else grade.score


def _settles(policy: Policy, score: float) -> bool:
    if policy.aggregation in (Aggregation.BEST, Aggregation.TWO_SIGNAL):
        return score > policy.upper or (score == policy.upper and not policy.upper_is_exclusive)
    if policy.aggregation is Aggregation.WORST:
        return score < policy.lower or (score == policy.lower and policy.lower_is_inclusive)
    return False

"""From recorded scores to one action with its reason and plan: the pure heart of every policy."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from crag_core.figures import readable
from crag_core.plan import EffectiveScores, Planner
from crag_core.policy import Aggregation, Policy
from crag_core.signals import RERANK, weigh
from crag_core.types import Action, Decision, Grade, Passage, Scores


@dataclass(frozen=True)
class Overall:
    """The overall score in 0..1 (None: nothing to compare), its name for the reason, and the passages that made it.

    A score of None with a name: everything was measured, and nothing was worth counting.
    """

    score: float | None
    name: str = ""
    deciding: tuple[str, ...] = ()


def decide(
    policy: Policy,
    passages: tuple[Passage, ...],
    grades: tuple[Grade, ...] | None,
    signals: Scores = (),
    path: tuple[str, ...] = (),
    seen: Collection[str] = (),
) -> Decision:
    """Route one question.

    `passages` in rank order; `grades` in any order, None when grading was never done; `signals` are the set-level
    measures of `crag_core.signals`; `path` names the rounds of retrieval after the first that led here, `seen` the
    passages that were looked at on the way: no rule approves those unread. The same arguments always give the same
    decision.
    """
    scores = effective_scores(policy, passages, grades)
    rule = None if any(passage.id in seen for passage in passages) else match_rule(policy, passages)
    judged = {passage.id for passage in passages[: policy.grade_top]}
    own = [grade for grade in grades or () if grade.passage_id in judged]  # not those of another iteration
    overall = Overall(None)
    if not passages:
        action, reason = Action.INCORRECT, "nothing was retrieved"
    elif rule:
        graded = "nothing was graded" if grades is None else "no grade was looked at"
        action, reason = Action.CORRECT, f"rule {rule[0]}: {rule[1]}; {graded}"
        overall = Overall(1.0, "rule", deciding=tuple(passage.id for passage in passages))
        scores = dict.fromkeys(overall.deciding, 1.0)  # description 001: what a rule approves counts as 1.0
    elif policy.aggregation is not Aggregation.SIGNALS and not any(g.score is not None for g in own):
        action = Action.AMBIGUOUS
        reason = "no passage could be graded" if own else "no passage was graded in this run"
    else:
        overall = aggregate(policy, passages, scores, signals)
        counted = [s for passage in passages[: policy.grade_top] if (s := scores[passage.id]) is not None]
        action, reason = _compare(policy, overall, counted)
    measured = bool(overall.name) or not passages or policy.web_when_ungraded
    planner = Planner(policy, action, passages, scores, path if measured else None)
    return Decision(
        action=action,
        label=policy.route(action).label,
        score=overall.score,
        reason=reason,
        plan=planner.plan(),
        deciding=overall.deciding,
        rule=rule[0] if rule else None,
        handling=planner.handling,
        next_round=planner.next_round,
    )


def match_rule(policy: Policy, passages: tuple[Passage, ...]) -> tuple[str, str] | None:
    """The first fast-path rule that matches, as (name, reason); None when grading is needed."""
    rules = policy.fast_path
    if not passages:
        return None
    if rules.read_file and all("read_file" in passage.found_by for passage in passages):
        return "read_file", "every passage is a whole file that you pinned"
    if rules.few_context is not None and len(passages) <= rules.few_context:
        return "few_context", f"{len(passages)} passages, at most {rules.few_context} need no grading"
    if rules.high_vector_score is not None:
        cosines = [passage.score("cosine") for passage in passages if "dense" in passage.found_by]
        if len(cosines) == len(passages) and all((c or 0.0) >= rules.high_vector_score for c in cosines):
            return "high_vector_score", f"every passage has a cosine of at least {rules.high_vector_score:.2f}"
    return None


def effective_scores(
    policy: Policy, passages: tuple[Passage, ...], grades: tuple[Grade, ...] | None
) -> EffectiveScores:
    """What each passage counts as: its grade; `policy.ungraded_score` if grading failed; None if never graded."""
    by_id = {grade.passage_id: grade for grade in grades or ()}
    scores: EffectiveScores = {}
    for passage in passages:
        grade = by_id.get(passage.id)
        failed = grade is not None and grade.score is None
        scores[passage.id] = policy.ungraded_score if failed else grade.score if grade else None
    return scores


def aggregate(policy: Policy, passages: tuple[Passage, ...], scores: EffectiveScores, signals: Scores) -> Overall:
    """The overall score, rounded to 9 decimals so that the mean of equal scores equals them.

    rank-weighted: sum of s_r / r over sum of 1 / r, r from 1 in rank order (description 002).
    """
    if policy.aggregation is Aggregation.SIGNALS:
        return _weigh_signals(policy, passages, scores, signals)
    counted = [
        (rank, passage.id, score)
        for rank, passage in enumerate(passages[: policy.grade_top], start=1)
        if (score := scores[passage.id]) is not None
    ]
    if not counted:
        return Overall(None)
    if policy.aggregation is Aggregation.RANK_WEIGHTED:
        mean = math.fsum(score / rank for rank, _, score in counted) / math.fsum(1 / rank for rank, _, _ in counted)
        return Overall(round(mean, 9), "rank-weighted mean", tuple(passage_id for _, passage_id, _ in counted))
    kept = [(passage_id, score) for _, passage_id, score in counted if score >= policy.lower]
    if policy.aggregation is Aggregation.MEAN_OF_KEPT and kept:
        mean = math.fsum(score for _, score in kept) / len(kept)
        return Overall(
            round(mean, 9), f"mean of {len(kept)} kept passages", tuple(passage_id for passage_id, _ in kept)
        )
    if policy.aggregation is Aggregation.MEAN_OF_KEPT:
        return Overall(None, "mean of no passage", tuple(passage_id for _, passage_id, _ in counted))
    pick, name = (min, "worst score") if policy.aggregation is Aggregation.WORST else (max, "best score")
    _, passage_id, score = pick(counted, key=lambda item: item[2])
    return Overall(score, name, (passage_id,))


def _weigh_signals(policy: Policy, passages: tuple[Passage, ...], scores: EffectiveScores, signals: Scores) -> Overall:
    top = sorted((s for p in passages if (s := scores[p.id]) is not None), reverse=True)[:3]
    rerank: Scores = ((RERANK, math.fsum(top) / len(top)),) if top else ()
    score = weigh(signals + rerank, policy.weights)
    if score is None:
        return Overall(None)
    ids = tuple(passage.id for passage in passages)
    return Overall(round(min(max(score, 0.0), 1.0), 9), "weighted sum of signals", ids)


def _compare(policy: Policy, overall: Overall, counted: list[float]) -> tuple[Action, str]:
    score, lower, upper = overall.score, policy.lower, policy.upper
    if score is None and overall.name:
        best, least = readable(max(counted), lower)
        return Action.INCORRECT, f"no passage reaches lower {least}, the best scores {best}"
    if score is None:
        return Action.AMBIGUOUS, "no signal of this policy could be measured"
    value, low, high = readable(score, lower, upper)
    if score > upper or (score == upper and not policy.upper_is_exclusive):
        relation = "is above" if score > upper else "reaches"
        return Action.CORRECT, f"{overall.name} {value} {relation} upper {high}"
    if score < lower or (score == lower and policy.lower_is_inclusive):
        relation = "is below" if score < lower else "does not exceed"
        return Action.INCORRECT, f"{overall.name} {value} {relation} lower {low}"
    if policy.low_variance_promotes and score > 0.5 and counted and (variance := _variance(counted)) <= 0.1:
        value, half = readable(score, 0.5)
        return Action.CORRECT, f"{overall.name} {value} is above {half} and the scores agree (variance {variance:.2f})"
    return Action.AMBIGUOUS, f"{overall.name} {value} lies between lower {low} and upper {high}"


def _variance(values: list[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)

"""From recorded scores to one action with its reason and plan: the pure heart of every policy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crag_core.policy import Aggregation, Handling, Policy, WebUse
from crag_core.signals import RERANK, weigh
from crag_core.types import Action, Correction, CorrectionKind, Decision, Grade, Passage, Scores

EffectiveScores = dict[str, float | None]
"""What each passage counts as under one policy; None: it does not count."""


@dataclass(frozen=True)
class Overall:
    """The overall score in 0..1 (None: nothing to compare), its name for the reason, and the passages that made it."""

    score: float | None
    name: str = ""
    deciding: tuple[str, ...] = ()


def decide(
    policy: Policy, passages: tuple[Passage, ...], grades: tuple[Grade, ...] | None, signals: Scores = ()
) -> Decision:
    """Route one question.

    `passages` in rank order; `grades` in any order, None when grading was never done; `signals` are the set-level
    measures of `crag_core.signals`. The same arguments always give the same decision.
    """
    scores = effective_scores(policy, passages, grades)
    rule = match_rule(policy, passages)
    overall = Overall(None)
    if not passages:
        action, reason = Action.INCORRECT, "nothing was retrieved"
    elif rule:
        graded = "nothing was graded" if grades is None else "no grade was looked at"
        action, reason = Action.CORRECT, f"rule {rule[0]}: {rule[1]}; {graded}"
        overall = Overall(1.0, deciding=tuple(passage.id for passage in passages))
        scores = dict.fromkeys(overall.deciding, 1.0)  # description 001: what a rule approves counts as 1.0
    elif policy.aggregation is not Aggregation.SIGNALS and not any(g.score is not None for g in grades or ()):
        action = Action.AMBIGUOUS
        reason = "no passage was graded in this run" if grades is None else "no passage could be graded"
    else:
        overall = aggregate(policy, passages, scores, signals)
        counted = [s for passage in passages[: policy.grade_top] if (s := scores[passage.id]) is not None]
        action, reason = _compare(policy, overall, counted)
    measured = overall.score is not None or not passages
    return Decision(
        action=action,
        label=policy.route(action).label,
        score=overall.score,
        reason=reason,
        plan=_plan(policy, action, passages, scores, search_allowed=policy.web_when_ungraded or measured),
        deciding=overall.deciding,
        rule=rule[0] if rule else None,
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
    # mean-of-kept with nothing kept falls through: the best score is then below `lower`, which is the reason to give.
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


def _plan(
    policy: Policy, action: Action, passages: tuple[Passage, ...], scores: EffectiveScores, search_allowed: bool
) -> tuple[Correction, ...]:
    route = policy.route(action)
    plan: list[Correction] = []
    remaining = len(passages)
    least = policy.drops_below(action)
    if route.passages is Handling.DISCARD and passages:
        plan.append(Correction(CorrectionKind.DISCARD, f"{action}: none of the {remaining} passages is used"))
        remaining = 0
    elif least is not None:
        for passage in passages:
            score = scores[passage.id]
            if score is None or score < least:
                why = "not graded" if score is None else "score {} is below {}".format(*readable(score, least))
                plan.append(Correction(CorrectionKind.DISCARD, why, passage.id))
                remaining -= 1
    if remaining:
        plan.append(_handling(policy, route.passages, remaining))
    plan += _searching(policy, action, remaining) if search_allowed else []
    if route.expand:
        plan.append(Correction(CorrectionKind.EXPAND, "partly relevant: retrieve again with an expanded question"))
    if route.re_retrieve:
        plan.append(Correction(CorrectionKind.RE_RETRIEVE, f"{action}: retrieve again in another way"))
    plan.append(Correction(CorrectionKind.GENERATE, "answer from what is kept"))
    return tuple(plan)


def _handling(policy: Policy, handling: Handling, remaining: int) -> Correction:
    if handling is Handling.REFINE:
        why = f"keep the strips of {remaining} passages that score above {policy.strips.cutoff:.2f}"
        return Correction(CorrectionKind.REFINE, why)
    if handling is Handling.EXTRACT:
        return Correction(
            CorrectionKind.REFINE, f"extract the relevant sentences of {remaining} passages word for word"
        )
    return Correction(CorrectionKind.KEEP, f"use {remaining} passages as they are")


def _searching(policy: Policy, action: Action, remaining: int) -> list[Correction]:
    route = policy.route(action)
    few = route.web is WebUse.WHEN_FEW and remaining < route.web_below_results
    if route.web is not WebUse.ALWAYS and not few:
        return []
    why = f"only {remaining} of at least {route.web_below_results} passages remain" if few else f"{action} asks the web"
    rewrite = Correction(CorrectionKind.REWRITE, f"a search query of at most {policy.web_query_words} words")
    return [rewrite, Correction(CorrectionKind.WEB_SEARCH, f"{why}, up to {policy.web_limit} results")]


def readable(*numbers: float) -> tuple[str, ...]:
    """The numbers with two decimals, or as many more as it takes to tell different ones apart (at most nine)."""
    digits = 2
    while digits < 9 and len({f"{n:.{digits}f}" for n in numbers}) < len(set(numbers)):
        digits += 1
    return tuple(f"{number:.{digits}f}" for number in numbers)


def _variance(values: list[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)

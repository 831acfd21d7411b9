"""CRAG in one file: score the evidence, compare the score with two thresholds, plan the steps of that action. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean, pvariance
from typing import Any, NamedTuple

from crag_core.base.types.decisions import Action

Steps = tuple[tuple[str, bool | int | float | str | tuple[str, ...] | None], ...]  # steps or rules, with arguments


class Chunk(NamedTuple):
    id: str
    grade: float | None = None  # does it answer, in 0..1? None: could not be graded, or grading was not `tried`
    topical: float | None = None  # is it on the subject? None: this evaluator gives one score
    cosine: float | None = None  # None: not found by dense retrieval
    pinned: bool = False  # a whole file that the user chose
    tried: bool = True
    is_aside: bool = False  # graded on another scale than the others, so never compared with them


class Evidence(NamedTuple):
    chunks: tuple[Chunk, ...]  # in rank order
    signals: Mapping[str, float]  # of the question, or of all chunks together
    rounds: tuple[str, ...] = ()  # retrievals after the first
    is_reread: bool = False  # some chunks were graded in an earlier round, so no rule approves them unread
    left: float = float("inf")  # of how many chunks refinement leaves a sentence; inf: not known yet
    is_last: bool = False  # nothing more can be retrieved


@dataclass(frozen=True, kw_only=True)
class Routing:
    score: str  # how grades become one score: a key of `WEIGHTS`, or one of `OF_ALL`
    lower: float
    upper: float
    correct: Steps  # before the answer; the first says what happens to the chunks
    ambiguous: Steps
    incorrect: Steps
    skip: Steps = ()  # rules of `SKIP` under which nothing is graded
    weights: tuple[tuple[str, float], ...] = ()  # of signals
    top: int | None = None  # judge the first chunks only
    ungraded: float | None = None  # what a chunk counts as that could not be graded
    at_lower: Action = Action.AMBIGUOUS  # the action of a score that equals the threshold
    at_upper: Action = Action.CORRECT
    max_rounds: int = 3
    low_variance_promotes: bool = False  # description 002: above 0.5 with grades that agree is CORRECT

    def steps(self, action: Action) -> dict[str, Any]:
        return dict(getattr(self, action.lower()))


class Scored(NamedTuple):
    why: str  # "score", the rule under which nothing is graded, or why there is no score
    score: float | None = None
    topical: float | None = None  # compared with `lower` in place of `score`
    by: tuple[str, ...] = ()  # the chunks that made the score
    settled: Action | None = None  # whatever the thresholds are
    agrees: bool = False  # so well that a score between the thresholds is CORRECT
    is_known: bool = True  # else nothing is known of the evidence: use it, in doubt, and look for no more


class Plan(NamedTuple):
    chunks: str  # keep, refine, extract, discard or documents
    drop: tuple[str, ...] = ()  # ids of chunks that score too low to be used
    web: bool = False
    web_below: int | None = None  # search if refinement leaves a sentence of fewer chunks, which is not known yet
    again: str | None = None  # the next retrieval, before anything is answered


SKIP: dict[str, Callable[[Evidence, Any], bool]] = {
    "no_retrieval": lambda seen, _: seen.signals.get("class") == 0.0,  # Adaptive-RAG's class A, and B
    "one_retrieval": lambda seen, _: seen.signals.get("class") == 0.5,
    "always": lambda seen, _: True,  # plain RAG
    "read_file": lambda seen, _: all(one.pinned for one in seen.chunks),
    "few_context": lambda seen, most: len(seen.chunks) <= most and not seen.rounds,
    "high_vector_score": lambda seen, least: all((one.cosine or 0.0) >= least for one in seen.chunks),
}
OF_ALL = ("signals", "whole_context")  # scores of all chunks together, which need no grade
WEIGHTS: dict[str, Callable[[dict[str, float], list[str], float], dict[str, float]]] = {  # of chunks, in the mean grade
    "best": lambda grades, ids, lower: {max(grades, key=grades.__getitem__): 1},
    "two_signals": lambda grades, ids, lower: {max(grades, key=grades.__getitem__): 1},
    "worst": lambda grades, ids, lower: {min(grades, key=grades.__getitem__): 1},
    "rank_weighted": lambda grades, ids, lower: {c: 1 / rank for rank, c in enumerate(ids, 1) if c in grades},
    "mean_of_kept": lambda grades, ids, lower: {id_: 1 for id_, grade in grades.items() if grade >= lower},
}


def decide(policy: Routing, seen: Evidence) -> tuple[Action, Scored, Plan]:
    action = compare(policy, found := score(policy, seen))
    return action, found, plan(policy, action, found, seen)


def score(policy: Routing, seen: Evidence) -> Scored:
    rules, judged, ids = dict(policy.skip), seen.chunks[: policy.top], [one.id for one in seen.chunks]
    if "no_retrieval" in rules and SKIP["no_retrieval"](seen, None):
        return Scored("no_retrieval", settled=Action.CORRECT)
    if not ids:
        return Scored("empty", settled=Action.INCORRECT)
    if "no_retrieval" in rules and "class" not in seen.signals:
        return Scored("unclassified", settled=Action.AMBIGUOUS, is_known=False)
    if not seen.is_reread and (rule := next((name for name in rules if SKIP[name](seen, rules[name])), None)):
        return Scored(rule, 1.0, by=tuple(ids), settled=Action.CORRECT)
    grades, topical = counted(policy, judged), counted(policy, judged, "topical")
    by, found = tuple(ids), None
    if policy.score in OF_ALL:
        found = mean(seen.signals, dict(policy.weights) or {"sufficiency": 1.0})
    elif any(one.grade is not None for one in judged):
        weights = WEIGHTS[policy.score](grades, ids, policy.lower)
        by, found = tuple(weights), mean(grades, weights)
        if not by:  # no chunk reaches `lower`
            return Scored("none kept", by=tuple(grades), settled=Action.INCORRECT)
    if found is None:
        return Scored("ungraded", settled=Action.AMBIGUOUS, is_known=False)
    agrees = bool(policy.low_variance_promotes and grades and found > 0.5 and pvariance(grades.values()) <= 0.1)
    if policy.score == "two_signals" and any(one.topical is not None for one in judged):
        nearest = max(topical, key=topical.__getitem__)
        return Scored("score", found, topical[nearest], tuple(dict.fromkeys((*by, nearest))), agrees=agrees)
    return Scored("score", found, by=by, agrees=agrees)


def counted(policy: Routing, chunks: tuple[Chunk, ...], part: str = "grade") -> dict[str, float]:
    failed = {one.id: policy.ungraded for one in chunks if one.tried and one.grade is None}
    return {one.id: value for one in chunks if (value := failed.get(one.id, getattr(one, part))) is not None}


def mean(values: Mapping[str, float], weights: dict[str, float]) -> float | None:
    there = [name for name, weight in weights.items() if name in values and weight]
    if len(there) < 2:
        return values[there[0]] if there else None
    return round(fmean([values[n] for n in there], [weights[n] for n in there]), 9)  # exact for equal values


def compare(policy: Routing, found: Scored) -> Action:
    if found.settled or found.score is None:
        return found.settled or Action.AMBIGUOUS
    nearest = found.score if found.topical is None else found.topical
    high = found.score > policy.upper or (found.score == policy.upper and policy.at_upper is Action.CORRECT)
    low = nearest < policy.lower or (nearest == policy.lower and policy.at_lower is Action.INCORRECT)
    return Action.CORRECT if high or (found.agrees and not low) else Action.INCORRECT if low else Action.AMBIGUOUS


def plan(policy: Routing, action: Action, found: Scored, seen: Evidence) -> Plan:
    first, ways = next(iter(steps := policy.steps(action))), list[str]()
    if found.is_known and not seen.is_last:
        ways += ["documents"] if first == "documents" and seen.chunks else []
        ways += ["expand"] if "expand" in steps and "expand" not in seen.rounds else []
        if "again" in steps and len(seen.rounds) + 1 < policy.max_rounds:
            ways += [way for way in steps["again"] or ("refine",) if way == "refine" or way not in seen.rounds]
    is_all = not ways and (first == "documents" or (found.is_known and first == "discard" and "again" in steps))
    chunks = "keep" if is_all else first  # there is no other evidence to be had
    least = policy.lower if policy.score == "mean_of_kept" else steps.get("drop", -1.0)
    least = -1.0 if is_all or found.why != "score" else least
    grades, is_graded = counted(policy, seen.chunks[: policy.top]), found.why not in SKIP
    low = [one.id for one in seen.chunks if (one.is_aside and is_graded) or grades.get(one.id, -0.5) < least]
    drop, remaining = ((), 0) if chunks == "discard" else (tuple(low), len(seen.chunks) - len(low))
    fewer = steps.get("web_if_fewer", 0) if found.is_known else 0
    is_open = seen.left > len(seen.chunks) and remaining >= fewer > 0 and chunks in ("refine", "extract")
    web = found.is_known and ("web" in (*steps, *ways[:1]) or min(remaining, seen.left) < fewer)
    return Plan(chunks, drop, web, fewer if is_open else None, next((way for way in ways[:1] if way != "web"), None))

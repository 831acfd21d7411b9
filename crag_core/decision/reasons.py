"""The reason of a decision in numbers, and its plan step by step, in words. Pure."""

from statistics import pvariance
from typing import NamedTuple

from crag_core.base.text.display import against, counted, readable
from crag_core.base.types.decisions import Action, Correction, CorrectionKind, Decision
from crag_core.decision import crag
from crag_core.decision.crag import Evidence, Plan, Scored, compare
from crag_core.decision.policy import Policy, WebQuery
from crag_core.decision.steps import DISCARD, DOCUMENTS, EXTRACT, REFINE


class Terms(NamedTuple):
    """What a reason calls two signals and the threshold that each is compared with."""

    answering: str
    topical: str
    upper: str
    lower: str


FIELD = Terms("answering", "topical", "upper", "lower")
"""The field's, in which records, service and command line have them."""

_RULES = {
    "no_retrieval": "the question needs no document",
    "one_retrieval": "one retrieval finds what the question needs",
    "always": "this policy uses what is retrieved as it is",
    "read_file": "every chunk is a whole file that you pinned",
    "few_context": "{chunks}, at most {argument} need no grading",
    "high_vector_score": "every chunk has a cosine of at least {argument}",
}


class ScoreWords(NamedTuple):
    """How a score is told: as a term of `{by}`, its chunks; after a colon; before a number, of `{}`."""

    term: str
    means: str
    sentence: str


_BEST = ScoreWords("best chunk", "the best", "The best of {} scores")
SCORE_WORDS = {
    "best": _BEST,
    "two_signals": _BEST,
    "worst": ScoreWords("worst chunk", "the worst", "The worst of {} scores"),
    "rank_weighted": ScoreWords("rank-weighted mean", "a mean by rank", "{} together, the first counting most, score"),
    "mean_of_kept": ScoreWords("mean of {by}", "the mean of what is kept", "The chunks that are kept score on average"),
    "signals": ScoreWords(
        "weighted sum of signals", "measures of the whole set", "What the search found scores as a whole"
    ),
    "whole_context": ScoreWords(
        "sufficiency",
        "a judgement of all chunks together",
        "A language model reads {} together. Whether they are enough scores",
    ),
}
_WAYS = {
    DOCUMENTS: (CorrectionKind.READ, "read the documents of these chunks whole"),
    "expand": (CorrectionKind.EXPAND, "partly relevant: retrieve again with an expanded question"),
    "refine": (CorrectionKind.RE_RETRIEVE, "retrieve more with refined keywords"),
    "keyword": (CorrectionKind.RE_RETRIEVE, "retrieve by keywords alone"),
    "rewritten": (CorrectionKind.RE_RETRIEVE, "retrieve by meaning, with the question in other words"),
    "expanded": (CorrectionKind.RE_RETRIEVE, "retrieve with an expanded question"),
}

NOT_COMPARABLE = "graded on the coarse scale, which cannot be compared with the other grades"


def query_form(policy: Policy) -> str:
    """What a language model is to write for the web under this policy; "": nothing, the question goes as it is."""
    return {
        WebQuery.QUESTION: "",
        WebQuery.REWRITTEN: f"a search query of about {policy.web.words} words",
        WebQuery.PHRASES: f"at most {policy.web.phrases} key phrases to search for",
    }[policy.web.query]


def reason(policy: Policy, seen: Evidence, action: Action, found: Scored, *, is_graded: bool) -> str:
    if found.why in _RULES:
        chunks = counted(len(seen.chunks), "chunk")
        text = _RULES[found.why].format(chunks=chunks, argument=dict(policy.skip)[found.why])
        graded = "no grade was looked at" if is_graded else "nothing was graded"
        return f"rule {found.why}: {text}" + (f"; {graded}" if seen.chunks else "")
    if not seen.chunks:
        return "nothing was retrieved"
    if found.why == "unsure":
        return "no one question is made of this and the one before, so nothing was graded"
    if found.why == "unclassified":
        return "question not classified"
    judged = crag.counted(policy, seen.chunks[: policy.top])
    if found.why == "none kept":
        best, least = against(max(judged.values()), policy.lower)
        return f"no chunk reaches lower {least}, the best scores {best}"
    if found.score is None and policy.judges_together:
        return "sufficiency not judged"
    if found.score is None and policy.scores_the_set:
        return "no signal of this policy could be measured"
    if found.score is None:
        tried = any(one.tried for one in seen.chunks[: policy.top])
        return "no chunk could be graded" if tried else "no chunk was graded in this run"
    if found.agrees and action is Action.CORRECT and not _reaches(policy, "upper", found.score):
        value, half = against(found.score, 0.5)
        spread = pvariance(judged.values())
        return f"{_name(policy, found)} {value} > {half} and the scores agree (variance {spread:.2f})"
    if found.topical is None:
        return f"{_name(policy, found)} {_against_both(policy, found.score, action)}"
    return _of_two(policy, found.score, found.topical, FIELD)


def reason_in(terms: Terms, policy: Policy, decision: Decision) -> str:
    """The reason of a decision that `policy` made, with these terms where two signals were compared."""
    if decision.score is None or decision.topical is None:
        return decision.reason
    own, other = (_of_two(policy, decision.score, decision.topical, one) for one in (FIELD, terms))
    return decision.reason.replace(own, other)


def _of_two(policy: Policy, answering: float, topical: float, terms: Terms) -> str:
    is_correct = compare(policy, Scored("score", answering, topical)) is Action.CORRECT
    is_fair = _reaches(policy, "lower", topical)
    first = f"best {terms.answering} {_against(policy, 'upper', answering, is_correct, terms)}"
    second = f"best {terms.topical} {_against(policy, 'lower', topical, is_fair, terms)}"
    if is_correct:  # an answering chunk that looks off topic contradicts itself; the answer counts
        return first if is_fair else f"{first}, although {second}"
    return f"{first}, {second}"


def _name(policy: Policy, found: Scored) -> str:
    kept = counted(len(found.by), "kept chunk")
    return "best answering" if found.topical is not None else SCORE_WORDS[policy.score].term.format(by=kept)


def _reaches(policy: Policy, name: str, score: float) -> bool:
    """Whether the score passes `lower` or `upper`, as the policy takes one that is equal."""
    limit = getattr(policy, name)
    return bool(score > limit or (score == limit and _includes(policy, name)))


def _includes(policy: Policy, name: str) -> bool:
    return policy.at_upper is Action.CORRECT if name == "upper" else policy.at_lower is Action.AMBIGUOUS


def _against_both(policy: Policy, score: float, action: Action) -> str:
    value, low, high = against(score, policy.lower, policy.upper)
    if policy.lower > policy.upper:
        compared = _against(policy, "upper", score, action is Action.CORRECT)
        return f"{compared}; with one score, lower {low} above upper decides nothing"
    if action is Action.AMBIGUOUS:
        return f"{value} between lower {low} and upper {high}"
    return _against(policy, "upper" if action is Action.CORRECT else "lower", score, action is Action.CORRECT)


def _against(policy: Policy, name: str, score: float, passes: bool, terms: Terms = FIELD) -> str:
    value, limit = against(score, getattr(policy, name))
    signs = ("≥", "<") if _includes(policy, name) else (">", "≤")
    return f"{value} {signs[0] if passes else signs[1]} {getattr(terms, name)} {limit}"


def corrections(policy: Policy, seen: Evidence, action: Action, found: Scored, plan: Plan) -> tuple[Correction, ...]:
    dropped = tuple(_dropped(policy, seen, action, plan))
    remaining = 0 if plan.chunks == DISCARD else len(seen.chunks) - len(plan.drop)
    answer = Correction(CorrectionKind.GENERATE, "answer from what is kept")
    steps = policy.steps(action)
    spent = found.is_known and "again" in steps and plan.again is None and (not plan.web or "web" in steps)
    later = (*_kept(policy, seen, plan, remaining, spent), *_searched(policy, seen, action, plan, remaining))
    return (*dropped, *later, *_retrieved(policy, seen, action, plan), answer)


def _dropped(policy: Policy, seen: Evidence, action: Action, plan: Plan) -> list[Correction]:
    if plan.chunks == DISCARD:
        count = len(seen.chunks)
        why = "the only chunk is not used" if count == 1 else f"none of the {count} chunks is used"
        return [Correction(CorrectionKind.DISCARD, f"{action}: {why}")] if count else []
    grades = crag.counted(policy, seen.chunks[: policy.top])
    least = policy.lower if policy.score == "mean_of_kept" else policy.steps(action).get("drop", 0.0)
    found = []
    for place, one in enumerate(seen.chunks):
        if one.id not in plan.drop:
            continue
        if one.is_aside:
            why = NOT_COMPARABLE
        elif policy.top is not None and place >= policy.top:
            why = f"only the first {policy.top} are judged"
        else:
            why = "score {} < {}".format(*against(grades[one.id], least)) if one.id in grades else "not graded"
        found.append(Correction(CorrectionKind.DISCARD, why, one.id))
    return found


def _kept(policy: Policy, seen: Evidence, plan: Plan, remaining: int, is_spent: bool) -> list[Correction]:
    if not remaining or plan.chunks == DOCUMENTS:
        return []
    chunks = counted(remaining, "chunk")
    if plan.chunks in (REFINE, EXTRACT):
        how = {
            REFINE: f"keep the sentences of {chunks} that score above {readable(policy.cutoff)[0]}",
            EXTRACT: f"extract the relevant sentences of {chunks} word for word",
        }[plan.chunks]
        few = f"; the web is asked if fewer than {plan.web_below} chunks are left" if plan.web_below else ""
        return [Correction(CorrectionKind.REFINE, how + few)]
    why = f"use {chunks} as they are"
    if is_spent:
        why = f"iteration {len(seen.rounds) + 1} of {policy.max_rounds}, no more retrieval: {why}"
    return [Correction(CorrectionKind.KEEP, why)]


def _searched(policy: Policy, seen: Evidence, action: Action, plan: Plan, remaining: int) -> list[Correction]:
    if not plan.web:
        return []
    left = min(remaining, seen.left)
    fewer = policy.steps(action).get("web_if_fewer", 0)
    why = f"{action} asks the web"
    if left < fewer:
        after = "remain" if left == remaining else "are left after refinement"
        why = f"only {left} of at least {fewer} chunks {after}"
    search = Correction(CorrectionKind.WEB_SEARCH, f"{why}, up to {policy.web.limit} results")
    rewrite = query_form(policy)
    return [Correction(CorrectionKind.REWRITE, rewrite), search] if rewrite else [search]


def _retrieved(policy: Policy, seen: Evidence, action: Action, plan: Plan) -> list[Correction]:
    if plan.again is None:
        return []
    kind, why = _WAYS[plan.again]
    if kind is CorrectionKind.RE_RETRIEVE:
        why = f"{action}: {why} (iteration {len(seen.rounds) + 2} of {policy.max_rounds})"
    return [Correction(kind, why)]

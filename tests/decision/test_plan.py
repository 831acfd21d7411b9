"""What each action of each policy wants done: the corrections in order, each with its reason."""

import pytest

from crag_core.base.types.decisions import Action, Correction, CorrectionKind
from crag_core.decision.decide import decide
from tests.builders import even, graded, kinds, policy

KEEP, DISCARD, REFINE = CorrectionKind.KEEP, CorrectionKind.DISCARD, CorrectionKind.REFINE
REWRITE, WEB, GENERATE = CorrectionKind.REWRITE, CorrectionKind.WEB_SEARCH, CorrectionKind.GENERATE
EXPAND, RE_RETRIEVE = CorrectionKind.EXPAND, CorrectionKind.RE_RETRIEVE

WEB_ONLY = (DISCARD, REWRITE, WEB, GENERATE)
REFINE_AND_WEB = (REFINE, REWRITE, WEB, GENERATE)


@pytest.mark.parametrize(
    ("name", "score", "action", "plan"),
    [
        ("paper", 0.9, Action.CORRECT, (REFINE, GENERATE)),
        ("paper", 0.5, Action.AMBIGUOUS, REFINE_AND_WEB),
        ("paper", 0.1, Action.INCORRECT, WEB_ONLY),
        ("worst-chunk", 0.9, Action.CORRECT, (KEEP, GENERATE)),
        ("worst-chunk", 0.5, Action.AMBIGUOUS, REFINE_AND_WEB),
        ("worst-chunk", 0.1, Action.INCORRECT, WEB_ONLY),
        ("rank-weighted", 0.9, Action.CORRECT, (KEEP, GENERATE)),
        ("rank-weighted", 0.5, Action.AMBIGUOUS, (REFINE, GENERATE)),
        ("rank-weighted", 0.1, Action.INCORRECT, (DISCARD, WEB, GENERATE)),
        ("heuristic", 0.9, Action.CORRECT, (KEEP, GENERATE)),
        ("heuristic", 0.6, Action.AMBIGUOUS, (KEEP, EXPAND, GENERATE)),
        ("heuristic", 0.1, Action.INCORRECT, (DISCARD, WEB, GENERATE)),
        ("signals", 0.9, Action.CORRECT, (REFINE, GENERATE)),
        ("signals", 0.5, Action.AMBIGUOUS, (REFINE, WEB, GENERATE)),
        ("signals", 0.1, Action.INCORRECT, (DISCARD, WEB, GENERATE)),
        ("agentic", 0.9, Action.CORRECT, (KEEP, GENERATE)),
        ("agentic", 0.5, Action.AMBIGUOUS, (KEEP, RE_RETRIEVE, GENERATE)),
        ("agentic", 0.1, Action.INCORRECT, (DISCARD, RE_RETRIEVE, GENERATE)),
        ("two-signal", 0.9, Action.CORRECT, (REFINE, GENERATE)),
        ("two-signal", 0.5, Action.AMBIGUOUS, REFINE_AND_WEB),
        ("two-signal", 0.1, Action.INCORRECT, WEB_ONLY),
    ],
)
def test_each_action_of_each_policy_has_its_corrections(
    name: str, score: float, action: Action, plan: tuple[CorrectionKind, ...]
) -> None:
    found, grades = graded(score, score, score)
    decision = decide(policy(name), found, grades, even(score))
    assert (decision.action, kinds(decision)) == (action, plan)
    assert decision.label == policy(name).label(action)
    assert decision.handling == next(iter(policy(name).steps(action)))


def discards(plan: tuple[Correction, ...]) -> dict[str | None, str]:
    return {step.passage_id: step.reason for step in plan if step.kind is DISCARD}


@pytest.mark.parametrize(
    ("name", "scores", "dropped"),
    [
        ("rank-weighted", (0.8, 0.3, 0.5), {"p2": "score 0.30 < 0.40"}),
        ("rank-weighted", (0.8, 0.3999, 0.5), {"p2": "score 0.3999 < 0.4000"}),  # does not contradict itself
        ("rank-weighted", (0.5, None, 0.5), {}),  # grading failed: it counts one half
        ("rank-weighted", (0.5, 0.5, 0.5, 0.5, 0.5, 0.9), {"p6": "only the first 5 are judged"}),
        ("agentic", (0.9, 0.3, 0.2999), {"p3": "score 0.2999 < 0.3000"}),
        ("agentic", (0.1, 0.9), {}),  # a rule keeps every chunk
        ("paper", (0.1, 0.2, 0.3), {None: "INCORRECT: none of the 3 chunks is used"}),
    ],
)
def test_a_discarded_chunk_says_why(
    name: str, scores: tuple[float | None, ...], dropped: dict[str | None, str]
) -> None:
    assert discards(decide(policy(name), *graded(*scores)).plan) == dropped


def test_whether_few_are_left_after_refinement_is_open_until_it_is_known() -> None:
    found, grades = graded(0.5, 0.5, 0.5, 0.3)
    decision = decide(policy("rank-weighted"), found, grades)
    assert (decision.web_below, decision.wants(WEB), decision.may_search) == (3, False, True)
    reasons = [step.reason for step in decision.plan if step.kind is REFINE]
    assert reasons == [
        "keep the sentences of 3 chunks that score above 0.25; the web is asked if fewer than 3 chunks are left"
    ]
    for left, searches in ((0, True), (2, True), (3, False)):
        settled = decide(policy("rank-weighted"), found, grades, left=left)
        assert (settled.web_below, settled.wants(WEB), settled.may_search) == (None, searches, searches)


@pytest.mark.parametrize(
    ("name", "score", "following", "why"),
    [
        ("heuristic", 0.9, None, None),
        ("heuristic", 0.6, "expand", "partly relevant: retrieve again with an expanded question"),
        ("heuristic", 0.1, None, None),
        ("agentic", 0.9, None, None),
        ("agentic", 0.5, "refine", "AMBIGUOUS: retrieve more with refined keywords (iteration 2 of 3)"),
        ("agentic", 0.1, "keyword", "INCORRECT: retrieve by keywords alone (iteration 2 of 3)"),
        ("paper", 0.5, None, None),
    ],
)
def test_a_decision_names_the_round_that_it_asks_for(
    name: str, score: float, following: str | None, why: str | None
) -> None:
    decision = decide(policy(name), *graded(score, score, score), even(score))
    assert decision.next_round == following
    assert [step.reason for step in decision.plan if step.kind in (EXPAND, RE_RETRIEVE)] == ([why] if why else [])

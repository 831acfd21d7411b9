"""What each action of each policy wants done: the corrections in order, each with its reason."""

from __future__ import annotations

import pytest

from crag_core.decide import decide
from crag_core.types import Action, Correction, CorrectionKind
from tests.core.builders import POLICIES, even, graded, kinds, passages, policy

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
        ("rank-weighted", 0.1, Action.INCORRECT, WEB_ONLY),
        ("heuristic", 0.9, Action.CORRECT, (KEEP, GENERATE)),
        ("heuristic", 0.6, Action.AMBIGUOUS, (KEEP, EXPAND, GENERATE)),
        ("heuristic", 0.1, Action.INCORRECT, WEB_ONLY),
        ("signals", 0.9, Action.CORRECT, (REFINE, GENERATE)),
        ("signals", 0.5, Action.AMBIGUOUS, REFINE_AND_WEB),
        ("signals", 0.1, Action.INCORRECT, WEB_ONLY),
        ("agentic", 0.9, Action.CORRECT, (KEEP, GENERATE)),
        ("agentic", 0.5, Action.AMBIGUOUS, (KEEP, RE_RETRIEVE, GENERATE)),
        ("agentic", 0.1, Action.INCORRECT, (DISCARD, RE_RETRIEVE, GENERATE)),
    ],
)
def test_each_action_of_each_policy_has_its_corrections(
    name: str, score: float, action: Action, plan: tuple[CorrectionKind, ...]
) -> None:
    found, grades = graded(score, score, score)
    decision = decide(policy(name), found, grades, even(score))
    assert (decision.action, kinds(decision)) == (action, plan)
    assert decision.label == policy(name).route(action).label


@pytest.mark.parametrize("name", POLICIES)
def test_nothing_retrieved_leaves_nothing_to_discard(name: str) -> None:
    plan = kinds(decide(policy(name), (), None, ()))
    expected = (RE_RETRIEVE, GENERATE) if name == "agentic" else (REWRITE, WEB, GENERATE)
    assert plan == expected


def discards(plan: tuple[Correction, ...]) -> dict[str | None, str]:
    return {step.passage_id: step.reason for step in plan if step.kind is DISCARD}


@pytest.mark.parametrize(
    ("scores", "dropped", "searches"),
    [
        ((0.8, 0.5, 0.5, 0.3), ("p4",), False),
        ((0.8, 0.3, 0.5), ("p2",), True),
        ((0.4, 0.4, 0.4), (), False),
        ((0.6, 0.6), (), True),
        ((0.35, 0.39, 0.35), ("p1", "p2", "p3"), True),
    ],
)
def test_rank_weighted_drops_the_weak_and_searches_below_three(
    scores: tuple[float, ...], dropped: tuple[str, ...], searches: bool
) -> None:
    decision = decide(policy("rank-weighted"), *graded(*scores))
    assert decision.action is Action.AMBIGUOUS
    assert tuple(discards(decision.plan)) == dropped
    assert decision.wants(WEB) is decision.wants(REWRITE) is searches
    assert decision.wants(REFINE) is (len(dropped) < len(scores))


def test_a_discarded_passage_says_why() -> None:
    plan = decide(policy("rank-weighted"), *graded(0.8, 0.3, 0.5)).plan
    assert discards(plan) == {"p2": "score 0.30 is below 0.40"}


def test_a_discarded_passage_close_to_the_limit_does_not_contradict_itself() -> None:
    plan = decide(policy("rank-weighted"), *graded(0.8, 0.3999, 0.5)).plan
    assert discards(plan) == {"p2": "score 0.3999 is below 0.4000"}


def test_passages_beyond_the_judged_ones_are_dropped_as_not_graded() -> None:
    found, grades = graded(0.5, 0.5, 0.5, 0.5, 0.5, 0.9)
    decision = decide(policy("rank-weighted"), found, grades[:5])
    assert discards(decision.plan) == {"p6": "not graded"}


def test_a_passage_whose_grading_failed_is_kept_at_one_half() -> None:
    decision = decide(policy("rank-weighted"), *graded(0.5, None, 0.5))
    assert discards(decision.plan) == {}


def test_agentic_drops_what_scores_below_its_filter() -> None:
    decision = decide(policy("agentic"), *graded(0.9, 0.3, 0.2999))
    assert discards(decision.plan) == {"p3": "score 0.2999 is below 0.3000"}
    assert decision.wants(KEEP)


@pytest.mark.parametrize("grades", [None, ()])
def test_a_rule_keeps_every_passage(grades: tuple[()] | None) -> None:
    decision = decide(policy("agentic"), passages(2), grades)
    assert decision.rule == "few_context"
    assert kinds(decision) == (KEEP, GENERATE)


def test_a_rule_keeps_even_what_was_graded_low_in_another_run() -> None:
    decision = decide(policy("agentic"), *graded(0.1, 0.9))
    assert kinds(decision) == (KEEP, GENERATE)


def test_incorrect_discards_all_in_one_correction_with_the_count() -> None:
    plan = decide(policy("paper"), *graded(0.1, 0.2, 0.3)).plan
    assert discards(plan) == {None: "INCORRECT: none of the 3 passages is used"}


@pytest.mark.parametrize(
    ("name", "words", "results"), [("paper", 3, 5), ("worst-chunk", 10, 3), ("rank-weighted", 10, 5)]
)
def test_the_search_says_how_long_its_query_and_how_many_results(name: str, words: int, results: int) -> None:
    plan = {step.kind: step.reason for step in decide(policy(name), *graded(0.1, 0.1)).plan}
    assert f"at most {words} words" in plan[REWRITE]
    assert f"up to {results} results" in plan[WEB]


def test_the_refinement_names_its_cut_off() -> None:
    plan = {step.kind: step.reason for step in decide(policy("paper").with_thresholds(cutoff=0.35), *graded(0.9)).plan}
    assert "0.35" in plan[REFINE]

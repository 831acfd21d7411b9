"""Scores to one action: the boundary cases of every policy, worked out by hand from its description."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.types import Action, CorrectionKind, Decision, Grade, Scores
from crag_core.decision.decide import decide, effective_scores, match_rule
from tests.builders import POLICIES, even, grade, graded, passage, passages, policy

CORRECT, AMBIGUOUS, INCORRECT = Action.CORRECT, Action.AMBIGUOUS, Action.INCORRECT


@pytest.mark.parametrize(
    ("scores", "action"),
    [
        ((0.61,), CORRECT),
        ((0.1, 0.6, 0.2), CORRECT),
        ((0.5999, 0.1), AMBIGUOUS),
        ((0.5, 0.5, 0.5), AMBIGUOUS),
        ((0.4, 0.0), AMBIGUOUS),
        ((0.3999, 0.1), INCORRECT),
        ((0.0,), INCORRECT),
        ((1.0,), CORRECT),
    ],
)
def test_paper_goes_by_the_best_passage(scores: tuple[float, ...], action: Action) -> None:
    decision = decide(policy("paper"), *graded(*scores))
    assert (decision.action, decision.score) == (action, max(scores))


@pytest.mark.parametrize(
    ("scores", "action"),
    [
        ((0.9, 0.71), CORRECT),
        ((0.7, 0.9, 0.7), CORRECT),
        ((0.9, 0.6999, 0.9), AMBIGUOUS),
        ((0.9, 0.3), AMBIGUOUS),
        ((0.9, 0.9, 0.2999), INCORRECT),
        ((0.0, 1.0), INCORRECT),
    ],
)
def test_worst_chunk_goes_by_the_worst_passage(scores: tuple[float, ...], action: Action) -> None:
    decision = decide(policy("worst-chunk"), *graded(*scores))
    assert (decision.action, decision.score) == (action, min(scores))


@pytest.mark.parametrize(
    ("lower", "upper", "score", "action"),
    [
        (0.4, 0.8, 0.79, AMBIGUOUS),
        (0.4, 0.8, 0.8, CORRECT),
        (0.4, 0.8, 0.39, INCORRECT),
        (0.2, 0.6, 0.6, CORRECT),
        (0.2, 0.6, 0.2, AMBIGUOUS),
        (0.2, 0.6, 0.19, INCORRECT),
    ],
)
def test_worst_chunk_under_its_conservative_and_aggressive_thresholds(
    lower: float, upper: float, score: float, action: Action
) -> None:
    assert decide(policy("worst-chunk").with_thresholds(lower, upper), *graded(0.95, score)).action is action


@pytest.mark.parametrize(
    ("scores", "overall", "action"),
    [
        ((0.71,), 0.71, CORRECT),
        ((0.7,), 0.7, CORRECT),
        ((0.6999,), 0.6999, AMBIGUOUS),
        ((0.3001,), 0.3001, AMBIGUOUS),
        ((0.3,), 0.3, INCORRECT),
        ((0.2999,), 0.2999, INCORRECT),
        ((0.7, 0.7, 0.7), 0.7, CORRECT),
        ((0.3, 0.3, 0.3), 0.3, INCORRECT),
        ((0.9, 0.8), 1.3 / 1.5, CORRECT),
        ((0.2, 0.1), 0.25 / 1.5, INCORRECT),
        ((0.9, 0.3), 0.7, CORRECT),
        ((0.3, 0.9), 0.5, AMBIGUOUS),
        ((0.8, 0.3, 0.5), 0.609090909, AMBIGUOUS),
    ],
)
def test_rank_weighted_weighs_early_passages_more(scores: tuple[float, ...], overall: float, action: Action) -> None:
    decision = decide(policy("rank-weighted"), *graded(*scores))
    assert decision.score == pytest.approx(overall, abs=1e-9)
    assert decision.action is action


def test_rank_weighted_counts_the_first_five_passages_only() -> None:
    decision = decide(policy("rank-weighted"), *graded(0.7, 0.7, 0.7, 0.7, 0.7, 0.0))
    assert (decision.action, decision.score) == (CORRECT, 0.7)
    assert decision.deciding == ("p1", "p2", "p3", "p4", "p5")


def test_rank_weights_keep_their_rank_when_a_passage_is_not_graded() -> None:
    ignoring = replace(policy("rank-weighted"), ungraded_score=None)
    # (0.9 / 1 + 0.3 / 3) / (1 + 1 / 3): the third passage stays third.
    assert decide(ignoring, *graded(0.9, None, 0.3)).score == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("scores", "action"),
    [
        ((0.8, 0.3, 0.5), CORRECT),  # variance 0.042, overall 0.609
        ((1.0, 0.0, 0.2), AMBIGUOUS),  # variance 0.187, overall 0.582
        ((0.5, 0.5), AMBIGUOUS),  # no variance, overall not above 0.5
        ((0.2, 0.2), INCORRECT),
    ],
)
def test_agreeing_scores_are_promoted_only_when_the_option_is_on(scores: tuple[float, ...], action: Action) -> None:
    option = replace(policy("rank-weighted"), low_variance_promotes=True)
    assert decide(option, *graded(*scores)).action is action
    assert decide(policy("rank-weighted"), *graded(*scores)).action is not CORRECT


def test_the_variance_is_that_of_the_passages_that_count() -> None:
    option = replace(policy("rank-weighted"), low_variance_promotes=True)
    found, grades = graded(*(5 * [0.69] + 5 * [0.0]))  # over all ten the variance would be 0.119
    assert decide(option, found, grades).action is CORRECT


def test_promotion_reads_sensibly_close_to_one_half() -> None:
    option = replace(policy("rank-weighted"), low_variance_promotes=True)
    reason = decide(option, *graded(0.501, 0.501)).reason
    assert "0.501 > 0.50" in reason


def test_promotion_without_any_grade_leaves_signals_ambiguous() -> None:
    option = replace(policy("signals"), low_variance_promotes=True)
    assert decide(option, passages(2), None, even(0.6)).action is AMBIGUOUS


@pytest.mark.parametrize(
    ("value", "action"),
    [
        (0.7501, CORRECT),
        (0.75, AMBIGUOUS),
        (0.6, AMBIGUOUS),
        (0.5001, AMBIGUOUS),
        (0.5, INCORRECT),
        (0.4999, INCORRECT),
    ],
)
def test_heuristic_thresholds_are_exclusive_above_and_inclusive_below(value: float, action: Action) -> None:
    decision = decide(policy("heuristic"), passages(3), None, even(value))
    assert (decision.action, decision.score) == (action, value)


def test_heuristic_weighs_its_four_criteria() -> None:
    criteria: Scores = (("keyword_overlap", 1.0), ("coherence", 0.92), ("length_adequacy", 0.13), ("diversity", 1.0))
    # 0.30 + 0.368 + 0.0195 + 0.15
    decision = decide(policy("heuristic"), passages(1), None, criteria)
    assert decision.score == pytest.approx(0.8375)
    assert (decision.action, decision.label) == (CORRECT, "Relevant")


def test_heuristic_reads_no_passage_grade() -> None:
    found, grades = graded(0.0, 0.0, None)
    assert decide(policy("heuristic"), found, grades, even(0.9)).action is CORRECT


@pytest.mark.parametrize(
    ("value", "action"),
    [
        (0.7001, CORRECT),
        (0.7, CORRECT),
        (0.6999, AMBIGUOUS),
        (0.3001, AMBIGUOUS),
        (0.3, INCORRECT),
        (0.2999, INCORRECT),
    ],
)
def test_signals_thresholds_are_inclusive_on_both_sides(value: float, action: Action) -> None:
    found, grades = graded(value, value, value)
    decision = decide(policy("signals"), found, grades, even(value))
    assert (decision.action, decision.score) == (action, value)


@pytest.mark.parametrize(
    ("signals", "grades", "overall"),
    [
        ((("keyword_coverage", 0.5), ("agreement", 0.6)), (0.9, 0.8, 0.7, 0.1), 0.65),  # 0.32 + 0.15 + 0.18
        ((("keyword_coverage", 0.5), ("agreement", 0.6)), (0.1, 0.9, None, 0.7), 0.33 + 0.4 * 1.7 / 3),
        ((("keyword_coverage", 0.5),), (0.9, 0.8, 0.7, 0.1), 0.47 / 0.7),
        ((("keyword_coverage", 0.5),), (None, None), 0.5),
        ((), (0.9, 0.8, 0.7), 0.8),
        ((("diversity", 1.0), ("agreement", 0.2)), (), 0.2),  # diversity is none of this policy's signals
    ],
)
def test_signals_share_out_the_weights_of_what_is_missing(
    signals: Scores, grades: tuple[float | None, ...], overall: float
) -> None:
    found, given_grades = graded(*grades)
    assert decide(policy("signals"), found or passages(1), given_grades, signals).score == pytest.approx(overall)


def test_signals_without_any_measure_are_ambiguous_and_search_nothing() -> None:
    decision = decide(policy("signals"), passages(2), None, ())
    assert (decision.action, decision.score) == (AMBIGUOUS, None)
    assert not decision.wants(CorrectionKind.WEB_SEARCH)


@pytest.mark.parametrize(
    ("scores", "overall", "action"),
    [
        ((0.7, 0.7, 0.7), 0.7, CORRECT),
        ((0.9, 0.5, 0.2999), 0.7, CORRECT),
        ((0.9, 0.5, 0.3), 1.7 / 3, AMBIGUOUS),
        ((0.6999, 0.6999, 0.6999), 0.6999, AMBIGUOUS),
        ((0.3, 0.3, 0.3), 0.3, AMBIGUOUS),
        ((0.31, 0.0, 0.0), 0.31, AMBIGUOUS),
    ],
)
def test_agentic_takes_the_mean_of_what_is_worth_keeping(
    scores: tuple[float, ...], overall: float, action: Action
) -> None:
    decision = decide(policy("agentic"), *graded(*scores))
    assert decision.score == pytest.approx(overall, abs=1e-9)
    assert decision.action is action


def test_agentic_names_the_passages_behind_its_mean() -> None:
    assert decide(policy("agentic"), *graded(0.9, 0.1, 0.5)).deciding == ("p1", "p3")


def test_agentic_has_no_mean_where_nothing_is_worth_keeping() -> None:
    decision = decide(policy("agentic"), *graded(0.2999, 0.2, 0.1))
    assert (decision.action, decision.score, decision.confidence) == (INCORRECT, None, None)
    assert decision.deciding == ("p1", "p2", "p3")


def test_pinned_files_come_first_among_the_rules() -> None:
    pinned = passages(1, found_by=("read_file",))
    assert match_rule(policy("agentic"), pinned) == ("read_file", "every chunk is a whole file that you pinned")


@pytest.mark.parametrize(("count", "matches"), [(1, True), (2, True), (3, False)])
def test_up_to_two_passages_need_no_grading(count: int, matches: bool) -> None:
    rule = match_rule(policy("agentic"), passages(count))
    assert (rule is not None and rule[0] == "few_context") is matches


@pytest.mark.parametrize(
    ("found_by", "cosines", "matches"),
    [
        ("dense", (0.8, 0.8, 0.9), True),
        ("dense", (0.7999, 0.9, 0.9), False),
        ("keyword", (0.9, 0.9, 0.9), False),
        ("dense", (None, 0.9, 0.9), False),
    ],
)
def test_high_vector_scores_need_no_grading(found_by: str, cosines: tuple[float | None, ...], matches: bool) -> None:
    found = tuple(
        passage(f"p{i}", found_by=(found_by,), scores=() if cosine is None else (("cosine", cosine),))
        for i, cosine in enumerate(cosines)
    )
    rule = match_rule(policy("agentic"), found)
    assert (rule is not None and rule[0] == "high_vector_score") is matches


def test_one_passage_from_elsewhere_breaks_the_vector_rule() -> None:
    close = (("cosine", 0.95),)
    found = (*passages(2, found_by=("dense",), scores=close), passage("k", found_by=("keyword",), scores=close))
    assert match_rule(policy("agentic"), found) is None


def test_a_rule_settles_the_question_without_grades() -> None:
    decision = decide(policy("agentic"), passages(2), None)
    assert (decision.action, decision.score, decision.rule) == (CORRECT, 1.0, "few_context")
    assert decision.deciding == ("p1", "p2")


def test_no_rule_matches_where_nothing_was_retrieved() -> None:
    assert match_rule(policy("agentic"), ()) is None


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "agentic"])
def test_only_agentic_has_rules(name: str) -> None:
    pinned = passages(1, found_by=("read_file", "dense"), scores=(("cosine", 1.0),))
    assert match_rule(policy(name), pinned) is None


@pytest.mark.parametrize("name", POLICIES)
def test_nothing_retrieved_is_incorrect(name: str) -> None:
    for grades in (None, ()):
        decision = decide(policy(name), (), grades, ())
        assert (decision.action, decision.score) == (INCORRECT, None)
        assert decision.reason == "nothing was retrieved"


GRADING = ("paper", "worst-chunk", "rank-weighted", "agentic", "two-signal")
MORE_EVIDENCE = (CorrectionKind.WEB_SEARCH, CorrectionKind.EXPAND, CorrectionKind.RE_RETRIEVE)


def draws_no_conclusion(decision: Decision) -> bool:
    """Nothing is discarded, and nothing more is looked for."""
    return decision.next_round is None and not any(map(decision.wants, (*MORE_EVIDENCE, CorrectionKind.DISCARD)))


@pytest.mark.parametrize("name", GRADING)
def test_everything_ungraded_is_ambiguous_and_draws_no_conclusion(name: str) -> None:
    decision = decide(policy(name), *graded(None, None, None))
    assert (decision.action, decision.score) == (AMBIGUOUS, None)
    assert decision.reason == "no chunk could be graded"
    assert draws_no_conclusion(decision)


def test_everything_ungraded_searches_when_the_policy_says_so() -> None:
    eager = replace(policy("paper"), web_when_ungraded=True)
    assert decide(eager, *graded(None, None)).wants(CorrectionKind.WEB_SEARCH)
    eager = replace(policy("agentic"), web_when_ungraded=True)
    assert decide(eager, *graded(None, None, None)).next_round == "refine"


@pytest.mark.parametrize("name", GRADING)
@pytest.mark.parametrize("grades", [None, (), (grade("another", 0.9),)])
def test_a_run_that_never_graded_says_so(name: str, grades: tuple[Grade, ...] | None) -> None:
    decision = decide(policy(name), passages(3), grades)
    assert (decision.action, decision.score) == (AMBIGUOUS, None)
    assert decision.reason == "no chunk was graded in this run"
    assert draws_no_conclusion(decision)


@pytest.mark.parametrize("name", GRADING)
def test_grades_of_another_iteration_do_not_hide_that_nothing_could_be_graded(name: str) -> None:
    found, grades = graded(None, None, None)
    alone = decide(policy(name), found, grades)
    assert decide(policy(name), found, (*grades, grade("another", 0.9))) == alone


def test_a_grade_beyond_the_judged_passages_is_none_of_theirs() -> None:
    decision = decide(policy("rank-weighted"), *graded(None, None, None, None, None, 0.9))
    assert decision.reason == "no chunk could be graded"


@pytest.mark.parametrize("name", ["heuristic", "signals"])
def test_signals_that_could_not_be_measured_draw_no_conclusion(name: str) -> None:
    decision = decide(policy(name), *graded(None, None, None))
    assert (decision.action, decision.score) == (AMBIGUOUS, None)
    assert draws_no_conclusion(decision)


@pytest.mark.parametrize(
    ("name", "scores", "overall", "action"),
    [
        ("worst-chunk", (0.9, None, 0.9), 0.5, AMBIGUOUS),
        ("rank-weighted", (0.9, None), 1.15 / 1.5, CORRECT),
        ("rank-weighted", (None, 0.9), 0.95 / 1.5, AMBIGUOUS),
        ("agentic", (0.9, 0.9, None), 2.3 / 3, CORRECT),
        ("agentic", (0.2, 0.2, None), 0.5, AMBIGUOUS),
        ("paper", (0.9, None), 0.9, CORRECT),
        ("paper", (0.1, None), 0.1, INCORRECT),
    ],
)
def test_an_ungraded_passage_counts_half_in_three_policies_and_nothing_in_paper(
    name: str, scores: tuple[float | None, ...], overall: float, action: Action
) -> None:
    decision = decide(policy(name), *graded(*scores))
    assert decision.score == pytest.approx(overall, abs=1e-9)
    assert decision.action is action


def test_a_passage_that_was_never_asked_about_counts_nothing() -> None:
    found = passages(3)
    grades = (grade("p1", 0.8), grade("p3", None))
    assert effective_scores(policy("worst-chunk"), found, grades) == {"p1": 0.8, "p2": None, "p3": 0.5}


def test_grades_may_come_in_any_order() -> None:
    found, grades = graded(0.9, 0.1, 0.4)
    for name in POLICIES:
        assert decide(policy(name), found, grades[::-1]) == decide(policy(name), found, grades)


@pytest.mark.parametrize(
    ("name", "scores", "reason"),
    [
        ("paper", (0.52, 0.1), "best chunk 0.52 between lower 0.40 and upper 0.60"),
        ("paper", (0.7,), "best chunk 0.70 ≥ upper 0.60"),
        ("paper", (0.6,), "best chunk 0.60 ≥ upper 0.60"),
        ("worst-chunk", (0.9, 0.29), "worst chunk 0.29 < lower 0.30"),
        ("worst-chunk", (0.6999, 0.9), "worst chunk 0.6999 between lower 0.30 and upper 0.7000"),
        ("worst-chunk", (0.2999, 0.9), "worst chunk 0.2999 < lower 0.3000"),
        ("rank-weighted", (0.3,), "rank-weighted mean 0.30 ≤ lower 0.30"),
        ("agentic", (0.9, 0.1, 0.5), "mean of 2 kept chunks 0.70 ≥ upper 0.70"),
        ("agentic", (0.29, 0.1, 0.2), "no chunk reaches lower 0.30, the best scores 0.29"),
        ("agentic", (0.2999, 0.1, 0.2), "no chunk reaches lower 0.3000, the best scores 0.2999"),
    ],
)
def test_reasons_are_said_in_numbers(name: str, scores: tuple[float, ...], reason: str) -> None:
    assert decide(policy(name), *graded(*scores)).reason == reason


score_lists = st.lists(st.integers(0, 10_000).map(lambda n: n / 10_000), min_size=3, max_size=6)


@given(name=st.sampled_from(["paper", "worst-chunk", "rank-weighted", "agentic"]), scores=score_lists)
def test_no_reason_ever_looks_contradictory(name: str, scores: list[float]) -> None:
    reason = decide(policy(name), *graded(*scores)).reason
    numbers = [float(number) for number in re.findall(r"\d\.\d+", reason)]
    if " between " in reason:
        score, low, high = numbers
        assert low <= score < high
    elif "no chunk reaches" in reason:
        limit, best = numbers
        assert best < limit
    else:
        score, limit = numbers
        relation = {"≥": score >= limit, ">": score > limit, "<": score < limit, "≤": score <= limit}
        assert [holds for sign, holds in relation.items() if sign in reason] == [True]


@pytest.mark.parametrize(
    ("name", "scores", "confidence"),
    [
        ("paper", (0.9,), 0.9),
        ("paper", (0.5,), 0.5),
        ("paper", (0.1,), 0.9),
        ("paper", (0.0,), 1.0),
        ("paper", (None,), None),
        ("signals", (0.25,), 0.75),
        ("agentic", (0.1, 0.1), 1.0),  # a rule
    ],
)
def test_confidence_is_that_of_the_action(
    name: str, scores: tuple[float | None, ...], confidence: float | None
) -> None:
    decision = decide(policy(name), *graded(*scores), even(scores[0]) if scores[0] is not None else ())
    assert decision.confidence == confidence

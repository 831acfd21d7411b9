"""The figures of the benchmark, against scikit-learn, against brute force, and against repeated samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score

from benchmarks.measures import Estimate, kappa, kappa_estimate, macro_f1, macro_f1_estimate, ratio, share
from benchmarks.routing import confusion, fit, take
from benchmarks.sets import Question, Task
from benchmarks.strips import find_cutoff, measure_strips
from crag_core.base.types.passages import Passage


def known(told: Estimate | None) -> Estimate:
    assert told is not None
    return told


# --- shares and macro-F1 --------------------------------------------------------------------------------------------


def test_a_share_has_its_exact_interval() -> None:
    told = known(share(8, 10))
    assert (told.value, told.low, told.high) == pytest.approx((0.8, 0.4439, 0.9748), abs=1e-4)
    assert known(share(0, 10)).low == 0.0 and share(0, 0) is None


def test_a_ratio_weighs_its_parts_by_their_wholes() -> None:
    told = known(ratio([1, 0, 30], [1, 1, 60]))
    assert told.value == 0.5 and told.low < 0.5 < told.high
    assert ratio([], []) is None and ratio([0], [0]) is None
    rng = np.random.default_rng(0)
    wholes = rng.integers(1, 9, 400)
    spread_out = known(ratio(rng.binomial(wholes, 0.3), wholes))
    assert spread_out.high - spread_out.low == pytest.approx(2 * 1.96 * np.sqrt(0.21 / wholes.sum()), rel=0.25)


@pytest.mark.parametrize("seed", range(5))
def test_macro_f1_is_that_of_scikit_learn(seed: int) -> None:
    expected, taken = np.random.default_rng(seed).integers(0, 3, (2, 40))
    table = confusion(expected, taken)
    assert macro_f1(table) == pytest.approx(f1_score(expected, taken, average="macro"))
    assert table[0, 1] == sum((expected == 0) & (taken == 1))


def test_a_route_that_never_occurs_counts_as_missed() -> None:
    assert macro_f1(confusion(np.array([0, 1]), np.array([0, 1]))) == pytest.approx(2 / 3)


def test_macro_f1_of_more_questions_is_more_certain() -> None:
    table = np.array([[6, 2, 1], [2, 5, 2], [1, 1, 7]])
    few, many = macro_f1_estimate(table), macro_f1_estimate(table * 50)
    assert few.value == many.value and few.low < many.low < many.value < many.high < few.high


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_that_of_scikit_learn(seed: int) -> None:
    labels, said = np.random.default_rng(seed).integers(0, 2, (2, 40))
    table = np.array([[np.sum((labels == one) & (said == other)) for other in (0, 1)] for one in (0, 1)])
    assert kappa(table) == pytest.approx(cohen_kappa_score(labels, said))
    told = kappa_estimate(table)
    assert told.low < told.value < told.high


def test_kappa_of_who_always_says_the_same_is_none_beyond_chance() -> None:
    assert kappa(np.array([[0, 5], [0, 5]])) == 0.0
    assert kappa(np.array([[0, 0], [0, 5]])) == 0.0 and kappa(np.array([[5, 0], [0, 5]])) == 1.0


# --- thresholds -----------------------------------------------------------------------------------------------------


def test_routes_follow_one_score_or_two() -> None:
    best = np.array([0.9, 0.6, 0.5, 0.2, np.nan])
    assert take((best, best), 0.5, 0.6).tolist() == [0, 0, 1, 2, 1]
    topical = np.array([0.1, 0.1, 0.9, 0.9, 0.1])
    assert take((best, topical), 0.5, 0.6).tolist() == [0, 0, 1, 1, 2]


def test_fitting_finds_thresholds_that_route_all_without_a_fault() -> None:
    expected = np.repeat([0, 1, 2], 30)
    best = np.concatenate([np.linspace(0.8, 0.9, 30), np.linspace(0.5, 0.6, 30), np.linspace(0.1, 0.2, 30)])
    lower, upper = fit((best, best), expected)
    assert macro_f1(confusion(expected, take((best, best), lower, upper))) == 1.0


def test_fitting_puts_lower_above_upper_only_where_they_are_compared_with_two_scores() -> None:
    expected = np.repeat([0, 1, 2], 30)
    answering = np.repeat([0.3, 0.1, 0.1], 30)
    topical = np.repeat([0.9, 0.9, 0.5], 30)  # the best is lower 0.9 and upper 0.3
    lower, upper = fit((answering, topical), expected)
    assert macro_f1(confusion(expected, take((answering, topical), lower, upper))) == 1.0
    for one in (answering, topical):
        lower, upper = fit((one, one), expected)
        assert lower <= upper


def test_fitting_bears_questions_without_a_score() -> None:
    empty = np.array([np.nan, np.nan])
    lower, upper = fit((empty, empty), np.array([0, 2]))
    assert 0 <= lower <= upper <= 1


# --- strips ---------------------------------------------------------------------------------------------------------


def strips(*texts: list[tuple[float, str]]) -> tuple[list[np.ndarray[Any, Any]], Task]:
    questions = tuple(
        Question("?", tuple(Passage(f"p{n}", "x" * 10, "s") for n in range(len(text))), tuple(kind for _, kind in text))
        for text in texts
    )
    return [np.array([score for score, _ in text]) for text in texts], Task(questions, is_strips=True)


def test_strips_are_measured_over_texts_that_allow_a_fault() -> None:
    first, wrong = [(0.9, "answer"), (0.2, "")], [(0.3, "answer"), (0.4, ""), (0.1, "")]
    row = measure_strips(*strips(first, wrong, [(0.9, "answer")], [(0.9, "")]), 0.25)
    assert row["texts"] == "2" and str(row["answer first"]).startswith("0.500")
    assert str(row["answers kept"]).startswith("1.000")
    assert str(row["text kept"]).startswith("0.600")


def test_equal_scores_put_the_answer_first_by_chance() -> None:
    tied = [(0.5, "answer"), (0.5, ""), (0.5, ""), (0.5, "answer")]
    assert str(measure_strips(*strips(tied), None)["answer first"]).startswith("0.500")


def test_what_scores_just_the_cut_off_is_not_kept() -> None:
    row = measure_strips(*strips([(0.25, "answer"), (0.9, "")]), 0.25)
    assert str(row["answers kept"]).startswith("0.000")


def test_an_ungraded_strip_is_struck_out() -> None:
    row = measure_strips(*strips([(float("nan"), "answer"), (0.1, "")]), 0.0)
    assert str(row["answers kept"]).startswith("0.000") and str(row["answer first"]).startswith("0.000")


def test_the_cut_off_keeps_nineteen_of_twenty_and_no_fewer() -> None:
    scores = np.linspace(0.05, 1.0, 20)
    assert find_cutoff(scores) == pytest.approx(0.099)
    assert (scores > find_cutoff(scores)).sum() == 19
    assert find_cutoff(np.array([0.0])) == 0.0


def test_without_any_text_nothing_is_measured() -> None:
    assert measure_strips(*strips([(0.9, "answer")]), 0.5) == {}

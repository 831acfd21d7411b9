"""The figures of the benchmark, against scikit-learn, against brute force, and against repeated samples."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from benchmarks.measures import Estimate, auroc, macro_f1, macro_f1_estimate, midranks, ratio, share
from benchmarks.routing import confusion, fit, take
from benchmarks.sets import Question, Task
from benchmarks.strips import find_cutoff, measure_strips
from crag_core.types import Passage

Sample = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def draw(seed: int, count: int, gap: float = 1.0, decimals: int = 9) -> Sample:
    rng = np.random.default_rng(seed)
    positive = rng.random(count) < 0.4
    positive[:2] = (True, False)
    return np.round(rng.normal(size=count) + gap * positive, decimals), positive


def delong(scores: np.ndarray[Any, Any], positive: np.ndarray[Any, Any]) -> float:
    """Variance by its definition (DeLong 1988), one pair after the other."""
    ones, others = scores[positive], scores[~positive]
    wins = np.array([[1.0 if a > b else 0.5 if a == b else 0.0 for b in others] for a in ones])
    return float(wins.mean(axis=1).var(ddof=1) / len(ones) + wins.mean(axis=0).var(ddof=1) / len(others))


def spread(told: Estimate) -> float:
    """The standard error that the interval was made of."""
    logits = [np.log(value / (1 - value)) for value in (told.low, told.high)]
    return float((logits[1] - logits[0]) / 2 / 1.959964 * told.value * (1 - told.value))


def known(told: Estimate | None) -> Estimate:
    assert told is not None
    return told


# --- AUROC ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "decimals"), product(range(5), (9, 1, 0)))
def test_auroc_is_that_of_scikit_learn_with_and_without_ties(seed: int, decimals: int) -> None:
    scores, positive = draw(seed, 60, decimals=decimals)
    assert known(auroc(scores, positive)).value == pytest.approx(roc_auc_score(positive, scores))


@pytest.mark.parametrize(("seed", "decimals"), product(range(3), (9, 1)))
def test_interval_is_that_of_delong(seed: int, decimals: int) -> None:
    scores, positive = draw(seed, 80, decimals=decimals)
    assert spread(known(auroc(scores, positive))) == pytest.approx(np.sqrt(delong(scores, positive)))


def test_interval_holds_the_truth_as_often_as_it_says() -> None:
    truth = 0.7602  # of two normal distributions one apart
    told = [known(auroc(*draw(seed, 100))) for seed in range(400)]
    assert 0.92 <= np.mean([one.low <= truth <= one.high for one in told]) <= 0.98


def test_values_of_one_cluster_count_as_one() -> None:
    scores, positive = draw(1, 50)
    once = known(auroc(scores, positive))
    copied = [np.tile(values, 4) for values in (scores, positive, np.arange(50))]
    assert known(auroc(copied[0], copied[1])).low > once.low + 0.02
    clustered = known(auroc(*copied))
    assert clustered.value == pytest.approx(once.value)
    assert (clustered.low, clustered.high) == pytest.approx((once.low, once.high), abs=0.005)


def test_positive_and_negative_of_the_same_questions_make_a_narrower_interval() -> None:
    rng = np.random.default_rng(0)
    hard = rng.normal(size=200)  # a question that draws low scores does so for both of its passages
    scores = np.concatenate([hard + 0.5 + 0.3 * rng.normal(size=200), hard + 0.3 * rng.normal(size=200)])
    positive, homes = np.repeat([True, False], 200), np.tile(np.arange(200), 2)
    assert spread(known(auroc(scores, positive, homes))) < 0.6 * spread(known(auroc(scores, positive)))


def test_a_perfect_sample_is_not_taken_for_certain() -> None:
    few = known(auroc([0.1, 0.2, 0.3, 0.8, 0.9, 0.9], [False] * 3 + [True] * 3))
    many = known(auroc([0.1] * 300 + [0.9] * 300, [False] * 300 + [True] * 300))
    assert few.value == many.value == few.high == 1.0
    assert few.low < 0.5 < 0.98 < many.low < 1.0


def test_constant_scores_tell_nothing() -> None:
    told = known(auroc([0.5] * 40, [True, False] * 20))
    assert told.value == 0.5 and told.low < 0.35 and told.high > 0.65


def test_one_of_a_kind_gives_no_interval() -> None:
    assert auroc([0.9, 0.1, 0.2], [True, False, False]) == Estimate(1.0, 0.0, 1.0)
    assert auroc([0.9, 0.8, 0.1, 0.2], [True, True, False, False], [1, 1, 2, 3]) == Estimate(1.0, 0.0, 1.0)


@pytest.mark.parametrize("kinds", [[], [True, True], [False]])
def test_without_both_kinds_there_is_no_auroc(kinds: list[bool]) -> None:
    assert auroc([0.5] * len(kinds), kinds) is None


def test_equal_values_share_their_ranks() -> None:
    assert midranks([3, 1, 3, 2, 3]).tolist() == [4, 1, 4, 2, 4]


# --- shares and macro-F1 --------------------------------------------------------------------------------------------


def test_a_share_has_the_interval_of_wilson() -> None:
    told = known(share(8, 10))
    assert (told.value, told.low, told.high) == pytest.approx((0.8, 0.4902, 0.9433), abs=1e-4)
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


def test_fitting_never_puts_lower_above_upper() -> None:
    expected = np.repeat([0, 1, 2], 30)
    answering = np.repeat([0.3, 0.1, 0.1], 30)
    topical = np.repeat([0.9, 0.9, 0.5], 30)  # the best would be lower 0.9 and upper 0.3
    lower, upper = fit((answering, topical), expected)
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

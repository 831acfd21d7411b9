"""Curves over every threshold, against scikit-learn, against brute force, and on samples too small for either."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from crag_core.experiments.statistics.curves import (
    Histogram,
    auroc,
    average_precision,
    graded,
    histogram,
    precision_recall,
    risk_coverage,
    roc,
)
from crag_core.experiments.statistics.intervals import Estimate, proportion

Sample = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
NAN = float("nan")
DRAWN = list(product(range(4), (9, 1, 0)))
BOTH_KINDS = st.lists(st.tuples(st.integers(0, 10).map(lambda tenths: tenths / 10), st.booleans()), max_size=30)


def draw(seed: int, count: int = 60, decimals: int = 9) -> Sample:
    """Scores in 0..1 of which the positive ones tend to be higher."""
    rng = np.random.default_rng(seed)
    positive = rng.random(count) < 0.4
    positive[:2] = (True, False)
    return np.round(rng.beta(2 + 2 * positive, 3), decimals), positive


def known(told: Any) -> Any:
    assert told is not None
    return told


def same(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


# --- against scikit-learn, and what each threshold counts -------------------------------------------------------------


@pytest.mark.parametrize(("seed", "decimals"), DRAWN)
def test_average_precision_is_that_of_scikit_learn(seed: int, decimals: int) -> None:
    scores, positive = draw(seed, decimals=decimals)
    same(known(average_precision(scores, positive, 0, 10)).value, average_precision_score(positive, scores))


@pytest.mark.parametrize(("seed", "decimals"), DRAWN)
def test_risk_and_coverage_are_what_each_threshold_counts(seed: int, decimals: int) -> None:
    scores, right = draw(seed, decimals=decimals)
    told = known(risk_coverage(scores, right))
    assert told.thresholds.tolist() == sorted(set(scores.tolist()), reverse=True)
    same(told.coverage, [(scores >= threshold).mean() for threshold in told.thresholds])
    same(told.risk, [1 - right[scores >= threshold].mean() for threshold in told.thresholds])
    same(told.area, np.mean([1 - right[scores >= score].mean() for score in scores]))


def test_area_under_the_risk_of_the_best_order_is_below_that_of_the_worst() -> None:
    right = [True] * 6 + [False] * 4
    best, worst = known(risk_coverage(range(10, 0, -1), right)), known(risk_coverage(range(10), right))
    same(best.area, (1 / 7 + 2 / 8 + 3 / 9 + 4 / 10) / 10)
    assert best.risk[0] == 0.0 and worst.risk[0] == 1.0 and best.area < 0.4 < worst.area
    same(known(risk_coverage([0.5] * 10, right)).area, 0.4)


def test_ungraded_questions_have_no_point_and_every_threshold_has_one() -> None:
    scores, positive = [0.2, NAN, 0.9, 0.5], [True, False, True, False]
    false_rate, true_rate, thresholds = known(roc(scores, positive))
    assert thresholds.tolist() == [np.inf, 0.9, 0.5, 0.2]
    assert (false_rate.tolist(), true_rate.tolist()) == ([0.0, 0.0, 1.0, 1.0], [0.0, 0.5, 0.5, 1.0])
    assert [values.tolist() for values in known(precision_recall(scores, positive))] == [
        [pytest.approx(2 / 3), 0.5, 1.0, 1.0],
        [1.0, 0.5, 0.5, 0.0],
    ]
    assert roc([0.5, NAN], [True, False]) is roc([], []) is precision_recall([0.5, NAN], [False, True]) is None


# --- the interval of average precision ------------------------------------------------------------------------------


@pytest.mark.slow
def test_interval_is_that_of_samples_drawn_again() -> None:
    scores, positive = draw(3, 80, decimals=1)
    told = known(average_precision(scores, positive, seed=1, draws=4000))
    rng = np.random.default_rng(7)
    drawn = rng.integers(80, size=(2000, 80))
    theirs = np.quantile([average_precision_score(positive[one], scores[one]) for one in drawn], (0.025, 0.975))
    assert (told.low, told.high) == pytest.approx(tuple(theirs), abs=0.02)


@pytest.mark.slow
def test_interval_holds_the_truth_nearly_as_often_as_it_says() -> None:
    truth = average_precision_score(*reversed(draw(99, 100_000)))
    told = [known(average_precision(*draw(seed, 100), seed=seed, draws=200)) for seed in range(200)]
    assert 0.88 <= np.mean([one.low <= truth <= one.high for one in told]) <= 0.99


def test_the_same_seed_gives_the_same_interval_and_another_gives_another() -> None:
    scores, positive = draw(0)
    first, again, other = (average_precision(scores, positive, seed, 200) for seed in (1, 1, 2))
    assert first == again != other and known(first).value == known(other).value


def test_a_perfect_sample_is_not_taken_for_certain() -> None:
    told = known(average_precision([0.9] * 5 + [0.1] * 5, [True] * 5 + [False] * 5, seed=0))
    assert told.value == told.high == 1.0 and told.low == known(proportion(5, 5)).low < 0.6


def test_one_positive_gives_no_interval() -> None:
    assert average_precision([0.9, 0.8, 0.1], [False, True, False], seed=0) == Estimate(0.5, 0.0, 1.0)
    assert average_precision([0.9], [True], seed=0) == Estimate(1.0, 0.0, 1.0)


# --- ugly samples ---------------------------------------------------------------------------------------------------


def test_of_nothing_there_are_no_curves() -> None:
    assert auroc([], []) is risk_coverage([], []) is average_precision([], [], seed=0) is None
    empty = histogram([], [])
    assert empty.positive.tolist() == empty.negative.tolist() == [0] * 20


def test_without_negatives_all_that_is_taken_is_right() -> None:
    scores, positive = [0.2, 0.9, 0.5], [True] * 3
    assert auroc(scores, positive) is None
    assert known(average_precision(scores, positive, seed=0)).value == 1.0
    assert known(risk_coverage(scores, positive)).area == 0.0


def test_without_positives_there_is_neither_rate_nor_recall() -> None:
    scores, positive = [0.2, 0.9, 0.5], [False] * 3
    assert auroc(scores, positive) is None and average_precision(scores, positive, seed=0) is None
    assert known(risk_coverage(scores, positive)).area == 1.0


def test_equal_scores_make_one_step() -> None:
    scores, positive = [0.5] * 4, [True, False, False, False]
    told = known(average_precision(scores * 5, positive * 5, seed=0))
    assert told.value == 0.25 and 0.05 < told.low < 0.15 and 0.4 < told.high < 0.5
    told = known(risk_coverage(scores, positive))
    assert (told.coverage.tolist(), told.risk.tolist(), told.area) == ([1.0], [0.75], 0.75)


def test_three_questions_can_be_followed_by_hand() -> None:
    scores, positive = [0.2, 0.9, 0.5], [True, True, False]
    assert auroc(scores, positive) == Estimate(0.5, 0.0, 1.0)
    told = known(average_precision(scores, positive, seed=0))
    same(told.value, 0.5 * 1 + 0.5 * 2 / 3)
    assert told.low < told.value <= told.high == 1.0
    same(known(risk_coverage(scores, positive)).risk, [0.0, 0.5, 1 / 3])


@pytest.mark.parametrize("clusters", [None, [1, 1, 2, 3, 3, 4, 5, 9]])
def test_what_was_never_graded_is_left_out(clusters: list[int] | None) -> None:
    scores, positive = [0.9, NAN, 0.4, 0.6, 0.1, NAN, 0.2, 0.8], [True, True, False, True, False, False, True, False]
    found = graded(scores, positive)
    assert found.dropped == 2 and found.scores.tolist() == [0.9, 0.4, 0.6, 0.1, 0.2, 0.8]
    assert found.labels.tolist() == [True, False, True, False, True, False]
    homes = None if clusters is None else np.array(clusters)[found.kept]
    assert auroc(scores, positive, clusters) == auroc(found.scores, found.labels, homes) is not None
    assert average_precision(scores, positive, 0, 50) == average_precision(found.scores, found.labels, 0, 50)
    for curve in (risk_coverage, histogram):
        with_and_without = curve(scores, positive), curve(found.scores, found.labels)
        assert str(with_and_without[0]) == str(with_and_without[1])


def test_nothing_but_ungraded_questions_is_nothing() -> None:
    assert graded([NAN, NAN], [True, False]).dropped == 2
    assert auroc([NAN, NAN], [True, False]) is None and risk_coverage([NAN, NAN], [True, False]) is None


def test_scores_of_any_scale_have_the_same_curves() -> None:
    scores, positive = draw(0)
    logits = 1000 * scores - 2000
    assert auroc(logits, positive) == auroc(scores, positive)
    assert average_precision(logits, positive, 0, 20) == average_precision(scores, positive, 0, 20)
    same(known(risk_coverage(logits, positive)).risk, known(risk_coverage(scores, positive)).risk)


@pytest.mark.parametrize("labels", [[], [True], [True] * 3])
def test_other_numbers_of_scores_and_labels_are_refused(labels: list[bool]) -> None:
    for curve in (auroc, risk_coverage, histogram):
        with pytest.raises(ValueError, match=f"as many labels as scores, found {len(labels)} and 2"):
            curve([0.1, 0.2], labels)


# --- histogram ------------------------------------------------------------------------------------------------------


def test_a_score_on_an_edge_counts_above_it_and_one_in_the_last_bin() -> None:
    told = histogram([0.0, 0.24, 0.25, 0.5, 1.0, 0.99], [True, True, True, False, False, True], bins=4)
    assert told.edges.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert told.positive.tolist() == [2, 1, 0, 1] and told.negative.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("score", [-0.001, 1.001, float("inf")])
def test_a_score_outside_is_not_hidden(score: float) -> None:
    with pytest.raises(ValueError, match=r"scores in 0\.\.1"):
        histogram([0.5, score], [True, False])


# --- whatever the sample --------------------------------------------------------------------------------------------


def figures(pairs: list[tuple[float, bool]]) -> list[Any]:
    scores, labels = [score for score, _ in pairs], [label for _, label in pairs]
    curves = [curve(scores, labels) for curve in (risk_coverage, histogram)]
    numbers = [None if curve is None else [np.asarray(value) for value in vars(curve).values()] for curve in curves]
    return [*numbers, auroc(scores, labels), average_precision(scores, labels, 0, 20)]


@given(BOTH_KINDS, st.randoms(use_true_random=False))
def test_the_order_of_the_questions_does_not_matter(pairs: list[tuple[float, bool]], rng: Any) -> None:
    shuffled = pairs.copy()
    rng.shuffle(shuffled)
    *curves, area, precision = figures(pairs)
    *other_curves, other_area, other_precision = figures(shuffled)
    assert str(curves) == str(other_curves) and precision == other_precision
    assert (area is None) == (other_area is None)
    assert area is None or list(vars(area).values()) == pytest.approx(list(vars(other_area).values()))


@given(BOTH_KINDS)
def test_curves_rise_or_fall_and_stay_within_0_and_1(pairs: list[tuple[float, bool]]) -> None:
    scores, labels = [score for score, _ in pairs], [label for _, label in pairs]
    if risky := risk_coverage(scores, labels):
        assert (np.diff(risky.coverage) > 0).all() and risky.coverage[-1] == 1.0
        assert (risky.risk >= 0).all() and (risky.risk <= 1).all() and 0 <= risky.area <= 1
    counted: Histogram = histogram(scores, labels)
    assert counted.positive.sum() == sum(labels) and counted.negative.sum() == len(labels) - sum(labels)
    for estimate in (auroc(scores, labels), average_precision(scores, labels, 0, 20)):
        assert estimate is None or 0 <= estimate.low <= estimate.high <= 1

"""AUROC and its interval, against scikit-learn, against their definitions, and against repeated samples."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from crag_core.experiments.statistics.curves import auroc
from crag_core.experiments.statistics.intervals import Estimate

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


@pytest.mark.parametrize(("seed", "decimals"), product(range(5), (9, 1, 0)))
def test_auroc_is_that_of_scikit_learn_with_and_without_ties(seed: int, decimals: int) -> None:
    scores, positive = draw(seed, 60, decimals=decimals)
    assert known(auroc(scores, positive)).value == pytest.approx(roc_auc_score(positive, scores))


@pytest.mark.parametrize(("seed", "decimals"), product(range(3), (9, 1)))
def test_interval_is_that_of_delong(seed: int, decimals: int) -> None:
    scores, positive = draw(seed, 80, decimals=decimals)
    assert spread(known(auroc(scores, positive))) == pytest.approx(np.sqrt(delong(scores, positive)))


@pytest.mark.slow
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

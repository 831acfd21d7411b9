"""AUROC and its interval: against scikit-learn, their definitions and repeated samples."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.experiments.statistics.curves import auroc, graded
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


@pytest.mark.parametrize(("seed", "decimals"), DRAWN)
def test_areas_are_those_of_scikit_learn(seed: int, decimals: int) -> None:
    from sklearn.metrics import roc_auc_score

    scores, positive = draw(seed, decimals=decimals)
    same(known(auroc(scores, positive)).value, roc_auc_score(positive, scores))


# --- intervals --------------------------------------------------------------------------------------------------------


def spread(told: Estimate) -> float:
    """The standard error that the interval of an AUROC was made of."""
    logits = [np.log(value / (1 - value)) for value in (told.low, told.high)]
    return float((logits[1] - logits[0]) / 2 / 1.959964 * told.value * (1 - told.value))


@pytest.mark.parametrize(("seed", "decimals"), product(range(3), (9, 1)))
def test_the_interval_of_auroc_is_delongs(seed: int, decimals: int) -> None:
    """By its definition (1988), one pair after the other."""
    scores, positive = draw(seed, 80, decimals)
    ones, others = scores[positive], scores[~positive]
    wins = np.array([[1.0 if a > b else 0.5 if a == b else 0.0 for b in others] for a in ones])
    variance = wins.mean(axis=1).var(ddof=1) / len(ones) + wins.mean(axis=0).var(ddof=1) / len(others)
    assert spread(known(auroc(scores, positive))) == pytest.approx(np.sqrt(variance))


# --- small and ugly samples -------------------------------------------------------------------------------------------


def test_a_perfect_sample_is_not_taken_for_certain() -> None:
    few, many = (known(auroc([0.1] * count + [0.9] * count, [False] * count + [True] * count)) for count in (3, 300))
    assert few.value == many.value == few.high == 1.0 and few.low < 0.5 < 0.98 < many.low < 1.0
    assert known(auroc([0.1] * 5 + [0.9] * 5, [False] * 5 + [True] * 5)).low == known(proportion(5, 5)).low < 0.6


def test_one_of_a_kind_gives_no_interval() -> None:
    assert auroc([0.9, 0.1, 0.2], [True, False, False]) == Estimate(1.0, 0.0, 1.0)


def test_equal_scores_make_one_step() -> None:
    told = known(auroc([0.5] * 40, [True, False] * 20))
    assert told.value == 0.5 and told.low < 0.35 and told.high > 0.65


@pytest.mark.parametrize("positive", [[True] * 3, [False] * 3])
def test_of_one_kind_there_is_no_auroc(positive: list[bool]) -> None:
    assert auroc([0.2, 0.9, 0.5], positive) is None


@pytest.mark.parametrize("count", [0, 2])
def test_nothing_and_what_was_never_graded_is_nothing(count: int) -> None:
    assert auroc([NAN] * count, [True, False][:count]) is None


def test_what_was_never_graded_is_left_out() -> None:
    scores, positive = [0.9, NAN, 0.4, 0.6, 0.1, NAN, 0.2, 0.8], [True, True, False, True, False, False, True, False]
    found = graded(scores, positive)
    assert found.scores.tolist() == [0.9, 0.4, 0.6, 0.1, 0.2, 0.8]
    assert found.labels.tolist() == [True, False, True, False, True, False]
    assert auroc(scores, positive) == auroc(found.scores, found.labels) is not None


@pytest.mark.parametrize("labels", [[], [True], [True] * 3])
def test_other_numbers_of_scores_and_labels_are_refused(labels: list[bool]) -> None:
    with pytest.raises(ValueError, match=f"as many labels as scores, found {len(labels)} and 2"):
        auroc([0.1, 0.2], labels)


@given(BOTH_KINDS, st.randoms(use_true_random=False))
def test_neither_the_order_of_the_questions_nor_the_scale_matters(pairs: list[tuple[float, bool]], rng: Any) -> None:
    shuffled = pairs.copy()
    rng.shuffle(shuffled)
    (scores, labels), (others, of_others) = ([list(each) for each in zip(*some, strict=True)] or [[], []]
                                             for some in (pairs, shuffled))  # fmt: skip
    others = [1000 * score - 2000 for score in others]
    one, other = auroc(scores, labels), auroc(others, of_others)
    assert (one is None) == (other is None)
    assert one is None or (one.value, 0 <= one.low <= one.high <= 1) == (pytest.approx(known(other).value), True)

"""Probabilities held against what came true: against scikit-learn, by hand, and on hardly any."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from crag_core.experiments.statistics.calibration import Bin, ece, reliability
from crag_core.experiments.statistics.intervals import proportion

SAID = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=30)


def draw(seed: int, decimals: int = 9) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    said = np.round(rng.random(80), decimals)
    return said, rng.random(80) < said**2


@pytest.mark.parametrize(("seed", "decimals", "bins"), product(range(3), (9, 1), (5, 10, 15)))
def test_rows_are_those_of_scikit_learn(seed: int, decimals: int, bins: int) -> None:
    said, came_true = draw(seed, decimals)
    rows = [row for row in reliability(said, came_true, bins) if row.count]
    shares, means = calibration_curve(came_true, said, n_bins=bins)
    np.testing.assert_allclose([row.share.value for row in rows if row.share], shares, rtol=0, atol=1e-9)
    np.testing.assert_allclose([row.mean or 0.0 for row in rows], means, rtol=0, atol=1e-9)
    assert sum(row.count for row in rows) == 80


@pytest.mark.parametrize(("seed", "bins"), product(range(3), (1, 7, 10)))
def test_ece_is_what_its_definition_says(seed: int, bins: int) -> None:
    said, came_true = draw(seed)
    gap = 0.0
    for number in range(bins):
        here = (said > number / bins) & (said <= (number + 1) / bins)
        gap += abs(came_true[here].sum() - said[here].sum()) / len(said)
    assert ece(said, came_true, bins) == pytest.approx(gap, abs=1e-9)


def test_rows_by_hand() -> None:
    rows = reliability([0.0, 0.5, 0.3, 1.0], [False, True, False, True], bins=4)
    assert rows == (
        Bin(0.0, 0.25, 1, 0.0, proportion(0, 1)),
        Bin(0.25, 0.5, 2, 0.4, proportion(1, 2)),
        Bin(0.5, 0.75, 0, None, None),
        Bin(0.75, 1.0, 1, 1.0, proportion(1, 1)),
    )
    assert ece([0.0, 0.5, 0.3, 1.0], [False, True, False, True], bins=4) == pytest.approx(2 / 4 * 0.1)


def test_a_liar_is_found_and_an_honest_one_is_not() -> None:
    came_true = [True] * 8 + [False] * 2
    assert ece([0.8] * 10, came_true) == pytest.approx(0.0) and ece([0.2] * 10, came_true) == pytest.approx(0.6)
    assert ece([1.0, 0.0], [False, True]) == 1.0


@pytest.mark.parametrize("said", [[], [float("nan")]])
def test_where_nothing_was_said_nothing_can_come_true(said: list[float]) -> None:
    came_true = [True] * len(said)
    assert ece(said, came_true) is None
    rows = reliability(said, came_true)
    assert len(rows) == 10 and all(row.count == 0 and row.mean is None and row.share is None for row in rows)


def test_what_was_never_graded_is_left_out() -> None:
    said, came_true = [0.2, float("nan"), 0.9], [False, False, True]
    assert reliability(said, came_true) == reliability([0.2, 0.9], [False, True])
    assert ece(said, came_true) == ece([0.2, 0.9], [False, True])


@pytest.mark.parametrize("wrong", [-0.1, 1.0001, float("inf")])
def test_what_is_no_probability_is_refused(wrong: float) -> None:
    for measure in (reliability, ece):
        with pytest.raises(ValueError, match=rf"probabilities in 0\.\.1, found {wrong}"):
            measure([0.5, wrong], [True, False])
        with pytest.raises(ValueError, match="found 1 and 2"):
            measure([0.5, 0.6], [True])


@given(SAID, st.integers(1, 20), st.randoms(use_true_random=False))
def test_every_probability_is_in_its_bin_whatever_the_order(
    pairs: list[tuple[float, bool]], bins: int, rng: Any
) -> None:
    said, came_true = [one for one, _ in pairs], [label for _, label in pairs]
    rows = reliability(said, came_true, bins)
    assert sum(row.count for row in rows) == len(said) and (rows[0].low, rows[-1].high) == (0.0, 1.0)
    for row in rows:
        assert row.mean is None or row.low - 1e-12 <= row.mean <= row.high + 1e-12
    shuffled = pairs.copy()
    rng.shuffle(shuffled)
    other = reliability([one for one, _ in shuffled], [label for _, label in shuffled], bins)
    assert [(row.count, row.share) for row in rows] == [(row.count, row.share) for row in other]
    told = ece(said, came_true)
    assert told is None if not said else told is not None and 0 <= told <= 1 + 1e-12

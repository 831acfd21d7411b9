"""The logistic curve: by its slopes, and on separated, reversed and lopsided samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.experiments.statistics.calibration import Coefficients, fit_platt
from tests.experiments.test_calibration import BOTH, draw
from tests.experiments.test_calibration import on_platt as follow_platt


def fitted(scores: Any, outcomes: Any) -> Coefficients:
    return fit_platt(np.asarray(scores, dtype=float), np.asarray(outcomes, dtype=bool))


def smoothed(outcomes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    right = int(outcomes.sum())
    return np.where(outcomes, (right + 1) / (right + 2), 1 / (len(outcomes) - right + 2))


def slopes(scores: Any, outcomes: Any, slope: float, offset: float) -> tuple[float, float]:
    """Of the log loss, by slope and by offset: both 0 where it is least."""
    wrong = np.array([follow_platt(float(score), slope, offset) for score in scores]) - smoothed(np.asarray(outcomes))
    return float((wrong * np.asarray(scores)).sum()), float(wrong.sum())


def test_platt_has_the_least_loss_of_smoothed_outcomes() -> None:
    scores, outcomes = draw(0, decimals=1)
    assert slopes(scores, outcomes, *fit_platt(scores, outcomes)) == pytest.approx((0, 0), abs=1e-9)


@pytest.mark.parametrize(
    "scores",
    [
        [0.1] * 10 + [0.9] * 10,
        [0.0] * 10 + [1.0] * 10,
        [0.5] * 10 + [0.5 + 1e-9] * 10,
        [*np.linspace(0, 0.49, 10), *np.linspace(0.51, 1, 10)],
        [0.0] * 19 + [1.0],
    ],
)
def test_platt_finds_the_least_loss_of_separated_kinds(scores: list[float]) -> None:
    outcomes = [False] * 10 + [True] * 10
    slope, offset = fitted(scores, outcomes)
    assert math.isfinite(slope) and slope > 0
    width = max(scores) - min(scores)
    assert slopes(scores, outcomes, slope, offset) == pytest.approx((0, 0), abs=1e-9 / width if width < 0.1 else 1e-9)
    assert follow_platt(scores[0], slope, offset) < 0.5 < follow_platt(scores[-1], slope, offset) < 1


def test_two_places_have_the_smoothed_shares_themselves() -> None:
    slope, offset = fitted([0.2] * 30 + [0.7] * 10, [False] * 30 + [True] * 10)
    assert follow_platt(0.2, slope, offset) == pytest.approx(1 / 32, abs=1e-9)
    assert follow_platt(0.7, slope, offset) == pytest.approx(11 / 12, abs=1e-9)


@pytest.mark.parametrize("scores", [[0.5] * 40, [0.9] * 30 + [0.1] * 10, [0.3] * 30 + [0.1 + 0.2] * 10])
def test_platt_never_falls(scores: list[float]) -> None:
    outcomes = [False] * 30 + [True] * 10
    slope, offset = fitted(scores, outcomes)
    assert slope == 0.0
    assert follow_platt(0.0, slope, offset) == pytest.approx(smoothed(np.array(outcomes)).mean(), abs=1e-9)


def test_platt_with_ten_of_a_kind_among_thousands() -> None:
    scores = np.linspace(0, 1, 5010)
    slope, offset = fitted(scores, scores >= scores[-10])
    assert slopes(scores, scores >= scores[-10], slope, offset) == pytest.approx((0, 0), abs=1e-7)


def test_platt_arrives_where_whole_steps_would_lead_astray() -> None:
    scores = [*np.linspace(0, 0.01, 200), 1.0, *[0.3] * 10]
    outcomes = [False] * 201 + [True] * 10
    assert slopes(scores, outcomes, *fitted(scores, outcomes)) == pytest.approx((0, 0), abs=1e-9)
    assert fitted(scores, outcomes)[0] > 0


def test_far_ends_do_not_overflow() -> None:
    assert (follow_platt(1.0, 1e9, 0.0), follow_platt(-1.0, 1e9, 0.0)) == (1.0, 0.0)


@settings(max_examples=50, deadline=None)
@given(BOTH, st.randoms(use_true_random=False))
def test_the_order_of_the_questions_does_not_matter(pairs: list[tuple[float, bool]], rng: Any) -> None:
    shuffled = pairs.copy()
    rng.shuffle(shuffled)
    one, other = (fit_platt(*map(np.array, zip(*some, strict=True))) for some in (pairs, shuffled))
    assert one == pytest.approx(other, abs=1e-9)

"""Curves from scores to probabilities: fitted, chosen, refused, kept; and probabilities against the truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain, to_plain
from crag_core.experiments.statistics.calibration import Calibration, fit_platt
from crag_core.experiments.statistics.curves import graded

Sample = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
NAN = float("nan")
BOTH = st.lists(st.tuples(st.integers(0, 20).map(lambda score: score / 20), st.booleans()), max_size=40).map(
    lambda pairs: [*pairs, *[(0.3, False), (0.6, True)] * 10]
)


def draw(seed: int, count: int = 200, decimals: int = 9) -> Sample:
    """Of which an answer becomes likely above a score of one half, less steeply than by the score itself."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random(count), decimals)
    return scores, rng.random(count) < 0.2 + 0.6 * (scores > 0.5)


def made(curve: tuple[float, float], questions: int = 20) -> Calibration:
    return Calibration(questions, curve)


def kept(scores: Any, outcomes: Any) -> Calibration:
    found = graded(scores, outcomes)
    return made(fit_platt(found.scores, found.labels), len(found.scores))


def on_platt(score: float, slope: float, offset: float) -> float:
    return made((slope, offset)).probability(score)


# --- the curves -------------------------------------------------------------------------------------------------------


def slopes(scores: Any, outcomes: Any, slope: float, offset: float) -> tuple[float, float]:
    """Of the log loss against smoothed outcomes, by slope and by offset: both 0 where it is least."""
    right = int(np.sum(outcomes))
    smoothed = np.where(outcomes, (right + 1) / (right + 2), 1 / (len(outcomes) - right + 2))
    wrong = np.array([on_platt(float(score), slope, offset) for score in scores]) - smoothed
    return float((wrong * np.asarray(scores)).sum()), float(wrong.sum())


TEN = [False] * 10 + [True] * 10
RARE = np.linspace(0, 1, 5010)


@pytest.mark.parametrize(
    ("scores", "outcomes"),
    [
        draw(0, decimals=1),
        ([0.1] * 10 + [0.9] * 10, TEN),
        ([*np.linspace(0, 0.49, 10), *np.linspace(0.51, 1, 10)], TEN),
        ([0.0] * 19 + [1.0], TEN),
        (RARE, RARE[-11] < RARE),
        ([*np.linspace(0, 0.01, 200), 1.0, *[0.3] * 10], [False] * 201 + [True] * 10),
    ],
)
def test_platt_has_the_least_loss_of_smoothed_outcomes(scores: Any, outcomes: Any) -> None:
    slope, offset = fit_platt(np.asarray(scores, dtype=float), np.asarray(outcomes))
    assert math.isfinite(slope) and slope > 0
    assert slopes(scores, outcomes, slope, offset) == pytest.approx((0, 0), abs=1e-7)


def test_two_places_have_the_smoothed_shares_themselves() -> None:
    curve = fit_platt(np.repeat([0.2, 0.7], [30, 10]), np.repeat([False, True], [30, 10]))
    assert on_platt(0.2, *curve) == pytest.approx(1 / 32, abs=1e-9)
    assert on_platt(0.7, *curve) == pytest.approx(11 / 12, abs=1e-9)


@pytest.mark.parametrize("scores", [[0.5] * 40, [0.9] * 30 + [0.1] * 10, [0.3] * 30 + [0.1 + 0.2] * 10])
def test_platt_never_falls_and_does_not_overflow(scores: list[float]) -> None:
    assert fit_platt(np.array(scores), np.repeat([False, True], [30, 10]))[0] == 0.0
    assert (on_platt(1.0, 1e9, 0.0), on_platt(-1.0, 1e9, 0.0)) == (1.0, 0.0)


@settings(max_examples=50, deadline=None)
@given(BOTH, st.lists(st.floats(-1, 2), min_size=2, max_size=20))
def test_a_higher_score_never_has_a_lower_probability(pairs: list[tuple[float, bool]], places: list[float]) -> None:
    scores, outcomes = [score for score, _ in pairs], [label for _, label in pairs]
    told = kept(scores, outcomes)
    line = np.array([told.probability(place) for place in sorted([*places, *scores])])
    assert (np.diff(line) >= -1e-12).all() and (line >= 0).all() and (line <= 1).all()


# --- wrong, and as a record -------------------------------------------------------------------------------


def test_a_calibration_survives_being_kept() -> None:
    told = kept([*draw(0)[0], NAN], [*draw(0)[1], True])
    assert told.questions == 200 and from_plain(Calibration, to_plain(told)) == told
    with pytest.raises(ValueError, match="expected a score, found NaN"):
        told.probability(NAN)


@pytest.mark.parametrize("coefficients", [[1.0], [1.0, 0.0, 0.0], [-1.0, 0.0], ["1", 0.0]])
def test_a_kept_calibration_that_cannot_be_is_refused(coefficients: list[Any]) -> None:
    with pytest.raises(BadRecord):
        from_plain(Calibration, {"questions": 20, "coefficients": coefficients})

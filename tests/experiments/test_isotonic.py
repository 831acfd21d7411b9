"""The curve that never falls: against scikit-learn, by hand, and on level stretches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from crag_core.experiments.statistics.calibration import Knots, fit_isotonic
from tests.experiments.test_calibration import BOTH, draw
from tests.experiments.test_calibration import on_isotonic as follow_isotonic

GRID = np.linspace(-0.1, 1.1, 121)


def fitted(scores: Any, outcomes: Any) -> Knots:
    return fit_isotonic(np.asarray(scores, dtype=float), np.asarray(outcomes, dtype=bool))


@pytest.mark.parametrize(("seed", "decimals"), ((0, 9), (1, 2), (2, 1)))
def test_knots_say_what_scikit_learn_predicts(seed: int, decimals: int) -> None:
    scores, outcomes = draw(seed, decimals=decimals)
    knots = fit_isotonic(scores, outcomes)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, outcomes)
    places = np.concatenate([GRID, scores])
    np.testing.assert_allclose([follow_isotonic(x, knots) for x in places], theirs.predict(places), rtol=0, atol=1e-9)


def test_knots_by_hand() -> None:
    scores = [0.1] * 5 + [0.2] * 5 + [0.4] * 5 + [0.6] * 5 + [0.8] * 5
    shares = (0, 3, 1, 5, 5)
    outcomes = [number < share for share in shares for number in range(5)]
    knots = fitted(scores, outcomes)
    assert [place for place, _ in knots] == [0.1, 0.2, 0.4, 0.6, 0.8]
    assert [level for _, level in knots] == pytest.approx([0, 0.4, 0.4, 1, 1])
    assert follow_isotonic(0.5, knots) == pytest.approx(0.7) and follow_isotonic(0.3, knots) == pytest.approx(0.4)
    assert follow_isotonic(0.0, knots) == 0.0 and follow_isotonic(0.9, knots) == 1.0


def test_a_level_stretch_is_kept_by_its_ends() -> None:
    scores = np.linspace(0, 1, 40)
    assert [place for place, _ in fitted(scores, scores > 0.5)] == [0.0, *scores[19:21], 1.0]
    assert fitted([0.5] * 40, [True] * 10 + [False] * 30) == ((0.5, 0.25),)
    assert fitted(scores, scores < 0.5) == ((0.0, 0.5), (1.0, 0.5))


@settings(max_examples=50, deadline=None)
@given(BOTH, st.randoms(use_true_random=False))
def test_the_order_of_the_questions_does_not_matter(pairs: list[tuple[float, bool]], rng: Any) -> None:
    shuffled = pairs.copy()
    rng.shuffle(shuffled)
    one, other = (fit_isotonic(*map(np.array, zip(*some, strict=True))) for some in (pairs, shuffled))
    assert one == other

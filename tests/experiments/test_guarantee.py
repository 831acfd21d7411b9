"""The bound: exact, refused where it cannot hold, and violated no more often than stated."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.stats import beta

from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.thresholds.recommend import guarantee, questions_needed
from crag_core.experiments.thresholds.threshold_board import grid
from tests.builders import policy
from tests.experiments.made_up_sets import board, case

AXIS = grid(21)


@pytest.mark.parametrize(("limit", "confidence", "count"), [(0.05, 0.95, 59), (0.1, 0.9, 22), (0.01, 0.99, 459)])
def test_the_number_of_questions_that_a_limit_needs(limit: float, confidence: float, count: int) -> None:
    assert questions_needed(limit, confidence) == count
    assert (1 - limit) ** count <= 1 - confidence < (1 - limit) ** (count - 1)


def spread(count: int) -> list[float]:
    return [(n + 0.5) / count for n in range(count)]


def test_the_lowest_threshold_that_passes_and_its_bound() -> None:
    seen = board(*(case(n, Expected.INCORRECT, score) for n, score in enumerate(spread(200))))
    found = guarantee(seen, 0.0, AXIS, 0.1, 0.95)
    assert found.upper == 0.95 and found.wrong == 10 and found.unanswerable == 200
    assert found.bound == pytest.approx(float(beta.ppf(0.95, 11, 190)), abs=1e-12)
    at_most_20 = sum(comb(200, k) * 0.1**k * 0.9 ** (200 - k) for k in range(21))
    assert at_most_20 > 0.05  # so 0.90, with 20 of 200, does not pass
    assert "10 of 200 at upper 0.950" in found.reason and "95% confidence" in found.reason


def test_the_first_failure_ends_it_although_a_later_one_might_pass() -> None:
    """Whatever a rate does further down: nothing after a failure may be used."""

    class Falling(Uniform):
        def is_correct(self, lower: float, uppers: np.ndarray) -> np.ndarray:
            return np.tile(np.isclose(uppers, 0.8), (len(self.scores), 1))  # all wrong at 0.8, none anywhere else

    found = guarantee(Falling(np.zeros(200)), 0.0, AXIS, 0.1)  # type: ignore[arg-type]
    assert found.upper == 0.85


def test_where_even_the_safest_threshold_fails_there_is_none() -> None:
    seen = board(*(case(n, Expected.INCORRECT, 0.99) for n in range(100)))
    assert guarantee(seen, 0.0, AXIS, 0.1).upper == 1.0
    certain = board(*(case(n, Expected.INCORRECT, 1.0) for n in range(100)))
    found = guarantee(certain, 0.0, AXIS, 0.1)
    assert found.upper is None and "even the highest" in found.reason


def test_too_few_questions_are_refused_with_the_number_that_is_missing() -> None:
    seen = board(*(case(n, Expected.INCORRECT, 0.1) for n in range(20)), *(case(99, Expected.CORRECT, 0.9),))
    found = guarantee(seen, 0.0, AXIS, 0.05)
    assert found.upper is None and found.needed == 39 and found.unanswerable == 20
    assert "20 unanswerable questions cannot show it, 39 more are needed" in found.reason


def test_no_threshold_below_lower_is_tried() -> None:
    seen = board(*(case(n, Expected.INCORRECT, 0.1) for n in range(100)))
    assert guarantee(seen, 0.6, AXIS, 0.1).upper == 0.6


@pytest.mark.parametrize("bad", [(0.0, 0.95), (1.0, 0.95), (0.1, 0.0), (0.1, 1.0)])
def test_limits_and_confidence_lie_between_0_and_1(bad: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        guarantee(board(), 0.0, AXIS, *bad)


@pytest.mark.parametrize("limit", [0.05, 0.1, 0.2])
def test_the_bound_is_violated_no_more_often_than_stated(limit: float) -> None:
    """1,000 sets of 120 unanswerable questions with uniform scores: the true rate at `upper` is 1 - upper."""
    random, violated, passed = np.random.default_rng(11), 0, 0
    for _ in range(1000):
        scores = random.uniform(size=120)
        found = guarantee(Uniform(scores), 0.0, grid(101), limit, 0.9)  # type: ignore[arg-type]
        passed += found.upper is not None
        violated += found.upper is not None and 1.0 - found.upper > limit + 1e-9
    assert passed > 950
    # Stated: at most 100 of 1,000; three standard errors of chance on top.
    assert violated <= 100 + 3 * np.sqrt(1000 * 0.1 * 0.9)


def test_the_simulation_can_fail() -> None:
    """Choosing the lowest threshold whose observed rate keeps the limit violates it about every other time."""
    random, violated = np.random.default_rng(11), 0
    for _ in range(300):
        scores, uppers = random.uniform(size=120), grid(101)
        seen = (scores[:, None] >= uppers).mean(axis=0)
        violated += 1.0 - uppers[seen <= 0.1].min() > 0.1 + 1e-9
    assert violated > 60


class Uniform:
    """As much of a board as a guarantee reads."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores, self.answerable = scores, np.zeros(len(scores), dtype=bool)
        self.policy = policy("paper")

    def is_correct(self, lower: float, uppers: np.ndarray) -> np.ndarray:
        return np.asarray(self.scores[:, None] >= np.asarray(uppers))

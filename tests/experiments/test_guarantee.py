"""The promise: exact, refused where it cannot hold, and broken no more often than stated."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.stats import beta

from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.thresholds.guarantee import find_path, guarantee, questions_needed
from crag_core.experiments.thresholds.objective import Objective, allowed, losses
from crag_core.experiments.thresholds.recommend import recommend
from crag_core.experiments.thresholds.threshold_board import CORRECT, Board, grid
from tests.builders import policy
from tests.experiments.made_up_sets import board, case, drawn

AXIS = grid(21)
DOWN = tuple((0.0, float(upper)) for upper in AXIS[::-1])
LIMIT = 0.1


@pytest.mark.parametrize(("limit", "confidence", "count"), [(0.05, 0.95, 59), (0.1, 0.9, 22), (0.01, 0.99, 459)])
def test_the_number_of_questions_that_a_limit_needs(limit: float, confidence: float, count: int) -> None:
    assert questions_needed(limit, confidence) == count
    assert (1 - limit) ** count <= 1 - confidence < (1 - limit) ** (count - 1)


def unanswerable(*scores: float) -> Board:
    return board(*(case(n, Expected.INCORRECT, score) for n, score in enumerate(scores)))


def test_the_last_pair_that_passes_and_its_bound() -> None:
    found = guarantee(unanswerable(*((n + 0.5) / 200 for n in range(200))), DOWN, LIMIT, 0.95)
    assert found.pair == (0.0, 0.95) and found.wrong == 10 and found.unanswerable == 200
    assert found.bound == pytest.approx(float(beta.ppf(0.95, 11, 190)), abs=1e-12)
    assert sum(comb(200, k) * 0.1**k * 0.9 ** (200 - k) for k in range(21)) > 0.05  # so 0.90, with 20, does not pass
    assert "at lower 0.00 and upper 0.95" in found.reason() and "10 of 200" in found.reason()
    assert found.odds == "1 of 20 such promises may be broken."
    assert found.covers(0.0, 1.0) and not found.covers(0.0, 0.9)


def test_the_first_failure_ends_it_although_a_later_pair_would_pass() -> None:
    found = guarantee(unanswerable(*[0.5] * 100), ((0.0, 0.9), (0.0, 0.4), (0.0, 0.8)), LIMIT, 0.95)
    assert found.passed == ((0.0, 0.9),)


def test_where_even_the_first_pair_fails_there_is_none() -> None:
    found = guarantee(unanswerable(*[1.0] * 100), DOWN, LIMIT, 0.95)
    assert found.pair is None and "the safest thresholds did not pass" in found.reason()


def test_too_few_questions_are_refused_with_the_number_that_is_missing() -> None:
    found = guarantee(unanswerable(*[0.1] * 20), DOWN, 0.05, 0.95)
    assert found.pair is None and found.needed == 39
    assert "20 unanswerable held-out questions are too few, at least 39 more are needed" in found.reason()


def test_each_step_of_a_path_is_cheaper_and_less_safe() -> None:
    seen = drawn(400, seed=1)
    loss = losses(seen, Objective(most_wrong=LIMIT))
    path = find_path(seen, loss, AXIS, allowed(seen, AXIS, AXIS), LIMIT)
    costs = [loss[np.arange(400), seen.actions(*pair)].mean() for pair in path]
    wrong = [(seen.actions(*pair)[~seen.answerable] == CORRECT).sum() for pair in path]
    assert len(path) > 3 and costs == sorted(costs, reverse=True) and wrong == sorted(wrong)


@pytest.mark.exhaustive
def test_a_promise_is_broken_no_more_often_than_stated() -> None:
    """40 sets, each halved, ordered by one half and tested on the other; what is true is seen on 20,000 others."""
    truth = drawn(20_000, seed=1234)
    asked, broken, made = ~truth.answerable, 0, 0
    for seed in range(40):
        found = recommend(drawn(300, seed=seed), Objective(most_wrong=0.2), confidence=0.9, steps=11)
        if found.why_not:
            continue
        made += 1
        actions = truth.actions(found.lower, found.upper)
        broken += (actions[asked] == CORRECT).mean() > 0.2
    assert made >= 10
    # Stated: at most 4 of 40; two standard errors of chance on top.
    assert broken <= 4 + 2 * np.sqrt(40 * 0.1 * 0.9)


@pytest.mark.parametrize("limit", [0.05, 0.2])
def test_the_bound_is_violated_no_more_often_than_stated(limit: float) -> None:
    """600 sets of 120 unanswerable questions with uniform scores: the true rate at `upper` is 1 - upper."""
    random, violated, passed = np.random.default_rng(11), 0, 0
    path = tuple((0.0, float(upper)) for upper in grid(101)[::-1])
    for _ in range(600):
        found = guarantee(Uniform(random.uniform(size=120)), path, limit, 0.9)  # type: ignore[arg-type]
        passed += found.pair is not None
        violated += found.pair is not None and 1.0 - found.pair[1] > limit + 1e-9
    assert passed > 570
    assert violated <= 60 + 3 * np.sqrt(600 * 0.1 * 0.9)


class Uniform:
    """As much of a board as a guarantee reads."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores, self.answerable = scores, np.zeros(len(scores), dtype=bool)
        self.policy = policy("paper")

    def __len__(self) -> int:
        return len(self.scores)

    def actions(self, lower: float, upper: float) -> np.ndarray:
        return np.where(self.scores >= upper, CORRECT, 1)

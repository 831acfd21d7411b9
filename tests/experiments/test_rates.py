"""Named rates and costs, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from crag_core.base.types.decisions import Action
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.thresholds.objective import FEWEST_WEB, Costs, Objective, losses, surface, wrong_surface
from crag_core.experiments.thresholds.threshold_board import ACTIONS, CORRECT, INCORRECT, confusion, rate
from tests.experiments.made_up_sets import board, case

SEEN = board(
    case(1, Expected.CORRECT, 0.9),
    case(2, Expected.CORRECT, 0.5),
    case(3, Expected.CORRECT, 0.1),
    case(4, Expected.AMBIGUOUS, 0.95),
    case(5, Expected.AMBIGUOUS, 0.5),
    case(6, Expected.INCORRECT, 0.1),
    case(7, Expected.INCORRECT, 0.5),
    case(8, Expected.UNANSWERABLE, 0.1),
)


def test_the_table_counts_expected_routes_against_those_taken() -> None:
    assert confusion(SEEN, SEEN.actions(0.3, 0.8)).tolist() == [[1, 1, 1], [1, 1, 0], [0, 1, 1], [0, 0, 1]]


def test_rates_have_their_own_denominators() -> None:
    found = rate(SEEN, SEEN.actions(0.3, 0.8))
    assert found.answered and found.answered.value == pytest.approx(1 / 3)
    assert found.confidently_wrong and found.confidently_wrong.value == pytest.approx(1 / 5)
    assert found.needless_web and found.needless_web.value == pytest.approx(2 / 3)
    assert found.missed_web and found.missed_web.value == pytest.approx(1 / 5)
    assert found.discarded and found.discarded.value == pytest.approx(1 / 3)
    assert found.web and found.web.value == pytest.approx(6 / 8)
    assert found.right and found.right.value == pytest.approx(4 / 8)
    assert found.questions == 8


def test_what_cannot_be_measured_is_none() -> None:
    found = rate(board(case(1, Expected.CORRECT, 0.9)), np.array([CORRECT]))
    assert found.confidently_wrong is None and found.missed_web is None and found.needless_web is not None
    empty = rate(board(), np.array([], dtype=int))
    assert empty.right is None and empty.calls == 0.0


def test_either_route_is_right_for_an_unanswerable_question() -> None:
    for action, wanted in ((Action.CORRECT, False), (Action.AMBIGUOUS, True), (Action.INCORRECT, True)):
        (right,) = [rate(one, np.array([ACTIONS.index(action)])).right for one in [board(SEEN.cases[7])]]
        assert right and right.value == wanted


def test_costs_add_up() -> None:
    costs = Costs(wrong=10, missed=3, mixed_up=0.5, web=1, call=0)
    loss = losses(SEEN, Objective(costs))
    taken = loss[np.arange(8), SEEN.actions(0.3, 0.8)]
    assert taken.tolist() == [0, 1, 4, 10, 1, 1, 1.5, 1]


def test_the_surface_is_the_mean_cost_at_every_cell() -> None:
    axis = np.array([0.0, 0.3, 0.8, 1.0])
    loss = losses(SEEN, Objective())
    found, wrong = surface(SEEN, loss, axis, axis), wrong_surface(SEEN, axis, axis)
    for i, lower in enumerate(axis):
        for j, upper in enumerate(axis):
            if lower > upper:
                assert np.isnan(found[i, j]) and np.isnan(wrong[i, j])
                continue
            actions = SEEN.actions(lower, upper)
            assert found[i, j] == pytest.approx(loss[np.arange(8), actions].mean())
            told = rate(SEEN, actions).confidently_wrong
            assert told and wrong[i, j] == pytest.approx(told.value)


def test_with_a_limit_one_search_outweighs_all_else() -> None:
    loss = losses(SEEN, Objective(most_wrong=0.1))
    assert (loss[:, INCORRECT] >= FEWEST_WEB).all() and (loss[:, CORRECT] < FEWEST_WEB).all()


@pytest.mark.parametrize("bad", [{"wrong": -1.0}, {"web": float("nan")}, {"call": float("inf")}])
def test_a_cost_is_a_number_from_0(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be a number from 0"):
        Costs(**bad)


@pytest.mark.parametrize("limit", [0.0, 1.0, -0.1, float("nan")])
def test_a_limit_lies_between_0_and_1(limit: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Objective(most_wrong=limit)

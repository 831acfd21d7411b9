"""Thresholds are chosen on one half, judged on the other, and not chosen at all where that would mislead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.thresholds.objective import Costs, Objective, find_plateau, losses, surface
from crag_core.experiments.thresholds.recommend import bootstrap, halves, recommend, shrink
from crag_core.experiments.thresholds.threshold_board import Prices, grid, rate
from tests.builders import policy
from tests.experiments.made_up_sets import board, case, drawn, with_expected

SEEN = drawn(400, seed=1)
OBJECTIVE = Objective(Costs(wrong=10, missed=3, mixed_up=0.5, web=1, call=0))
AXIS = grid(21)


def test_the_best_cell_is_the_least_of_the_surface_and_on_the_plateau() -> None:
    loss = losses(SEEN, OBJECTIVE, Prices())
    costs = surface(SEEN, loss, AXIS, AXIS)
    found = find_plateau(SEEN, loss, AXIS, AXIS, np.full(costs.shape, True))
    assert found is not None
    assert costs[found.best] == np.nanmin(costs)
    assert found.cells[found.best] and found.cells[found.middle]
    assert not found.cells[np.isnan(costs)].any()
    low, high = found.span(1)
    assert low <= found.middle[1] <= high


def test_the_plateau_is_in_one_piece_and_no_worse_than_one_standard_error() -> None:
    loss = losses(SEEN, OBJECTIVE, Prices())
    found = find_plateau(SEEN, loss, AXIS, AXIS, np.full((21, 21), True))
    assert found is not None
    at_best = loss[np.arange(400), SEEN.actions(AXIS[found.best[0]], AXIS[found.best[1]])]
    for i, j in np.argwhere(found.cells):
        apart = loss[np.arange(400), SEEN.actions(AXIS[i], AXIS[j])] - at_best
        assert apart.mean() <= apart.std(ddof=1) / 20 + 1e-9
        others = found.cells.copy()
        others[i, j] = False
        beside = found.cells[max(i - 1, 0) : i + 2, j].sum() + found.cells[i, max(j - 1, 0) : j + 2].sum() - 2
        assert beside or found.cells.sum() == 1


def test_thresholds_beyond_worse_ones_are_no_part_of_the_plateau() -> None:
    """Ten answerable questions at 0.9, ten unanswerable ones at 0.5, ten answerable ones at 0.3: as dear from 0.5 on as
    up to 0.3, twice as dear between."""
    kinds = ((Expected.CORRECT, 0.9), (Expected.AMBIGUOUS, 0.5), (Expected.CORRECT, 0.3))
    seen = board(*(case(n, *kinds[n % 3]) for n in range(30)))
    loss = losses(seen, Objective(Costs(wrong=2, missed=0, mixed_up=0, web=1, call=0)), Prices())
    costs = surface(seen, loss, AXIS, AXIS)
    assert costs[0, 4] == costs[0, 14] < costs[0, 8]
    found = find_plateau(seen, loss, AXIS, AXIS, np.full((21, 21), True))
    assert found is not None
    uppers = AXIS[found.cells.any(axis=0)]
    assert uppers.max() <= 0.3 or uppers.min() > 0.5


def test_thresholds_of_two_scores_may_be_recommended_the_other_way_round() -> None:
    kinds = (Expected.CORRECT, (0.4, 0.95)), (Expected.AMBIGUOUS, (0.1, 0.95)), (Expected.INCORRECT, (0.1, 0.6))
    seen = board(*(case(n, kinds[n % 3][0], two=(kinds[n % 3][1],)) for n in range(60)), of=policy("two-signal"))
    found = recommend(seen, replace(OBJECTIVE, most_wrong=0.2), confidence=0.8, steps=21)
    assert found.lower > found.upper and found.guaranteed and found.plateau
    assert (seen.actions(found.lower, found.upper) == np.array([0, 1, 2] * 20)).all()
    assert not np.isnan(surface(seen, losses(seen, OBJECTIVE, Prices()), AXIS, AXIS)).any()
    assert np.isnan(surface(SEEN, losses(SEEN, OBJECTIVE, Prices()), AXIS, AXIS)[1, 0])


def test_the_middle_keeps_its_distance_from_what_is_worse() -> None:
    steep = board(
        *(case(n, Expected.CORRECT if n % 2 else Expected.INCORRECT, 0.8 if n % 2 else 0.2) for n in range(40))
    )
    found = recommend(steep, Objective(Costs(wrong=5, missed=5, mixed_up=5, web=1, call=0)), steps=21)
    assert 0.3 <= found.lower <= found.upper <= 0.7  # not 0.25 or 0.8, where the scores lie


def test_what_is_recommended_is_judged_on_questions_that_had_no_part_in_it() -> None:
    found = recommend(SEEN, OBJECTIVE, own=(0.0, 0.1), others=(("current", 0.3, 0.7),), steps=21, seed=5)
    first = halves(SEEN, 5)
    judged = SEEN.part(~first)
    own, yours, current = found.compared
    assert not found.keep and yours.saved and yours.saved.low > 0
    assert (found.chosen_on, found.judged_on) == (200, 200)
    assert own.rates == rate(judged, judged.actions(found.lower, found.upper))
    each = losses(judged, OBJECTIVE, Prices())[np.arange(200), judged.actions(0.3, 0.7)]
    assert current.cost == pytest.approx(each.mean())
    assert current.saved and current.saved.value == pytest.approx(current.cost - own.cost)
    assert current.saved.low < current.saved.value < current.saved.high


def test_labels_of_the_other_half_have_no_part_in_choosing() -> None:
    first = halves(SEEN, 0)
    turned = [
        one if is_first or one.asked.expected is not Expected.AMBIGUOUS else with_expected(one, Expected.UNANSWERABLE)
        for one, is_first in zip(SEEN.cases, first, strict=True)
    ]
    other = board(*turned)
    # The same half, since each expected route is halved by itself: compare what that half alone chooses.
    chosen = other.part(first)
    loss = losses(chosen, OBJECTIVE, Prices())
    found = find_plateau(chosen, loss, AXIS, AXIS, np.full((21, 21), True))
    wanted = recommend(SEEN, OBJECTIVE, steps=21).plateau
    assert found is not None and wanted is not None and found.middle == wanted.middle


def test_the_same_question_set_gives_the_same_thresholds() -> None:
    one, other = (recommend(SEEN, OBJECTIVE, steps=21, seed=3) for _ in range(2))
    assert (one.lower, one.upper, one.drawn) == (other.lower, other.upper, other.drawn)


@pytest.mark.slow
def test_resampling_says_how_far_the_best_would_move() -> None:
    narrow = recommend(drawn(3000, seed=2), OBJECTIVE, steps=21).drawn
    wide = recommend(drawn(120, seed=2), OBJECTIVE, steps=21).drawn
    assert narrow and wide
    assert narrow[1][1] - narrow[1][0] < wide[1][1] - wide[1][0]
    assert narrow[1][0] <= recommend(drawn(3000, seed=2), OBJECTIVE, steps=21).upper <= narrow[1][1] + 0.05


def test_a_large_set_is_drawn_anew_in_bounded_memory() -> None:
    seen = drawn(400, seed=1)
    low, high = bootstrap(seen, losses(seen, OBJECTIVE, Prices()), grid(5), np.full((5, 5), True), 0, draws=10**9)
    assert low[0] <= low[1] and high[0] <= high[1]


def test_a_limit_is_kept_with_the_fewest_searches() -> None:
    found = recommend(SEEN, Objective(most_wrong=0.1), own=(0.0, 0.1), steps=21, seed=1)
    chosen = SEEN.part(halves(SEEN, 1))
    told = rate(chosen, chosen.actions(found.lower, found.upper)).confidently_wrong
    assert told and told.value <= 0.1
    lower_by_a_step = rate(chosen, chosen.actions(found.lower, found.upper - 0.1)).confidently_wrong
    assert lower_by_a_step and lower_by_a_step.value > 0.1  # nothing would be gained by a much higher one


def test_with_a_guarantee_the_pair_is_the_last_that_passed() -> None:
    found = recommend(drawn(2000, seed=4), Objective(most_wrong=0.1), confidence=0.95, steps=21)
    assert found.guaranteed and found.guaranteed.pair == (found.lower, found.upper) and found.guaranteed.bound <= 0.1
    assert found.guaranteed.questions == found.judged_on == 1000
    few = recommend(drawn(40, seed=4), Objective(most_wrong=0.05), confidence=0.95, steps=21)
    assert few.guaranteed and few.guaranteed.needed == 49 and "49 more are needed" in few.why_not


def test_where_the_limit_cannot_be_kept_nothing_is_recommended() -> None:
    sure = board(*(case(n, Expected.CORRECT if n % 2 else Expected.INCORRECT, 1.0) for n in range(40)))
    found = recommend(sure, Objective(most_wrong=0.1), steps=21)
    assert "No thresholds keep the limits" in found.why_not and found.plateau is None
    assert (found.lower, found.upper) == sure.policy.thresholds[:2]


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (board(), "from 0 questions"),
        (drawn(3, seed=1), "from 3 questions"),
        (board(*(case(n, Expected.CORRECT, n / 30) for n in range(30))), "0 unanswerable questions"),
        (board(*(case(n, Expected.INCORRECT, n / 30) for n in range(30))), "0 answerable questions"),
    ],
)
def test_too_little_to_choose_from_is_refused_with_what_is_needed(seen: object, told: str) -> None:
    found = recommend(seen, OBJECTIVE, steps=21)  # type: ignore[arg-type]
    assert told in found.why_not and "are needed at least" in found.why_not


def test_where_no_threshold_has_a_say_none_is_recommended() -> None:
    ungraded = board(*(case(n, Expected.CORRECT if n % 2 else Expected.INCORRECT, None) for n in range(40)))
    assert "none of these questions has a score" in recommend(ungraded, OBJECTIVE, steps=21).why_not


def test_half_of_every_expected_route_is_chosen_on() -> None:
    first = halves(SEEN, 7)
    for expected in np.unique(SEEN.expected):
        assert first[SEEN.expected == expected].mean() == 0.5
    assert (halves(SEEN, 8) != first).any()


def test_of_equal_scores_everything_is_one_plateau() -> None:
    same = board(*(case(n, Expected.CORRECT if n % 2 else Expected.INCORRECT, 0.5) for n in range(60)))
    found = recommend(same, replace(OBJECTIVE, costs=Costs(0, 0, 0, 0, 0, 0)), steps=11)
    assert found.plateau and found.plateau.cells.sum() == 66 and found.why_not == ""


def test_with_few_questions_the_choice_is_drawn_towards_the_shipped_pair() -> None:
    assert shrink((0.2, 0.9), (0.4, 0.6), 0.5) == (0.3, 0.75)
    weights = [recommend(drawn(count, seed=1), OBJECTIVE, steps=11).weight for count in (40, 400)]
    assert weights == pytest.approx([20 / 70, 200 / 250])


def test_what_is_not_better_by_more_than_chance_on_other_questions_leaves_yours() -> None:
    best = recommend(drawn(4000, seed=2), OBJECTIVE, own=(0.0, 0.1), steps=21)
    own = (best.lower, best.upper)
    found = recommend(drawn(200, seed=3), OBJECTIVE, own=own, shipped=(0.3, 0.7), steps=21)
    yours, other = found.compared[:2]
    assert (found.lower, found.upper) == own and yours.name == "yours"
    assert f"{other.cost:.2f} (yours {yours.cost:.2f})" in found.keep
    assert "On 100 held-out questions" in found.keep


@pytest.mark.parametrize(("count", "own"), [(60, (0.3, 0.7)), (60, (0.5, 0.75)), (300, (0.4, 0.6))])
def test_what_is_recommended_costs_no_more_than_yours_on_questions_never_seen(
    count: int, own: tuple[float, float]
) -> None:
    fresh = drawn(4000, seed=77)
    loss = losses(fresh, OBJECTIVE, Prices())

    def cost(lower: float, upper: float) -> float:
        return float(loss[np.arange(len(fresh)), fresh.actions(lower, upper)].mean())

    found = [recommend(drawn(count, seed=seed), OBJECTIVE, own=own, steps=11) for seed in range(20)]
    gains = np.array([cost(*own) - cost(one.lower, one.upper) for one in found])
    assert gains.mean() >= 0.0 and (gains < -0.01).sum() <= 1
    assert count < 300 or any(not one.keep for one in found)

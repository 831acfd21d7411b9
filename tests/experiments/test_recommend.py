"""Thresholds are chosen on one half, judged on the other, and not chosen at all where that would mislead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.thresholds.guarantee import Pair
from crag_core.experiments.thresholds.objective import Costs, Objective, find_plateau, losses, surface
from crag_core.experiments.thresholds.recommend import (
    Recommendation,
    card,
    compare,
    halves,
    is_better_somewhere,
    recommend,
    shrink,
)
from crag_core.experiments.thresholds.threshold_board import grid, rate
from tests.builders import policy
from tests.experiments.made_up_sets import board, case, drawn

SEEN = drawn(400, seed=1)
OBJECTIVE = Objective(Costs(wrong=10, missed=3, mixed_up=0.5, web=1, call=0))
AXIS = grid(21)


def test_the_best_cell_is_the_least_of_the_surface_and_on_the_plateau() -> None:
    loss = losses(SEEN, OBJECTIVE)
    costs = surface(SEEN, loss, AXIS, AXIS)
    found = find_plateau(SEEN, loss, AXIS, AXIS, np.full(costs.shape, True))
    assert found is not None
    assert costs[found.best] == np.nanmin(costs)
    assert found.cells[found.best] and found.cells[found.middle]
    assert not found.cells[np.isnan(costs)].any()
    low, high = found.span(1)
    assert low <= found.middle[1] <= high


def test_the_plateau_is_in_one_piece_and_no_worse_than_one_standard_error() -> None:
    loss = losses(SEEN, OBJECTIVE)
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
    loss = losses(seen, Objective(Costs(wrong=2, missed=0, mixed_up=0, web=1, call=0)))
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
    assert not np.isnan(surface(seen, losses(seen, OBJECTIVE), AXIS, AXIS)).any()
    assert np.isnan(surface(SEEN, losses(SEEN, OBJECTIVE), AXIS, AXIS)[1, 0])


def test_the_middle_keeps_its_distance_from_what_is_worse() -> None:
    steep = board(
        *(case(n, Expected.CORRECT if n % 2 else Expected.INCORRECT, 0.8 if n % 2 else 0.2) for n in range(40))
    )
    found = recommend(steep, Objective(Costs(wrong=5, missed=5, mixed_up=5, web=1, call=0)), steps=21)
    assert 0.3 <= found.lower <= found.upper <= 0.7  # not 0.25 or 0.8, where the scores lie


def test_what_is_recommended_is_judged_on_questions_that_had_no_part_in_it() -> None:
    found = recommend(SEEN, OBJECTIVE, own=(0.0, 0.1), others=(("current", 0.3, 0.7),), steps=21)
    first = halves(SEEN)
    judged = SEEN.part(~first)
    own, yours, current = found.compared
    assert not found.keep and yours.saved and yours.saved.low > 0
    assert (found.chosen_on, found.judged_on) == (200, 200)
    assert own.rates == rate(judged, judged.actions(found.lower, found.upper))
    each = losses(judged, OBJECTIVE)[np.arange(200), judged.actions(0.3, 0.7)]
    assert current.cost == pytest.approx(each.mean())
    assert current.saved and current.saved.value == pytest.approx(current.cost - own.cost)
    assert current.saved.low < current.saved.value < current.saved.high


def test_a_limit_is_kept_with_the_fewest_searches() -> None:
    found = recommend(SEEN, Objective(most_wrong=0.1), own=(0.0, 0.1), steps=21)
    chosen = SEEN.part(halves(SEEN))
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


WISHES = [(OBJECTIVE, None), (Objective(most_wrong=0.1), None), (Objective(most_wrong=0.25), 0.9)]


@pytest.mark.parametrize(("objective", "confidence"), WISHES, ids=["costs", "as seen", "promised"])
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6), count=st.integers(24, 160), apart=st.floats(0.3, 2.5),
    own=st.tuples(st.integers(0, 60), st.integers(0, 100)).map(lambda one: (min(one) / 100, max(one) / 100)),
)  # fmt: skip
def test_what_is_recommended_is_better_than_yours_in_a_figure_that_is_shown(
    objective: Objective, confidence: float | None, seed: int, count: int, apart: float, own: Pair
) -> None:
    found = recommend(drawn(count, seed, apart), objective, own=own, confidence=confidence, steps=21)
    if found.why_not or found.keep:
        assert (found.lower, found.upper) == own
        return
    first, yours = found.compared[0], next(one for one in found.compared if one.name == "yours")
    assert (first.lower, first.upper) == (found.lower, found.upper) and (yours.lower, yours.upper) == own
    shown = [card(one, objective) for one in (first, yours)]
    assert shown[0].keys() == {"answered", "confidently wrong", "answer discarded", "cost"} | (
        {"web searches"} if objective.most_wrong else set()
    )
    now, was = ({name: value or 0.0 for name, value in one.items()} for one in shown)
    is_more = now["answered"] > was["answered"]
    assert is_more or any(now[name] < was[name] for name in now.keys() - {"answered"})


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), apart=st.floats(0.3, 2.5), upper=st.floats(0.0, 0.6))
def test_yours_is_not_kept_without_a_word_where_it_breaks_the_limit(seed: int, apart: float, upper: float) -> None:
    seen, objective = drawn(60, seed, apart), Objective(most_wrong=0.1)
    found = recommend(seen, objective, own=(0.0, upper), steps=21)
    judged = seen.part(~halves(seen))
    wrong = [
        rate(judged, judged.actions(*pair)).confidently_wrong for pair in ((0.0, upper), (found.lower, found.upper))
    ]
    yours, chosen = (one.value for one in wrong if one)
    assert bool(found.broken) == (yours > 0.1) and bool(found.misses) == (chosen > 0.1 and not found.keep)
    assert found.keeps_limit == (chosen <= 0.1) and (chosen <= yours or yours <= 0.1)
    if found.broken:
        assert f"{yours:.1%} confidently wrong, at most 10.0% asked for" in found.broken


def test_more_answers_are_better_where_nothing_else_differs() -> None:
    seen, free = board(*(case(n, Expected.CORRECT, 0.5) for n in range(4))), Objective(Costs(0, 0, 0, 0, 0))
    more, less = compare(seen, free, (("more", 0.3, 0.4), ("less", 0.3, 0.6)))
    assert is_better_somewhere(more, less, free) and not is_better_somewhere(less, more, free)


def sure_of_all(upper: float) -> Recommendation:
    """Every second question is unanswerable, and scores 1.0 as all others do, or 0.8 where it is the fourth."""
    cases = (case(n, Expected.CORRECT if n % 2 else Expected.INCORRECT, 0.8 if n % 4 == 2 else 1.0) for n in range(80))
    return recommend(board(*cases), Objective(most_wrong=0.1), own=(0.3, upper), steps=21)


def test_where_no_pair_keeps_the_limit_the_nearest_is_told() -> None:
    found = sure_of_all(0.7)
    assert found.broken.startswith("100.0% confidently wrong, at most 10.0%") and not found.keep and not found.why_not
    assert found.misses.startswith("55.0% confidently wrong, at most 10.0%") and not found.keeps_limit
    assert 0.8 < found.upper <= 1.0 and "nearest to a limit that no pair keeps" in found.reason("it")
    yours = sure_of_all(0.9)
    assert (yours.lower, yours.upper) == (0.3, 0.9) and yours.broken == found.misses and not yours.misses
    assert yours.keep and not yours.keeps_limit and yours.reason("it").endswith("a limit that they break")


def test_a_promised_pair_that_is_worse_than_yours_is_not_recommended() -> None:
    """Four answerable questions in five score 0.7, below the safest pairs; all others next to nothing."""
    cases = (case(n, *((Expected.CORRECT, 0.7) if n % 5 else (Expected.INCORRECT, 0.05))) for n in range(100))
    found = recommend(board(*cases), Objective(most_wrong=0.45), own=(0.3, 0.69), confidence=0.9, steps=21)
    assert found.guaranteed and found.guaranteed.pair and found.keep and (found.lower, found.upper) == (0.3, 0.69)
    assert "better in none of these: answered 100% (yours 100%)" in found.keep
    assert found.keep.endswith("The promise was made for that pair and not for yours.")


def test_the_pair_in_use_is_the_best_that_was_found() -> None:
    best = recommend(SEEN, OBJECTIVE, own=(0.0, 0.1), steps=21)
    found = recommend(SEEN, OBJECTIVE, own=(best.lower, best.upper), steps=21)
    assert found.keep == "The best pair that was found is yours." and found.is_at(best.lower, best.upper)


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
    assert told in found.why_not and "are needed" in found.why_not


def test_where_no_threshold_has_a_say_none_is_recommended() -> None:
    ungraded = board(*(case(n, Expected.CORRECT if n % 2 else Expected.INCORRECT, None) for n in range(40)))
    assert "none of these questions has a score" in recommend(ungraded, OBJECTIVE, steps=21).why_not


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


@pytest.mark.parametrize("seed", [6, 10])
def test_what_is_cheaper_on_the_other_questions_by_chance_alone_leaves_yours(seed: int) -> None:
    found = recommend(drawn(200, seed=seed), OBJECTIVE, own=(0.4, 0.65), shipped=(0.3, 0.7), steps=21)
    yours, other = found.compared[:2]
    assert yours.name == "yours" and other.cost < yours.cost and "no better than chance" in found.keep


@pytest.mark.parametrize(("count", "own"), [(60, (0.3, 0.7)), (300, (0.4, 0.6))])
def test_what_is_recommended_costs_no_more_than_yours_on_questions_never_seen(
    count: int, own: tuple[float, float]
) -> None:
    fresh = drawn(4000, seed=77)
    loss = losses(fresh, OBJECTIVE)

    def cost(lower: float, upper: float) -> float:
        return float(loss[np.arange(len(fresh)), fresh.actions(lower, upper)].mean())

    found = [recommend(drawn(count, seed=seed), OBJECTIVE, own=own, steps=11) for seed in range(20)]
    gains = np.array([cost(*own) - cost(one.lower, one.upper) for one in found])
    assert gains.mean() >= 0.0 and (gains < -0.01).sum() <= 1
    assert count < 300 or any(not one.keep for one in found)

"""The distance to flip: exact against a dense grid of thresholds and against random scores."""

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage, Round, Scores
from crag_core.decision.policy import Policy
from crag_core.decision.rounds import replay_rounds
from crag_core.decision.stability import Flip, Interval, Stability, flips, is_settled, look_at, stability
from tests.builders import POLICIES, even, grade, graded, passage, policy, round_of

Evidence = tuple[tuple[Passage, ...], tuple[Grade, ...] | None, Scores, tuple[Round, ...]]


def stable(of: Policy, passages: tuple[Passage, ...], grades: tuple[Grade, ...] | None, *more: Any) -> Stability:
    return stability(of, grades, look_at(of, passages, grades, *more))


def settled(of: Policy, passages: tuple[Passage, ...], grades: tuple[Grade, ...] | None) -> bool:
    return is_settled(of, look_at(of, passages, grades))


def act(of: Policy, evidence: Evidence, lower: float, upper: float) -> Action:
    return replay_rounds(of.with_thresholds(lower, upper), *evidence).decision.action


def holds(interval: Interval, value: float) -> bool:
    low = value >= interval.low if interval.low_included else value > interval.low
    high = value <= interval.high if interval.high_included else value < interval.high
    return low and high


def run_of(actions: dict[float, Action], at: float) -> set[float]:
    """The grid values around `at` that give the same action without a break."""
    values = sorted(actions)
    same = {at}
    for path in (values[values.index(at) :], values[values.index(at) :: -1]):
        for value in path:
            if actions[value] is not actions[at]:
                break
            same.add(value)
    return same


GRID = [n / 100 for n in range(101)]


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    "scores",
    [
        (0.9, 0.5, 0.2),
        (0.7, 0.3, 0.3),
        (0.31, 0.3, 0.1),
        (0.5, None, 0.85),
        (0.1, 0.05, 0.02),
        (1.0, 1.0, 0.0),
        (None, None, None),
    ],
)
def test_the_intervals_agree_with_a_dense_grid_of_thresholds(name: str, scores: tuple[float | None, ...]) -> None:
    of = policy(name)
    assert_exact_on_a_grid(of, (*graded(*scores), even(scores[0] or 0.4), ()))


def assert_exact_on_a_grid(of: Policy, evidence: Evidence) -> None:
    found = stable(of, *evidence)
    lowers = {value: act(of, evidence, value, of.upper) for value in [*GRID, of.lower] if of.allows(value, of.upper)}
    uppers = {value: act(of, evidence, of.lower, value) for value in [*GRID, of.upper] if of.allows(of.lower, value)}
    assert {value for value in lowers if holds(found.lower, value)} == run_of(lowers, of.lower)
    assert {value for value in uppers if holds(found.upper, value)} == run_of(uppers, of.upper)


def test_the_intervals_agree_with_the_grid_where_thresholds_lead_another_way() -> None:
    """From lower 0.35 on one chunk less is kept; the rounds that were made then decide, or are not led to."""
    of = replace(policy("agentic"), skip=())
    found, grades = graded(0.5, 0.42, 0.35)
    later = tuple(grade(name, score) for name, score in (("p4", 0.95), ("p5", 0.6), ("p6", 0.2)))
    rounds = (round_of("refine", passage("p4"), passage("p5")), round_of("keyword", passage("p6")))
    assert_exact_on_a_grid(of, (found, (*grades, *later), (), rounds))


def test_flips_come_with_the_nearest_first() -> None:
    of = policy("paper")
    assert flips(stable(of, *graded(0.52, 0.1)), of) == (
        Flip("upper", "≤", 0.52, abs(0.52 - 0.6), Action.CORRECT),
        Flip("lower", ">", 0.52, abs(0.52 - 0.4), Action.INCORRECT),
    )
    assert flips(stable(of, *graded(0.6)), of)[0] == Flip("upper", ">", 0.6, 0.0, Action.AMBIGUOUS)


def test_in_agentic_the_filter_moves_the_mean() -> None:
    # 0.9, 0.5 and 0.31 are kept, mean 0.57. Without the 0.31, from just above it on, the mean is 0.70.
    found = stable(policy("agentic"), *graded(0.9, 0.5, 0.31))
    assert found.lower == Interval(0.0, 0.31, True, True, None, Action.CORRECT)


def test_some_decisions_hang_on_no_threshold_at_all() -> None:
    of = policy("paper")
    assert settled(of, (), None) and settled(of, *graded(1.0))
    assert not settled(of, *graded(0.5))
    assert not settled(of.with_thresholds(0.0, 0.0), *graded(0.5))

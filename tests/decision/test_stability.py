"""The distance to flip: exact against a dense grid of thresholds and against random scores."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage, Round, Scores
from crag_core.decision.policy import Policy
from crag_core.decision.rounds import replay_rounds
from crag_core.decision.stability import Interval, stability
from tests.builders import POLICIES, even, grade, graded, passage, policy, round_of

TINY = 1e-10  # far less than the distance of any two scores below, far more than a rounding error

Evidence = tuple[tuple[Passage, ...], tuple[Grade, ...] | None, Scores, tuple[Round, ...]]


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


GRID = [n / 200 for n in range(201)]


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
    found = stability(of, *evidence)
    lowers = {value: act(of, evidence, value, of.upper) for value in [*GRID, of.lower] if value <= of.upper}
    uppers = {value: act(of, evidence, of.lower, value) for value in [*GRID, of.upper] if value >= of.lower}
    assert {value for value in lowers if holds(found.lower, value)} == run_of(lowers, of.lower)
    assert {value for value in uppers if holds(found.upper, value)} == run_of(uppers, of.upper)


# Every way through three iterations: the first passages lead to p4…, a refinement of these to p7…, and so on.
PATHS = ("keyword", "refine", "keyword rewritten", "keyword refine", "refine keyword", "refine refine")


def all_around(*scores: tuple[float | None, ...]) -> Evidence:
    """The scores of the first passages, then of what each of `PATHS` found."""
    found, grades, rounds = [], [], []
    numbers = iter(range(1, 100))
    for one in scores:
        new = [passage(f"p{next(numbers)}") for _ in one]
        grades += [grade(p.id, score) for p, score in zip(new, one, strict=True)]
        found.append(tuple(new))
    for path, new_ones in zip(PATHS, found[1:], strict=False):
        rounds.append(round_of(path, *new_ones))
    return found[0], tuple(grades), (), tuple(rounds)


thousandths = st.integers(0, 1000).map(lambda n: n / 1000)
score_lists = st.lists(st.none() | thousandths, max_size=4).map(tuple)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Policy, Evidence]:
    of = policy(draw(st.sampled_from(POLICIES)))
    lower, upper = sorted(draw(st.tuples(thousandths, thousandths)))
    of = replace(
        of.with_thresholds(lower, upper),
        low_variance_promotes=draw(st.booleans()),
        at_lower=draw(st.sampled_from([Action.AMBIGUOUS, Action.INCORRECT])),
        at_upper=draw(st.sampled_from([Action.CORRECT, Action.AMBIGUOUS])),
    )
    found, grades = graded(*draw(st.lists(st.none() | thousandths, max_size=6)))
    asked = draw(st.booleans())
    return of, (found, grades if asked else None, even(draw(thousandths)), ())


@st.composite
def loops(draw: st.DrawFn) -> tuple[Policy, Evidence]:
    """The policy agentic with rounds recorded on both sides of its flips."""
    lower, upper = sorted(draw(st.tuples(thousandths, thousandths)))
    of = replace(
        policy("agentic").with_thresholds(lower, upper),
        max_rounds=draw(st.integers(1, 4)),
        skip=draw(st.sampled_from([(), policy("agentic").skip])),
        ungraded=draw(st.sampled_from([None, 0.5])),
    )
    found, grades, _, rounds = all_around(*draw(st.lists(score_lists, min_size=7, max_size=7)))
    made = draw(st.lists(st.sampled_from(range(len(rounds))), unique=True))
    return of, (found, grades, (), tuple(rounds[number] for number in made))


@pytest.mark.slow
@given(situation=situations() | loops(), share=st.floats(0.01, 0.99))
def test_inside_an_interval_the_action_stays_and_just_beyond_it_changes(
    situation: tuple[Policy, Evidence], share: float
) -> None:
    of, evidence = situation
    now = replay_rounds(of, *evidence).decision.action
    found = stability(of, *evidence)
    lowest, highest = (0.0, 1.0) if of.compares_two_scores else (of.lower, of.upper)
    for interval, least, most, is_lower in (
        (found.lower, 0.0, highest, True),
        (found.upper, lowest, 1.0, False),
    ):

        def action_at(value: float, is_lower: bool = is_lower) -> Action:
            return act(of, evidence, value, of.upper) if is_lower else act(of, evidence, of.lower, value)

        assert least <= interval.low <= interval.high <= most
        inside = interval.low + share * (interval.high - interval.low)
        if interval.low < inside < interval.high:
            assert action_at(inside) is now
        if interval.low_included:
            assert action_at(interval.low) is now
        if interval.high_included:
            assert action_at(interval.high) is now
        if interval.below is None:
            assert interval.low == least and interval.low_included
        else:
            beyond = interval.low - TINY if interval.low_included else interval.low
            assert action_at(beyond) is interval.below is not now
        if interval.above is None:
            assert interval.high == most and interval.high_included
        else:
            beyond = interval.high + TINY if interval.high_included else interval.high
            assert action_at(beyond) is interval.above is not now

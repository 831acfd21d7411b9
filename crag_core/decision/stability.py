"""Distance to flip: the interval of each threshold over which the action stays the same."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage, Round, Scores
from crag_core.decision.decide import evidence_of, judge
from crag_core.decision.policy import Policy
from crag_core.decision.rounds import replay_rounds


@dataclass(frozen=True)
class Interval:
    """An interval of one threshold, and the actions that lie beyond its ends (None: the end of the scale).

    `low_included` and `high_included` tell whether the end itself still gives the same action.
    """

    low: float
    high: float
    low_included: bool
    high_included: bool
    below: Action | None
    above: Action | None


@dataclass(frozen=True)
class Stability:
    """One interval for `lower` (with `upper` held) and one for `upper` (with `lower` held)."""

    lower: Interval
    upper: Interval


@dataclass(frozen=True)
class Flip:
    """The nearest move of one threshold that changes the action, which is `to` while `threshold` `relation` `at`."""

    threshold: str
    relation: str
    at: float
    distance: float
    to: Action


def flips(stable: Stability, policy: Policy) -> tuple[Flip, ...]:
    """What would change the action, nearest first; () when no single threshold can."""
    found = (*flips_of("lower", policy.lower, stable.lower), *flips_of("upper", policy.upper, stable.upper))
    return tuple(sorted(found, key=lambda flip: flip.distance))


def flips_of(name: str, value: float, stays: Interval) -> tuple[Flip, ...]:
    down, up = "<" if stays.low_included else "≤", ">" if stays.high_included else "≥"
    ends = ((down, stays.low, stays.below), (up, stays.high, stays.above))
    return tuple(Flip(name, relation, at, abs(at - value), to) for relation, at, to in ends if to is not None)


Look = Callable[[float, float], tuple[Action, tuple[float | None, ...]]]


def look_at(
    policy: Policy,
    passages: tuple[Passage, ...],
    grades: tuple[Grade, ...] | None,
    signals: Scores = (),
    rounds: tuple[Round, ...] = (),
) -> Look:
    """What a lower and an upper lead to: the action, and all scores that were held against them on the way."""
    evidence = evidence_of(policy, passages, grades, signals)

    @cache
    def look(lower: float, upper: float) -> tuple[Action, tuple[float | None, ...]]:
        moved = policy.with_thresholds(lower, upper)
        if not rounds:
            action, found, _ = judge(moved, evidence)
            return action, (found.score, found.topical)
        made = [one.decision for one in replay_rounds(moved, passages, grades, signals, rounds).iterations]
        return made[-1].action, tuple(score for one in made for score in (one.score, one.topical))

    return look


def is_settled(policy: Policy, look: Look) -> bool:
    """Whether the action is the same at both ends of both thresholds: no move of the two together changes it."""
    ends = [(lower, upper) for lower in (0.0, 1.0) for upper in (0.0, 1.0) if policy.allows(lower, upper)]
    return len({look(*pair)[0] for pair in ((policy.lower, policy.upper), *ends)}) == 1


def stability(policy: Policy, grades: tuple[Grade, ...] | None, look: Look) -> Stability:
    """Exact for every aggregation: between two neighbouring breakpoints the action cannot change.

    Breakpoints of a threshold are the overall scores of every iteration (of two signals, both), the ends of its range
    and, where `lower` drops passages before the mean is taken, what each passage counts as. A threshold ranges up to
    the other one, or over 0..1 where each has a score of its own.
    """
    least, most = (0.0, 1.0) if policy.compares_two_scores else (policy.lower, policy.upper)
    points = {policy.lower, policy.upper, 0.0, 1.0}
    if policy.score == "mean_of_kept":
        counted = (policy.ungraded, *(grade.score for grade in grades or ()))
        points |= {score for score in counted if score is not None}
    tried: set[float] = set()
    while todo := points - tried:
        tried |= todo
        for value in todo:
            ways = [look(value, policy.upper), look(value, 1.0)] if value <= most else []
            ways += [look(policy.lower, value)] if value >= least else []
            points |= {score for _, scores in ways for score in scores if score is not None}
    now = look(policy.lower, policy.upper)[0]
    return Stability(
        lower=_interval(policy.lower, 0.0, most, points, lambda v: look(v, policy.upper)[0], now),
        upper=_interval(policy.upper, least, 1.0, points, lambda v: look(policy.lower, v)[0], now),
    )


def _interval(
    at: float, least: float, most: float, points: set[float], act: Callable[[float], Action], now: Action
) -> Interval:
    inside = sorted({point for point in points if least < point < most} | {least, at, most})
    here = inside.index(at)
    high, high_included, above = _walk(inside[here:], act, now)
    low, low_included, below = _walk(inside[here::-1], act, now)
    return Interval(low, high, low_included, high_included, below, above)


def _walk(path: list[float], act: Callable[[float], Action], now: Action) -> tuple[float, bool, Action | None]:
    """Follow `path` from the present value until the action changes: (the end, is it included, the other action)."""
    for point, following in pairwise(path):
        between = act((point + following) / 2)
        if between is not now:
            return point, True, between
        beyond = act(following)
        if beyond is not now:
            return following, False, beyond
    return path[-1], True, None

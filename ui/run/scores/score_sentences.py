"""What the picture of the scores says of the whole: numbers, how far each threshold may move, and who decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crag_core.base.text.display import clean
from crag_core.base.text.numbers import readable
from crag_core.base.types import Action, Decision
from crag_core.decision.policy import Aggregation, Policy
from crag_core.decision.stability import Interval, Stability

STEP, PAGE = 0.005, 0.05
"""How far one press of an arrow key and of a page key moves a threshold."""

_MOST_NAMED = 6  # passages in a sentence


@dataclass(frozen=True)
class Mark:
    """A threshold with the interval over which the action stays, and the actions beyond it (None: end of the scale).

    `meaning` says what lies on the far side of the mark, `told` the interval in words.
    """

    name: str
    value: float
    meaning: str
    low: float
    high: float
    below: Action | None
    above: Action | None
    told: str


def describe(value: float, *limits: float) -> str:
    """With as many decimals as it takes to see on which side of each limit it lies."""
    return max((readable(value, limit)[0] for limit in limits), key=len)


def edge(value: float) -> str:
    """With as many decimals as it takes to see on which side of each place of a mark it lies."""
    nearest = round(value / STEP)
    shown = describe(value, *(round((nearest + more) * STEP, 9) for more in (-1, 0, 1)))
    return shown[:4] + shown[4:].rstrip("0")


def tell_marks(policy: Policy, decision: Decision, stable: Stability) -> tuple[Mark, Mark]:
    under, over = policy.incorrect.label, policy.correct.label
    lower = f"{under} {'at or below' if policy.lower_is_inclusive else 'below'} it"
    upper = f"{over} {'above it' if policy.upper_is_exclusive else 'from it up'}"
    return (
        _mark("lower", policy.lower, clean(lower), stable.lower, decision.action),
        _mark("upper", policy.upper, clean(upper), stable.upper, decision.action),
    )


def _mark(name: str, value: float, meaning: str, stays: Interval, action: Action) -> Mark:
    if stays.below is None and stays.above is None:
        message = f"stays {action} wherever {name} is put"
    else:
        beyond = [f"{'below that' if stays.low_included else 'from there down'} {stays.below}"] if stays.below else []
        beyond += [f"{'above that' if stays.high_included else 'from there up'} {stays.above}"] if stays.above else []
        message = f"stays {action} while {name} is {_span(stays)}; {', '.join(beyond)}"
    return Mark(name, value, meaning, stays.low, stays.high, stays.below, stays.above, message)


def _span(stays: Interval) -> str:
    """An end of the scale need not be told where the other end is one that the action stops short of."""
    low, high = edge(stays.low), edge(stays.high)
    if stays.low_included and stays.high_included:
        return f"within {low} to {high}"
    if stays.above is None:
        return f"above {low}"
    if stays.below is None:
        return f"below {high}"
    first = f"from {low}" if stays.low_included else f"above {low}"
    return f"{first} {'up to' if stays.high_included else 'to below'} {high}"


def sentences(policy: Policy, decision: Decision, numbers: Mapping[str, str]) -> tuple[str, ...]:
    """Why the question goes where it goes, and by which passages; `numbers` are theirs by id."""
    who = _who(policy, decision, [numbers[id_] for id_ in decision.deciding if id_ in numbers])
    return tuple(one for one in (f"{decision.action}: {clean(decision.reason)}.", who) if one)


def _who(policy: Policy, decision: Decision, numbers: list[str]) -> str:
    if decision.rule or decision.score is None or not numbers:
        return ""
    if policy.aggregation is Aggregation.SIGNALS:
        return "The overall score is made of measures of the whole set; it is no passage's own score."
    if len(numbers) == 1:
        both = " in both" if decision.topical is not None and decision.action is not Action.CORRECT else ""
        return f"Passage {numbers[0]} decides{both}."
    if decision.topical is not None:
        return f"Passage {numbers[0]} answers best, passage {numbers[1]} is the best on the subject."
    if len(numbers) > _MOST_NAMED:
        return f"{len(numbers)} passages decide together."
    return f"Passages {', '.join(numbers[:-1])} and {numbers[-1]} decide together."

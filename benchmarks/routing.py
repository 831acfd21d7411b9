"""Three routes: what the shipped policies do with recorded grades, and what the best thresholds could do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contenders import PARTS, Graded
from benchmarks.measures import SEED, macro_f1, macro_f1_estimate
from benchmarks.sets import Task
from benchmarks.tables import Cell
from crag_core.base.types.decisions import Action
from crag_core.base.types.passages import ANSWERING, TOPICAL
from crag_core.decision.decide import decide
from crag_core.decision.policy import Policy
from crag_core.evaluators.policies import find_policy

ROUTES = {"correct": 0, "ambiguous_or_incorrect": 1, "incorrect": 2}
"""The expected route as a row of the table, read strictly: on topic and not answered is AMBIGUOUS, nothing else."""

_TAKEN = {Action.CORRECT: 0, Action.AMBIGUOUS: 1, Action.INCORRECT: 2}
_STEPS = 60

Bests = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""By question: the score that is compared with `upper`, and the one that is compared with `lower`."""


@dataclass(frozen=True)
class Routed:
    """`table`[expected, taken] counts questions; `lower` and `upper` were in use, two of each when cross-fitted."""

    title: str
    table: np.ndarray[Any, Any]
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def row(self) -> dict[str, Cell]:
        """With the actions taken, in the order CORRECT / AMBIGUOUS / INCORRECT, for every expected route."""
        cells: dict[str, Cell] = {"macro-F1": macro_f1_estimate(self.table)}
        cells |= {name: " and ".join(f"{one:.3f}" for one in getattr(self, name)) for name in ("lower", "upper")}
        taken = ("/".join(str(count) for count in counts) for counts in self.table)
        return cells | {f"{route} C/A/I": told for route, told in zip(ROUTES, taken, strict=True)}


def route_all(graded: Graded, task: Task) -> list[Routed]:
    """Policies as shipped, then fitted thresholds: for one score, and for two signals where there are two."""
    expected = np.array([ROUTES[question.label] for question in task.questions])
    name, best = graded.evaluator.card.name, graded.best
    scores: dict[str, Bests] = {name: (best[name], best[name])}
    if set(PARTS) <= set(best):
        scores["two signals"] = (best[ANSWERING], best[TOPICAL])
    routed = [_shipped(graded, task, expected, policy) for policy in _policies(len(scores) > 1)]
    for which, bests in scores.items():
        title = name if which == name else f"{name}, {which}"
        routed.append(_cross_fitted(title, bests, expected))
    return routed


def _policies(has_two_signals: bool) -> list[Policy]:
    return [find_policy(name) for name in (("paper", "two-signal") if has_two_signals else ("paper",))]


def _shipped(graded: Graded, task: Task, expected: np.ndarray[Any, Any], policy: Policy) -> Routed:
    """By `decide`, so that what is measured is what ships."""
    card = graded.evaluator.card
    suited = policy.with_thresholds_for(card, card)
    decisions = (
        decide(suited, question.passages, grades)
        for question, grades in zip(task.questions, graded.grades, strict=True)
    )
    taken = np.array([_TAKEN[decision.action] for decision in decisions])
    title = f"{card.name}, policy {policy.name} as shipped"
    return Routed(title, confusion(expected, taken), (suited.lower,), (suited.upper,))


def _cross_fitted(title: str, bests: Bests, expected: np.ndarray[Any, Any]) -> Routed:
    """Thresholds chosen on one half of the questions and used on the other, both ways."""
    half = _halves(expected)
    table = np.zeros((3, 3), dtype=int)
    chosen = []
    for fitted, used in ((half, ~half), (~half, half)):
        lower, upper = fit((bests[0][fitted], bests[1][fitted]), expected[fitted])
        table += confusion(expected[used], take((bests[0][used], bests[1][used]), lower, upper))
        chosen.append((lower, upper))
    (low, high), (other_low, other_high) = chosen
    return Routed(f"{title}, cross-fitted", table, (low, other_low), (high, other_high))


def _halves(expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which questions are in the first half: one half of every route."""
    first = np.zeros(len(expected), dtype=bool)
    rng = np.random.default_rng(SEED)
    for route in range(3):
        places = rng.permutation(np.flatnonzero(expected == route))
        first[places[: len(places) // 2]] = True
    return first


def fit(bests: Bests, expected: np.ndarray[Any, Any]) -> tuple[float, float]:
    """(lower, upper) with the best macro-F1 on these questions; lower not above upper where one score serves both."""
    uppers, lowers = (_steps(best) for best in bests)
    are_two = not np.array_equal(*bests, equal_nan=True)
    _, lower, upper = max(
        (float(macro_f1(confusion(expected, take(bests, lower, upper)))), float(lower), float(upper))
        for lower in lowers
        for upper in uppers
        if lower <= upper or are_two
    )
    return lower, upper


def _steps(best: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Thresholds worth a try: quantiles of what was seen, and both ends of the scale."""
    seen = best[np.isfinite(best)]
    quantiles = np.quantile(seen, np.linspace(0, 1, _STEPS + 1)) if seen.size else seen
    return np.unique([0.0, *np.round(quantiles, 3), 1.0])


def take(bests: Bests, lower: float, upper: float) -> np.ndarray[Any, Any]:
    """The routes: CORRECT from `upper` on, else INCORRECT below `lower`, else AMBIGUOUS; AMBIGUOUS without a score."""
    above, below = bests[0] >= upper, bests[1] < lower
    return np.where(above, 0, np.where(below, 2, 1))


def confusion(expected: np.ndarray[Any, Any], taken: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.bincount(expected * 3 + taken, minlength=9).reshape(3, 3)

"""What the page of chosen thresholds shows: a preset, the questions under it, and what is recommended for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from crag_core.base.types import Action, Handling
from crag_core.decision.policy import Policy, WebUse
from crag_core.experiments.thresholds.objective import Objective
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.experiments.thresholds.rates import Prices, Rates, rate
from crag_core.experiments.thresholds.recommend import Recommendation
from crag_core.experiments.thresholds.threshold_board import Array, Board

Pair = tuple[float, float]


@dataclass(frozen=True)
class Outcome:
    """What becomes of a question that takes an action, in plain words; `tone` names the colour and the shape."""

    tone: str
    name: str


@dataclass(frozen=True)
class Tuned:
    """All figures are of the questions of `board`, at the thresholds of `preset`."""

    preset: TunedPreset
    board: Board
    found: Recommendation
    objective: Objective
    prices: Prices

    @cached_property
    def policy(self) -> Policy:
        return self.preset.applied_to(self.board.policy)

    @cached_property
    def actions(self) -> Array:
        return self.board.actions(self.preset.lower, self.preset.upper)

    @cached_property
    def rates(self) -> Rates:
        return rate(self.board, self.actions, self.prices)

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """In the order of `ACTIONS`."""
        return tuple(outcome(self.policy, action) for action in Action)

    @property
    def is_recommended(self) -> bool:
        return not self.found.why_not and is_same(self.own, (self.found.lower, self.found.upper))

    @property
    def own(self) -> Pair:
        return self.preset.lower, self.preset.upper

    @cached_property
    def has_two_scores(self) -> bool:
        """Whether `upper` and `lower` are compared with different numbers."""
        known = self.board.deciding(self.preset.lower)
        return bool((abs(known.upper - known.lower) > 0).any())

    @property
    def answerable(self) -> int:
        return int(self.board.answerable.sum())

    @property
    def unanswerable(self) -> int:
        return len(self.board) - self.answerable


def is_same(one: Pair, other: Pair) -> bool:
    """Thresholds that differ by nothing but the rounding of a file."""
    return max(abs(one[0] - other[0]), abs(one[1] - other[1])) < 1e-6


def outcome(policy: Policy, action: Action) -> Outcome:
    route = policy.route(action)
    is_kept = route.passages is not Handling.DISCARD
    if route.expand or route.re_retrieve:
        name = "Searched for again in the documents" if is_kept else "Set aside, and searched for again"
        more = {WebUse.ALWAYS: ", the web asked too", WebUse.WHEN_FEW: ", the web asked where little is left"}
    elif is_kept:
        name = "Answered from the documents"
        more = {WebUse.ALWAYS: " and the web", WebUse.WHEN_FEW: ", and the web where little is left"}
    else:
        name = "Documents set aside"
        more = {WebUse.ALWAYS: ", the web asked instead", WebUse.WHEN_FEW: ", the web asked instead"}
    return Outcome(action.lower(), name + more.get(route.web, ""))

"""Recommends thresholds: chosen on one half of the questions, judged on the other.

A limit on confident mistakes can be promised although the threshold was selected, by fixed-sequence testing
(Angelopoulos et al. 2021, Learn then Test, arXiv 2110.01052): the thresholds are tried from the safest one on, in an
order that was fixed before the labels were looked at, each by an exact binomial test of "the rate of mistakes exceeds
the limit", and the first that fails ends it. So all that passed hold together, with the stated confidence. A test
passes exactly when the one-sided Clopper-Pearson bound does not exceed the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from crag_core.experiments.statistics.intervals import Z95, Estimate, clopper_pearson_upper
from crag_core.experiments.thresholds.objective import (
    Objective,
    Plateau,
    allowed,
    find_plateau,
    losses,
    rows,
    wrong_surface,
)
from crag_core.experiments.thresholds.threshold_board import Array, Board, Prices, Rates, grid, rate

STEPS = 41
LEAST = 20
"""Questions of which thresholds can be chosen at all."""
_DRAWS = 200
_NUMBERS = 4_000_000  # of a bootstrap at a time, so that a large set takes no more memory than a small one


@dataclass(frozen=True)
class Guarantee:
    """`upper` is the lowest one for which the limit holds with `confidence`, None where it does for none.

    `unanswerable` questions were there to test with, `wrong` of them are CORRECT at `upper`; `bound` is what the rate
    does not exceed. `needed`: so many more unanswerable questions there must be before any threshold could pass.
    """

    limit: float
    confidence: float
    lower: float
    upper: float | None
    unanswerable: int
    wrong: int = 0
    bound: float = 1.0
    needed: int = 0

    @property
    def reason(self) -> str:
        limit = (
            f"at most {self.limit:.1%} of the unanswerable questions are CORRECT, with {self.confidence:.0%} confidence"
        )
        if self.needed:
            have = f"{self.unanswerable} unanswerable question{'' if self.unanswerable == 1 else 's'}"
            return f"Cannot promise that {limit}: {have} cannot show it, {self.needed} more are needed at least."
        if self.upper is None:
            return f"Cannot promise that {limit}: even the highest upper threshold lets too many through."
        found = f"{self.wrong} of {self.unanswerable} at upper {self.upper:.3f}"
        return f"From upper {self.upper:.3f} on, {limit} ({found}, so at most {self.bound:.1%})."


def guarantee(board: Board, lower: float, uppers: Array, limit: float, confidence: float = 0.95) -> Guarantee:
    """The lowest of `uppers` that keeps `limit` at this `lower`, of the questions of `board`.

    Where `lower` has a part in what is CORRECT, it must have been chosen with other questions.
    """
    if not 0.0 < limit < 1.0 or not 0.0 < confidence < 1.0:
        raise ValueError(f"expected a limit and a confidence between 0 and 1, found {limit} and {confidence}")
    asked = ~board.answerable
    count, delta = int(asked.sum()), 1.0 - confidence
    needed = max(questions_needed(limit, confidence) - count, 0)
    found = Guarantee(limit, confidence, lower, None, count, needed=needed)
    if needed:
        return found
    tried = np.sort(np.asarray(uppers, dtype=float))[::-1]
    tried = tried[allowed(board, np.array([lower]), tried)[0]]
    wrong = board.is_correct(lower, tried)[asked].sum(axis=0)
    for upper, hits in zip(tried, wrong, strict=True):
        bound = clopper_pearson_upper(int(hits), count, delta)
        if bound > limit:
            break
        found = Guarantee(limit, confidence, lower, float(upper), count, int(hits), bound)
    return found


def questions_needed(limit: float, confidence: float = 0.95) -> int:
    """Unanswerable questions without which not even a threshold that lets none through could pass."""
    return math.ceil(math.log(1.0 - confidence) / math.log1p(-limit) - 1e-12)


# --- recommendation ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """Thresholds on the questions that had no part in choosing: their rates, and their mean cost.

    `saved`: the mean cost of these less that of the recommended ones, with a 95 % interval (paired, normal).
    """

    name: str
    lower: float
    upper: float
    rates: Rates
    cost: float
    saved: Estimate | None = None


@dataclass(frozen=True)
class Recommendation:
    """`lower` and `upper` are the middle of the plateau; `why_not` says why there are none.

    `chosen_on` and `judged_on` count questions. `plateau` is over `grid`. `drawn` holds the 2.5 % and 97.5 % quantiles
    of the best lower and the best upper over resampled questions. `compared` has the recommended thresholds first.
    """

    lower: float
    upper: float
    chosen_on: int
    judged_on: int
    grid: Array
    plateau: Plateau | None = None
    drawn: tuple[tuple[float, float], tuple[float, float]] | None = None
    compared: tuple[Compared, ...] = ()
    guaranteed: Guarantee | None = None
    why_not: str = ""

    def is_at(self, lower: float, upper: float) -> bool:
        """Whether these are the recommended thresholds, but for the rounding of a file."""
        return not self.why_not and max(abs(lower - self.lower), abs(upper - self.upper)) < 1e-6


def recommend(
    board: Board,
    objective: Objective,
    *,
    prices: Prices | None = None,
    others: tuple[tuple[str, float, float], ...] = (),
    confidence: float | None = None,
    steps: int = STEPS,
    seed: int = 0,
) -> Recommendation:
    """The best thresholds of `board` under `objective`; `others` are (name, lower, upper) to compare them with.

    `confidence`: keep the limit of the objective with that confidence (`guarantee`), not only on what was seen. The
    same arguments always give the same.
    """
    prices, axis = prices or Prices(), grid(steps)
    first = halves(board, seed)
    refusal = _refusal(board, first)
    policy = board.policy
    if refusal:
        return Recommendation(policy.lower, policy.upper, 0, 0, axis, why_not=refusal)
    chosen_by, judged_by = board.part(first), board.part(~first)
    loss = losses(chosen_by, objective, prices)
    may = _within(chosen_by, objective, axis)
    plateau = find_plateau(chosen_by, loss, axis, axis, may)
    if plateau is None:
        limit = f"{objective.most_wrong:.1%}" if objective.most_wrong is not None else ""
        why = f"No thresholds keep the limit: at upper 1.0 more than {limit} of the unanswerable questions are CORRECT."
        return Recommendation(policy.lower, policy.upper, len(chosen_by), len(judged_by), axis, why_not=why)
    lower, upper = (float(axis[place]) for place in plateau.middle)
    promised = None
    if objective.most_wrong is not None and confidence is not None:
        # What is CORRECT does not depend on a lower threshold chosen here, unless the policy counts by it.
        tested = judged_by if board.depends_on_lower or policy.low_variance_promotes else board
        promised = guarantee(tested, lower, axis, objective.most_wrong, confidence)
        if promised.upper is None:
            return Recommendation(
                policy.lower, policy.upper, len(chosen_by), len(judged_by), axis, plateau, guaranteed=promised,
                why_not=promised.reason,
            )  # fmt: skip
        upper = promised.upper
    compared = compare(judged_by, objective, prices, (("recommended", lower, upper), *others))
    drawn = bootstrap(chosen_by, loss, axis, may, seed)
    return Recommendation(lower, upper, len(chosen_by), len(judged_by), axis, plateau, drawn, compared, promised)


def halves(board: Board, seed: int = 0) -> Array:
    """(n,) whether a question belongs to the half that thresholds are chosen on: one half of every expected route."""
    first, draw = np.zeros(len(board), dtype=bool), np.random.default_rng(seed)
    for expected in np.unique(board.expected):
        places = draw.permutation(np.flatnonzero(board.expected == expected))
        first[places[: (len(places) + 1) // 2]] = True
    return first


def compare(
    board: Board, objective: Objective, prices: Prices, named: tuple[tuple[str, float, float], ...]
) -> tuple[Compared, ...]:
    """Each of `named` (name, lower, upper) over the questions of `board`, the differences to the first."""
    loss = losses(board, replace(objective, most_wrong=None), prices)
    found: list[Compared] = []
    own: Array | None = None
    for name, lower, upper in named:
        actions = board.actions(lower, upper)
        each = loss[np.arange(len(board)), actions]
        saved = None if own is None else _paired(each - own)
        own = each if own is None else own
        found.append(Compared(name, lower, upper, rate(board, actions, prices), float(each.mean()), saved))
    return tuple(found)


def bootstrap(
    board: Board, loss: Array, axis: Array, may: Array, seed: int, draws: int = _DRAWS
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The middle 95 % of the best lower and of the best upper, over resampled questions.

    Of cells that are equally good the mean counts.
    """
    n, random = len(board), np.random.default_rng(seed)
    draws = max(20, min(draws, _NUMBERS // max(n, 1)))
    weights = random.multinomial(n, np.full(n, 1 / n), draws).astype(float)
    sums = np.full((draws, len(axis), len(axis)), np.inf)
    for place, each in rows(board, loss, axis, axis):
        sums[:, place] = np.where(may[place], weights @ each, np.inf)
    tied = sums <= sums.min(axis=(1, 2), keepdims=True) + 1e-9 * n
    count = tied.sum(axis=(1, 2))
    found = [np.quantile((tied.sum(axis=other) * axis).sum(axis=1) / count, (0.025, 0.975)) for other in (2, 1)]
    (low, high), (other_low, other_high) = found
    return (float(low), float(high)), (float(other_low), float(other_high))


def _within(board: Board, objective: Objective, axis: Array) -> Array:
    """(lowers, uppers) the cells that can be chosen."""
    may = allowed(board, axis, axis)
    if objective.most_wrong is None:
        return may
    with np.errstate(invalid="ignore"):
        return np.asarray(may & (wrong_surface(board, axis, axis) <= objective.most_wrong))


def _refusal(board: Board, first: Array) -> str:
    if len(board) < LEAST:
        return f"Thresholds cannot be chosen from {len(board)} questions: {LEAST} are needed at least."
    for kind, which in (("answerable", board.answerable), ("unanswerable", ~board.answerable)):
        if min((which & first).sum(), (which & ~first).sum()) < 2:
            have = int(which.sum())
            return f"Thresholds cannot be chosen from {have} {kind} questions: 4 of each kind are needed at least."
    if (board.deciding().settled >= 0).all():
        return "Thresholds cannot be chosen: none of these questions has a score that they could decide by."
    return ""


def _paired(apart: Array) -> Estimate:
    mean, half = float(apart.mean()), Z95 * float(apart.std(ddof=1)) / np.sqrt(len(apart))
    return Estimate(mean, mean - half, mean + half)

"""Recommends thresholds: chosen on one half of the questions, accepted only if they are better on the other.

With few questions the choice is drawn towards the shipped pair by the credibility factor n / (n + k) of Buehlmann 1967,
"Experience Rating and Credibility" (ASTIN Bulletin 4), n being the questions chosen on and k `CREDIBILITY`. The half
that had no part then decides by the one-sided 95 % bound (normal) of the paired difference of costs: where it does not
exceed 0, the thresholds in use are kept. One question is added for which such a change costs the most that it can,
since a few dozen questions may well hold none of the rare mistakes that cost most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from crag_core.base.text.display import counted, readable
from crag_core.experiments.statistics.intervals import Z95, Estimate
from crag_core.experiments.statistics.small_sets import LEAST, LEAST_OF_A_KIND
from crag_core.experiments.thresholds.guarantee import Guarantee, Pair, find_path, guarantee
from crag_core.experiments.thresholds.objective import (
    Objective,
    Plateau,
    allowed,
    find_plateau,
    losses,
    wrong_surface,
)
from crag_core.experiments.thresholds.threshold_board import Array, Board, Rates, grid, rate

STEPS = 51
"""So that every threshold that can be chosen has two decimals, as on the screen."""
CREDIBILITY = 50
"""Questions chosen on of which the choice counts half, the shipped pair the other half."""
ONE_SIDED = NormalDist().inv_cdf(0.95)

Named = tuple[str, float, float]
"""Thresholds with a name: (name, lower, upper)."""


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
    """`lower` and `upper` are what to use; `why_not` says why there is no choice.

    `keep` says, with figures, why these are the thresholds in use; "" where they are others, better on questions that
    had no part in choosing. `broken` says how the thresholds in use break a limit, `misses` how these do, which come
    nearest to it where none keeps it; "": they keep it. `weight` is how far the choice was trusted against the shipped
    pair. `chosen_on` and `judged_on` count questions. `plateau` is over `grid`. `compared` has the recommended
    thresholds first.
    """

    lower: float
    upper: float
    chosen_on: int
    judged_on: int
    grid: Array
    plateau: Plateau | None = None
    compared: tuple[Compared, ...] = ()
    guaranteed: Guarantee | None = None
    why_not: str = ""
    keep: str = ""
    broken: str = ""
    misses: str = ""
    weight: float = 1.0

    @property
    def keeps_limit(self) -> bool:
        return not (self.misses or (self.keep and self.broken))

    def reason(self, aim: str) -> str:
        """Why these thresholds, for a preset; `aim` describes the objective."""
        if self.keep:
            return f"kept, no better pair found for the {aim}" + (", a limit that they break" if self.broken else "")
        return f"nearest to a limit that no pair keeps: {aim}" if self.misses else aim

    def is_at(self, lower: float, upper: float) -> bool:
        """Whether these are the recommended thresholds, but for the rounding of a file."""
        return not self.why_not and max(abs(lower - self.lower), abs(upper - self.upper)) < 1e-6


def recommend(
    board: Board, objective: Objective, *, own: Pair | None = None, others: tuple[Named, ...] = (), **how: Any
) -> Recommendation:
    """The best thresholds of `board` under `objective`, or `own`, where others are not shown to be better.

    `own` are the thresholds in use, those of the policy unless given; `others` are to compare with. `how` is what
    `choose` takes. The same arguments always give the same.
    """
    return accept(choose(board, objective, **how), objective, own or board.policy.thresholds[:2], others)


# --- choosing, on one half --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chosen:
    """`pair` is what one half prefers, None for the reason in `found`; `judged_by` holds the other half."""

    found: Recommendation
    pair: Pair | None = None
    judged_by: Board | None = None


def choose(
    board: Board,
    objective: Objective,
    *,
    shipped: Pair | None = None,
    confidence: float | None = None,
    steps: int = STEPS,
) -> Chosen:
    """The slow part of `recommend`, in which the thresholds in use have no part.

    `shipped` are those that few questions are drawn towards, those of the policy unless given. `confidence`: keep the
    limit of the objective with that confidence (`guarantee`), not only on what was seen.
    """
    axis, start, first = grid(steps), board.policy.thresholds[:2], halves(board)
    if refusal := _refusal(board, first):
        return Chosen(Recommendation(*start, 0, 0, axis, why_not=refusal))
    chosen_by, judged_by = board.part(first), board.part(~first)
    made = Recommendation(*start, len(chosen_by), len(judged_by), axis)
    loss, excess = losses(chosen_by, objective), _excess_surface(chosen_by, objective, axis)
    may = excess <= (np.nanmin(excess) if confidence is None else 0.0)
    plateau = find_plateau(chosen_by, loss, axis, axis, may)
    if plateau is None:
        why = f"No thresholds keep the limit on the questions chosen on: {objective.describe()}."
        return Chosen(replace(made, why_not=why))
    made = replace(made, plateau=plateau)
    pair = float(axis[plateau.middle[0]]), float(axis[plateau.middle[1]])
    if objective.most_wrong is None:
        weight = len(chosen_by) / (len(chosen_by) + CREDIBILITY)
        pair, made = shrink(pair, shipped or start, weight), replace(made, weight=weight)
    elif confidence is not None:
        path = find_path(chosen_by, loss, axis, allowed(chosen_by, axis, axis), objective.most_wrong)
        promised = guarantee(judged_by, path, objective.most_wrong, confidence)
        made = replace(made, guaranteed=promised)
        if promised.pair is None:
            return Chosen(replace(made, why_not=promised.reason()))
        pair = promised.pair
    return Chosen(made, pair, judged_by)


def halves(board: Board) -> Array:
    """(n,) whether a question belongs to the half that thresholds are chosen on: one half of every expected route."""
    first, draw = np.zeros(len(board), dtype=bool), np.random.default_rng(0)
    for expected in np.unique(board.expected):
        places = draw.permutation(np.flatnonzero(board.expected == expected))
        first[places[: (len(places) + 1) // 2]] = True
    return first


def _refusal(board: Board, first: Array) -> str:
    if len(board) < LEAST:
        return f"Thresholds cannot be chosen from {counted(len(board), 'question')}: {LEAST} are needed."
    for kind, which in (("answerable", board.answerable), ("unanswerable", ~board.answerable)):
        if min((which & first).sum(), (which & ~first).sum()) < LEAST_OF_A_KIND // 2:
            needed = f"{LEAST_OF_A_KIND} of each kind are needed"
            return f"Thresholds cannot be chosen from {counted(int(which.sum()), f'{kind} question')}: {needed}."
    if (board.deciding().settled >= 0).all():
        return "Thresholds cannot be chosen: none of these questions has a score that they could decide by."
    return ""


def _excess_surface(board: Board, objective: Objective, axis: Array) -> Array:
    """(lowers, uppers) as `_excess`; NaN where the policy may not have that pair."""
    excess = np.where(allowed(board, axis, axis), 0.0, np.nan)
    if objective.most_wrong is not None:
        excess += np.maximum(wrong_surface(board, axis, axis) - objective.most_wrong, 0.0)
    return excess


def shrink(chosen: Pair, shipped: Pair, weight: float) -> Pair:
    """`weight` of the way from the shipped pair to the chosen one, in hundredths."""
    lower, upper = (round(weight * to + (1.0 - weight) * start, 2) for to, start in zip(chosen, shipped, strict=True))
    return lower, upper


# --- accepting, on the other half -------------------------------------------------------------------------------------


def accept(
    chosen: Chosen,
    objective: Objective,
    own: Pair,
    others: tuple[Named, ...] = (),
    names: tuple[str, str] = ("lower", "upper"),
) -> Recommendation:
    """The chosen pair where the half that had no part in choosing bears it out, else `own`.

    `names` are those of the two thresholds in the reason to keep yours.
    """
    if chosen.pair is None or chosen.judged_by is None:
        return replace(chosen.found, lower=own[0], upper=own[1])
    board = chosen.judged_by
    mine, other = compare(board, objective, (("yours", *own), ("recommended", *chosen.pair)))
    broken, misses = (_breaks(one.rates, objective) for one in (mine, other))
    promised, is_nearer = chosen.found.guaranteed, _excess(other.rates, objective) < _excess(mine.rates, objective)
    keep = "" if promised or is_nearer else _why_keep(board, objective, own, chosen.pair, broken, misses, names)
    if np.allclose(own, chosen.pair, rtol=0, atol=1e-6):  # but for the rounding of a file
        keep = "The best pair that was found is yours."
    elif not (keep or is_better_somewhere(other, mine, objective)):
        figures = beside(other, mine, objective)
        keep = f"On {len(board)} held-out questions the best other pair is better in none of these: {figures}."
        if promised and not promised.covers(*own):
            keep += " The promise was made for that pair and not for yours."
    shown = (mine, replace(other, name="best other pair")) if keep else (other, mine)
    named = [(one.name, one.lower, one.upper) for one in shown]
    named = named[:1] if named[1][1:] in {one[1:] for one in others} else named
    return replace(
        chosen.found,
        lower=shown[0].lower,
        upper=shown[0].upper,
        keep=keep,
        broken=broken,
        misses="" if keep else misses,
        compared=compare(board, objective, (*named, *others)),
    )


def compare(board: Board, objective: Objective, named: tuple[Named, ...]) -> tuple[Compared, ...]:
    """Each of `named` over the questions of `board`, the differences to the first."""
    loss = _mistakes_and_effort(board, objective)
    found: list[Compared] = []
    own: Array | None = None
    for name, lower, upper in named:
        actions = board.actions(lower, upper)
        each = loss[np.arange(len(board)), actions]
        saved = None if own is None else _paired(each - own)
        own = each if own is None else own
        found.append(Compared(name, lower, upper, rate(board, actions), float(each.mean()), saved))
    return tuple(found)


def _mistakes_and_effort(board: Board, objective: Objective) -> Array:
    """`losses` without the weight that a limit puts on web searches."""
    return losses(board, Objective(objective.costs))


def _paired(apart: Array) -> Estimate:
    mean, half = float(apart.mean()), Z95 * float(apart.std(ddof=1)) / np.sqrt(len(apart))
    return Estimate(mean, mean - half, mean + half)


def _why_keep(
    board: Board, objective: Objective, own: Pair, chosen: Pair, broken: str, misses: str, names: tuple[str, str]
) -> str:
    """In words and figures; "" where `chosen` is better on these questions by more than chance, and breaks no limit."""
    pair = ", ".join(f"{name} {value}" for name, value in zip(names, readable(*chosen), strict=True))
    other = f"On {len(board)} held-out questions the best other pair ({pair})"
    if broken or misses:
        return f"{other} comes no nearer to the limit: {misses}." if broken else f"{other} breaks the limit: {misses}."
    by_cost = objective.most_wrong is None
    loss = _mistakes_and_effort(board, objective) if by_cost else board.web.astype(float)
    at, places = [board.actions(*pair) for pair in (own, chosen)], np.arange(len(board))
    mine, theirs = (loss[places, actions] for actions in at)
    moves = {(a, b) for a, b in zip(*(actions.tolist() for actions in at), strict=True) if a != b}
    worst = max((float((loss[:, b] - loss[:, a]).max()) for a, b in moves), default=0.0)
    apart = np.append(mine - theirs, -worst)
    if float(apart.mean()) - ONE_SIDED * float(apart.std(ddof=1)) / np.sqrt(len(apart)) > 0.0:
        return ""
    what, kind = ("cost", ".2f") if by_cost else ("searched the web for", ".1%")
    return f"{other} {what} {theirs.mean():{kind}} (yours {mine.mean():{kind}}): no better than chance."


def _breaks(found: Rates, objective: Objective) -> str:
    """How the limit is broken, with what was asked; "": it is not."""
    if _excess(found, objective) == 0.0 or found.confidently_wrong is None:
        return ""
    return f"{found.confidently_wrong.value:.1%} confidently wrong, at most {objective.most_wrong:.1%} asked for"


def _excess(found: Rates, objective: Objective) -> float:
    """By how much the limit is broken; 0.0: it is kept, or there is none."""
    wrong, most = found.confidently_wrong, objective.most_wrong
    return 0.0 if wrong is None or most is None else max(wrong.value - most, 0.0)


# --- a pair beside yours ----------------------------------------------------------------------------------------------


def card(one: Compared, objective: Objective) -> dict[str, float | None]:
    """The figures that are shown of a pair beside yours: shares in whole percents, the cost with two decimals.

    Less is better, but of "answered".
    """
    rates = one.rates
    shares = [("answered", rates.answered), ("confidently wrong", rates.confidently_wrong)]
    shares.append(("answer discarded", rates.discarded))
    if objective.most_wrong is not None:
        shares.append(("web searches", rates.web))
    return {name: round(share.value, 2) if share else None for name, share in shares} | {"cost": round(one.cost, 2)}


def beside(one: Compared, yours: Compared, objective: Objective) -> str:
    """The figures of `card` in words, each with that of yours."""
    own = card(yours, objective)
    return ", ".join(
        f"{name} {_figure(name, value)} (yours {_figure(name, own[name])})"
        for name, value in card(one, objective).items()
        if value is not None
    )


def _figure(name: str, value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if name == "cost" else f"{value:.0%}"


def is_better_somewhere(one: Compared, other: Compared, objective: Objective) -> bool:
    """Whether a figure that is shown of `one` is better than that of `other`."""
    own = card(other, objective)
    gains = {name: (own[name] or 0.0) - (value or 0.0) for name, value in card(one, objective).items()}
    return gains.pop("answered") < 0 or any(gain > 0 for gain in gains.values())

"""The objective of tuning (costs of mistakes and effort, or a limit), and the plateau of what is as good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.thresholds.threshold_board import AMBIGUOUS, CORRECT, INCORRECT, Array, Board

FEWEST_WEB = 1000.0
"""With a limit, one web search weighs as much as a thousand units of everything else: the fewest searches win."""


@dataclass(frozen=True)
class Costs:
    """In units of one web search, each from 0.

    `wrong`: a question that the documents do not answer is CORRECT, so that it is answered from them. `missed`: one
    that they do answer is INCORRECT, so that the answer is thrown away. `mixed_up`: AMBIGUOUS for something else than
    the documents are about, or INCORRECT for what they nearly answer. `web`, `call`: each web search and model call.
    """

    wrong: float = 5.0
    missed: float = 3.0
    mixed_up: float = 0.5
    web: float = 1.0
    call: float = 0.1

    def __post_init__(self) -> None:
        for name, cost in vars(self).items():
            if not 0.0 <= cost < float("inf"):
                raise ValueError(f"the cost {name!r} must be a number from 0, found {cost}")


@dataclass(frozen=True)
class Objective:
    """The least mean cost; with `most_wrong`, the fewest web searches among the thresholds that keep that limit on the
    share of unanswerable questions that are CORRECT, and the least cost among equals."""

    costs: Costs = Costs()
    most_wrong: float | None = None

    def __post_init__(self) -> None:
        if self.most_wrong is not None and not 0.0 < self.most_wrong < 1.0:
            raise ValueError(f"expected a limit between 0 and 1, found {self.most_wrong}")

    def describe(self, confidence: float | None = None) -> str:
        """In words, for a preset; `confidence`: that the limit was to be kept with."""
        if self.most_wrong is not None:
            sure = f" with {confidence:.0%} confidence" if confidence else ""
            return f"fewest web searches with at most {self.most_wrong:.1%} confidently wrong{sure}"
        return f"least cost of {self.priced}"

    @property
    def priced(self) -> str:
        """ "wrong 5, missed 4, …": what each mistake and effort costs."""
        return ", ".join(f"{one.name.replace('_', ' ')} {getattr(self.costs, one.name):g}" for one in fields(Costs))


def losses(board: Board, objective: Objective) -> Array:
    """(n, actions) what each action costs each question."""
    costs = objective.costs
    of_mistakes = {  # by label: of CORRECT, of AMBIGUOUS and of INCORRECT
        Expected.CORRECT: (0.0, 0.0, costs.missed),
        Expected.AMBIGUOUS: (costs.wrong, 0.0, costs.mixed_up),
        Expected.INCORRECT: (costs.wrong, costs.mixed_up, 0.0),
        Expected.UNANSWERABLE: (costs.wrong, 0.0, 0.0),
    }
    loss = np.array([of_mistakes[expected] for expected in Expected])[board.expected]
    loss = loss + costs.web * board.web + costs.call * board.calls
    return np.asarray(loss + FEWEST_WEB * board.web if objective.most_wrong is not None else loss)


def rows(board: Board, loss: Array, lowers: Array, uppers: Array) -> Iterator[tuple[int, Array]]:
    """For every `lower`, its place and the losses (n, uppers) at each `upper`, `allowed` or not."""
    for place, lower in enumerate(lowers):
        rest = np.where(board.reaches_lower(lower), loss[:, AMBIGUOUS], loss[:, INCORRECT])
        yield place, np.where(board.is_correct(lower, uppers), loss[:, CORRECT, None], rest[:, None])


def surface(board: Board, loss: Array, lowers: Array, uppers: Array, among: Array | None = None) -> Array:
    """(lowers, uppers) the mean loss, of the questions `among` (n,) alone; NaN where the pair is not `allowed`, and
    everywhere without a question."""
    found = np.full((len(lowers), len(uppers)), np.nan)
    which = slice(None) if among is None else among
    if len(loss[which]):
        for place, each in rows(board, loss, lowers, uppers):
            found[place] = each[which].mean(axis=0)
    return np.where(allowed(board, lowers, uppers), found, np.nan)


def wrong_surface(board: Board, lowers: Array, uppers: Array) -> Array:
    """(lowers, uppers) the share of unanswerable questions that are CORRECT; NaN as in `surface`, or without any."""
    is_correct = np.tile(np.arange(3) == CORRECT, (len(board), 1)).astype(float)
    return surface(board, is_correct, lowers, uppers, ~board.answerable)


def web_surface(board: Board, lowers: Array, uppers: Array) -> Array:
    """(lowers, uppers) the share of questions that search the web; NaN as in `surface`."""
    return surface(board, board.web.astype(float), lowers, uppers)


def allowed(board: Board, lowers: Array, uppers: Array) -> Array:
    """(lowers, uppers) whether the policy may have that pair."""
    ordered = np.asarray(lowers)[:, None] <= np.asarray(uppers)[None, :]
    return ordered | board.policy.compares_two_scores


# --- plateau ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plateau:
    """`cells` (lowers, uppers) are connected, hold the best, and cost no more than it by one standard error of the
    paired difference. `middle` is the cell farthest from anything worse. `is_everywhere`: every pair that the policy
    may have is one of them."""

    cells: Array
    best: tuple[int, int]
    middle: tuple[int, int]
    is_everywhere: bool = False

    def span(self, axis: int) -> tuple[int, int]:
        """The first and last place of the plateau among lowers (0) or uppers (1)."""
        places = np.flatnonzero(self.cells.any(axis=1 - axis))
        return int(places[0]), int(places[-1])


def find_plateau(board: Board, loss: Array, lowers: Array, uppers: Array, may: Array) -> Plateau | None:
    """`may` (lowers, uppers): the cells that can be chosen; None where there are none, or no question."""
    from scipy.ndimage import label  # a part of a second, which the first page of the application need not wait

    possible = allowed(board, lowers, uppers)
    may = may & possible
    if not may.any() or not len(board):
        return None
    means = np.where(may, surface(board, loss, lowers, uppers), np.inf)
    first, second = np.unravel_index(means.argmin(), may.shape)
    best = int(first), int(second)
    at_best = loss[np.arange(len(board)), board.actions(lowers[best[0]], uppers[best[1]])]
    near = np.zeros_like(may)
    for place, each in rows(board, loss, lowers, uppers):
        apart = each - at_best[:, None]
        error = apart.std(axis=0, ddof=1) / np.sqrt(len(board)) if len(board) > 1 else np.zeros(len(uppers))
        near[place] = apart.mean(axis=0) <= error + 1e-12
    regions = label(near & may)[0]  # of cells that are reached from each other by steps to a neighbour
    cells = regions == regions[best]
    return Plateau(cells, best, _middle(cells), bool((cells == possible).all()))


def _middle(cells: Array) -> tuple[int, int]:
    """The cell that is farthest from any other one, in steps; of several, the one nearest their centre.

    The edge of the grid is no edge of the plateau: beyond 0 and 1 nothing gets worse.
    """
    from scipy.ndimage import distance_transform_cdt

    depth = distance_transform_cdt(cells, metric="taxicab")
    places = np.argwhere(cells & (depth == depth[cells].max()))
    centre = places.mean(axis=0)
    lower, upper = places[np.abs(places - centre).sum(axis=1).argmin()].tolist()
    return lower, upper

"""The plateau: thresholds as good as the best within the noise, and its middle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crag_core.experiments.thresholds.objective import allowed, rows
from crag_core.experiments.thresholds.threshold_board import Array, Board


@dataclass(frozen=True)
class Plateau:
    """`cells` (lowers, uppers) are connected, hold the best, and cost no more than it by one standard error of the
    paired difference. `middle` is the cell farthest from anything worse."""

    cells: Array
    best: tuple[int, int]
    middle: tuple[int, int]

    def span(self, axis: int) -> tuple[int, int]:
        """The first and last place of the plateau among lowers (0) or uppers (1)."""
        places = np.flatnonzero(self.cells.any(axis=1 - axis))
        return int(places[0]), int(places[-1])


def find_plateau(board: Board, loss: Array, lowers: Array, uppers: Array, may: Array) -> Plateau | None:
    """`may` (lowers, uppers): the cells that can be chosen; None where there are none, or no question."""
    may = may & allowed(lowers, uppers)
    if not may.any() or not len(board):
        return None
    means = np.full(may.shape, np.inf)
    for place, each in rows(board, loss, lowers, uppers):
        means[place] = np.where(may[place], each.mean(axis=0), np.inf)
    best = _place(means.argmin(), may.shape)
    at_best = next(each for place, each in rows(board, loss, lowers[best[0] : best[0] + 1], uppers))[:, best[1]]
    near = np.zeros_like(may)
    for place, each in rows(board, loss, lowers, uppers):
        apart = each - at_best[:, None]
        error = apart.std(axis=0, ddof=1) / np.sqrt(len(board)) if len(board) > 1 else np.zeros(len(uppers))
        near[place] = apart.mean(axis=0) <= error + 1e-12
    cells = _connected(near & may, best)
    return Plateau(cells, best, _middle(cells))


def _connected(cells: Array, start: tuple[int, int]) -> Array:
    """Those of `cells` that can be reached from `start` by steps to a neighbour."""
    found, edge = np.zeros_like(cells), [start]
    while edge:
        i, j = edge.pop()
        if 0 <= i < cells.shape[0] and 0 <= j < cells.shape[1] and cells[i, j] and not found[i, j]:
            found[i, j] = True
            edge += [(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)]
    return found


def _middle(cells: Array) -> tuple[int, int]:
    """The cell that survives the most rounds of losing the outermost ones; of several, the one nearest their centre.

    The edge of the grid is no edge of the plateau: beyond 0 and 1 nothing gets worse.
    """
    left = last = cells
    while left.any():
        last, padded = left, np.pad(left, 1, mode="edge")
        left = padded[1:-1, 1:-1] & padded[2:, 1:-1] & padded[:-2, 1:-1] & padded[1:-1, 2:] & padded[1:-1, :-2]
        if (left == last).all():
            break
    places = np.argwhere(last)
    centre = places.mean(axis=0)
    return _pair(places[np.abs(places - centre).sum(axis=1).argmin()])


def _place(flat: Any, shape: tuple[int, ...]) -> tuple[int, int]:
    return _pair(np.unravel_index(flat, shape))


def _pair(place: Any) -> tuple[int, int]:
    return int(place[0]), int(place[1])

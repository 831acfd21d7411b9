"""Active labelling: the questions whose label would tell most about thresholds.

Uncertainty sampling (Lewis and Gale 1994) with a spread: first those nearest to a threshold, where a label decides
which side is right, but not many that score alike, since the labels of neighbours tell nearly the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crag_core.experiments.thresholds.guarantee import Pair
from crag_core.experiments.thresholds.threshold_board import Array, Deciding

_NEAR = 0.1
"""A distance from the flip at which a question counts about a third of one that is on it."""


def most_telling(known: Deciding, pairs: Sequence[Pair], count: int) -> tuple[int, ...]:
    """At most `count` places in `known`, the most telling first; `pairs` are (lower, upper) to choose between.

    Questions that no threshold decides come last, in their order. The same arguments always give the same.
    """
    scores = np.column_stack((known.upper, known.lower))
    near = np.exp(-_margins(known, pairs) / _NEAR)
    left = [int(at) for at in np.flatnonzero(np.isfinite(near))]
    apart = np.ones(len(near))
    chosen: list[int] = []
    while left and len(chosen) < count:
        best = max(left, key=lambda at: (near[at] * apart[at], -at))
        chosen.append(best)
        left.remove(best)
        apart = np.minimum(apart, np.abs(scores - scores[best]).max(axis=1))
    rest = [int(at) for at in np.flatnonzero(~np.isfinite(near))]
    return tuple([*chosen, *rest][:count])


def _margins(known: Deciding, pairs: Sequence[Pair]) -> Array:
    """(n,) the smallest distance of a score from a threshold that decides; NaN where none does.

    A question that is CORRECT is not decided by `lower`.
    """
    found = np.full(len(known.upper), np.inf)
    for lower, upper in pairs:
        of_upper, of_lower = np.abs(known.upper - upper), np.abs(known.lower - lower)
        found = np.minimum(found, np.where(known.upper >= upper, of_upper, np.minimum(of_upper, of_lower)))
    return np.where(known.settled >= 0, np.nan, found)

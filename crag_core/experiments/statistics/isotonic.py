"""The curve from scores to probabilities that never falls, with the least squared error.

Through its knots it runs straight, and outside them level.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from crag_core.experiments.statistics.curves import Array

Knots = tuple[tuple[float, float], ...]
"""Score and probability of each, by rising score."""


def fit_isotonic(scores: Array, labels: Array) -> Knots:
    """`scores` of any scale, none of them NaN, and whether each came true; one question or more."""
    from scipy.optimize import isotonic_regression  # slow to import: see intervals.py

    places, home, counts = np.unique(scores, return_inverse=True, return_counts=True)
    shares = np.bincount(home, weights=labels) / counts
    levels = np.clip(isotonic_regression(shares, weights=counts).x, 0.0, 1.0)
    same = levels[1:] == levels[:-1]
    bends = ~(np.append(False, same) & np.append(same, False))  # what lies within a level stretch adds nothing
    return tuple((float(place), float(level)) for place, level in zip(places[bends], levels[bends], strict=True))


def follow_isotonic(score: float, knots: Knots) -> float:
    place = bisect_right(knots, score, key=lambda knot: knot[0])
    if place in (0, len(knots)):
        return knots[max(place - 1, 0)][1]
    (left, low), (right, high) = knots[place - 1], knots[place]
    return min(low + (high - low) * ((score - left) / (right - left)), high)

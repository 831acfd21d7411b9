"""The curve from scores to probabilities that never falls, with the least squared error.

Through its knots it runs straight, and outside them level.
"""

from __future__ import annotations

import numpy as np

from crag_core.experiments.statistics.curves import Array

Knots = tuple[tuple[float, float], ...]
"""Score and probability of each, by rising score."""


def fit_isotonic(scores: Array, labels: Array) -> Knots:
    """`scores` of any scale, none of them NaN, and whether each came true; one question or more."""
    from sklearn.isotonic import IsotonicRegression  # slow to import, and needed only where a curve is fitted

    model = IsotonicRegression(y_min=0.0, y_max=1.0).fit(scores, labels)
    return tuple(zip(model.X_thresholds_.tolist(), model.y_thresholds_.tolist(), strict=True))


def follow_isotonic(score: float, knots: Knots) -> float:
    level = float(np.interp(score, [place for place, _ in knots], [level for _, level in knots]))
    return min(level, knots[-1][1])  # which rounding may exceed

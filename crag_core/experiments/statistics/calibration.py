"""Calibration of scores to probabilities.

A calibration is Platt's logistic curve (1999, "Probabilistic outputs for support vector machines"), fitted to questions
with known outcome. NaN is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crag_core.experiments.statistics.curves import Array

FEWEST = 10
"""Questions of either kind, below which nothing is fitted."""


Coefficients = tuple[float, float]
"""Slope and offset of the logistic curve."""


@dataclass(frozen=True)
class Calibration:
    """A curve, and how many questions it was fitted on."""

    questions: int
    coefficients: Coefficients

    def __post_init__(self) -> None:
        if not self.coefficients[0] >= 0:
            raise ValueError(f"expected a slope that is not negative, found {self.coefficients[0]}")

    def probability(self, score: float) -> float:
        """In 0..1, and never less for a higher score. ValueError: NaN, which no question was graded by."""
        if math.isnan(score):
            raise ValueError("expected a score, found NaN")
        slope, offset = self.coefficients
        return 0.5 * (1.0 + math.tanh((slope * score + offset) / 2))  # which no exponent can overflow


def fit_platt(scores: Array, labels: Array) -> Coefficients:
    """Slope and offset of the logistic curve with the least log loss against smoothed outcomes.

    `scores` of any scale, none of them NaN, and whether each came true; one question or more. Where a higher score
    would make an outcome less likely, the slope is 0.
    """
    from sklearn.linear_model import LogisticRegression  # slow to import, and needed only where a curve is fitted

    right = int(labels.sum())
    wrong = len(labels) - right
    targets = np.where(labels, (right + 1) / (right + 2), 1 / (wrong + 2))
    level = float(np.log(targets.mean() / (1 - targets.mean())))
    centre, width = float(scores.mean()), float(scores.std())
    if width < 1e-12:  # equal but for rounding
        return 0.0, level
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    places = (np.tile(scores, 2)[:, None] - centre) / width  # every question in part right, in part wrong
    model.fit(places, np.repeat([True, False], len(scores)), np.concatenate([targets, 1 - targets]))
    slope, offset = float(model.coef_[0, 0]), float(model.intercept_[0])
    return (slope / width, offset - slope * centre / width) if slope > 0 else (0.0, level)

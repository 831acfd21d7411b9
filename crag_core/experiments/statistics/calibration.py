"""Calibration of scores to probabilities.

A calibration is Platt's logistic curve (1999, "Probabilistic outputs for support vector machines"), fitted to questions
with known outcome. NaN is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.statistics.curves import Array, Labels, Values, graded

FEWEST = 10
"""Questions of either kind, below which nothing is fitted."""


Coefficients = tuple[float, float]
"""Slope and offset of the logistic curve."""


@dataclass(frozen=True)
class Calibration:
    """A curve, and what it was fitted on.

    `corpus` is the fingerprint of the documents, `questions` how many were used, `created` a date.
    """

    evaluator: str
    evaluator_version: str
    corpus: str
    questions: int
    created: str
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


def in_present_form(plain: dict[str, Any]) -> dict[str, Any] | None:
    """A calibration of an earlier version; None for one by isotonic regression, which is gone."""
    is_isotonic = plain.get("kind") == "isotonic"
    return None if is_isotonic else {key: value for key, value in plain.items() if key not in ("kind", "points")}


def calibrated(scores: Values, outcomes: Labels, made: Conditions, created: str) -> tuple[Calibration | None, str]:
    """The curve for what was graded under `made`, and in words how it was fitted.

    None, and why, where the questions do not allow one.
    """
    scores, labels = graded(scores, outcomes)
    right, problem = int(labels.sum()), ""
    wrong = len(labels) - right
    if (outside := scores[(scores < 0) | (scores > 1)]).size:
        problem = f"Expected scores in 0..1, found {outside[0]}. Use the scores as the evaluator gave them."
    elif min(right, wrong) < FEWEST:
        problem = (
            f"Expected {FEWEST} graded questions or more that come true and as many that do not, found {right} and "
            f"{wrong}. Label more questions of the rarer kind."
        )
    if problem:
        return None, f"No calibration goes with it: {problem}"
    of = made.evaluator, made.evaluator_version, made.corpus
    fitted = Calibration(*of, len(scores), created, fit_platt(scores, labels))
    return fitted, f"A calibration of the score goes with it, of {len(scores)} questions."


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

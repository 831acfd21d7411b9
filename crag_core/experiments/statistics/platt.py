"""A logistic curve from scores to probabilities: how it is fitted, and how it is followed.

Platt 1999, "Probabilistic outputs for support vector machines"; by Newton's method with halved steps, as in Lin, Lin &
Weng 2007, Machine Learning 68.
"""

from __future__ import annotations

import math

import numpy as np

from crag_core.experiments.statistics.curves import Array

Coefficients = tuple[float, float]
"""Slope and offset."""


def fit_platt(scores: Array, labels: Array) -> Coefficients:
    """Slope and offset of the logistic curve with the least log loss against smoothed outcomes.

    `scores` of any scale, none of them NaN, and whether each came true; one question or more. Where a higher
    score would make an outcome less likely, the slope is 0.
    """
    right = int(labels.sum())
    wrong = len(labels) - right
    targets = np.where(labels, (right + 1) / (right + 2), 1 / (wrong + 2))
    level = float(np.log(targets.mean() / (1 - targets.mean())))
    centre, width = float(scores.mean()), float(scores.std())
    if width < 1e-12:  # equal but for rounding
        return 0.0, level
    slope, offset = _newton((scores - centre) / width, targets, level)
    return (slope / width, offset - slope * centre / width) if slope > 0 else (0.0, level)


def follow_platt(score: float, slope: float, offset: float) -> float:
    return 0.5 * (1.0 + math.tanh((slope * score + offset) / 2))  # which no exponent can overflow


def _newton(places: Array, targets: Array, level: float) -> Coefficients:
    """From a flat curve at `level`; smoothed targets keep the least loss at a finite slope, even of separated kinds."""
    design = np.stack([places, np.ones_like(places)], axis=1)

    def loss(at: Array) -> float:
        return float((np.logaddexp(0.0, design @ at) - targets * (design @ at)).sum())

    at = np.array([0.0, level])
    for _ in range(100):
        message = 0.5 * (1.0 + np.tanh(design @ at / 2))
        curvature = design.T @ (design * (message * (1 - message))[:, None]) + 1e-12 * np.eye(2)
        step = np.linalg.solve(curvature, design.T @ (message - targets))
        here, size = loss(at), 1.0
        while loss(at - size * step) > here + 1e-12 * abs(here) and size > 1e-10:
            size /= 2
        at = at - size * step
        if np.abs(step).max() < 1e-10:
            break
    return float(at[0]), float(at[1])

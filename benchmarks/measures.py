"""Measures with their 95 % intervals: telling two groups apart, shares, macro-F1 and Cohen's kappa of a table."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import rankdata

from crag_core.experiments.statistics import curves
from crag_core.experiments.statistics.curves import Labels, Values
from crag_core.experiments.statistics.intervals import Z95
from crag_core.experiments.statistics.intervals import Estimate as Estimate
from crag_core.experiments.statistics.intervals import proportion as proportion

SEED = 4
"""Of every draw of the benchmark: samples of questions, halves for fitting, resamples for intervals."""

_DRAWS = 2000

share = proportion
"""`hits` of `count`, with its exact interval; None of nothing."""


def auroc(scores: Values, is_positive: Labels, homes: Values | None = None) -> Estimate | None:
    """As `curves.auroc`; values of one home, such as the passages of one question, are not taken for independent
    (Obuchowski 1997, Biometrics 53)."""
    plain = curves.auroc(scores, is_positive)
    if homes is None or plain is None or not 0 < plain.value < 1:
        return plain
    used = ~np.isnan(np.asarray(scores, dtype=float))
    numbers, labels = np.asarray(scores, dtype=float)[used], np.asarray(is_positive, dtype=bool)[used]
    home = np.unique(np.asarray(homes)[used], return_inverse=True)[1]
    held = [np.unique(home[side]).size for side in (labels, ~labels)]
    if min(held) < 2:
        return Estimate(plain.value, 0.0, 1.0)
    ranks, beaten = rankdata(numbers), np.empty(len(numbers))  # of each value: the share of the other side below it
    for side in (labels, ~labels):
        beaten[side] = (ranks[side] - rankdata(numbers[side])) / (~side).sum()
    beaten[~labels] = 1.0 - beaten[~labels]
    sums = [np.bincount(home, weights=(beaten - plain.value) * side) / side.sum() for side in (labels, ~labels)]
    variance = sum(count / (count - 1) * float(total @ total) for count, total in zip(held, sums, strict=True))
    variance += 2 * len(sums[0]) / (len(sums[0]) - 1) * float(sums[0] @ sums[1])
    half = Z95 * math.sqrt(max(variance, 0.0)) / (plain.value * (1 - plain.value))
    return Estimate(plain.value, float(expit(logit(plain.value) - half)), float(expit(logit(plain.value) + half)))


def ratio(parts: Values, wholes: Values) -> Estimate | None:
    """Sum over sum; the interval by resampling the questions that the parts and wholes belong to."""
    part, whole = np.asarray(parts, dtype=float), np.asarray(wholes, dtype=float)
    if not whole.sum():
        return None
    drawn = np.random.default_rng(SEED).multinomial(len(whole), np.full(len(whole), 1 / len(whole)), _DRAWS)
    sums = drawn @ whole
    low, high = np.quantile((drawn @ part)[sums > 0] / sums[sums > 0], (0.025, 0.975))
    return Estimate(float(part.sum() / whole.sum()), float(low), float(high))


def macro_f1(table: np.ndarray[Any, Any]) -> Any:
    """Of confusion tables (..., expected, taken): the plain mean of every class's F1, 0 for one that never occurs."""
    hits = np.diagonal(table, axis1=-2, axis2=-1)
    total = table.sum(axis=-1) + table.sum(axis=-2)
    return (2 * hits / np.maximum(total, 1)).mean(axis=-1)


def macro_f1_estimate(table: np.ndarray[Any, Any]) -> Estimate:
    """With the interval of resampled questions, which is to draw the cells of the table anew."""
    return _estimate(macro_f1, table)


def kappa(table: np.ndarray[Any, Any]) -> Any:
    """Of confusion tables (..., one, other): agreement beyond chance (Cohen 1960); 0 where both always say the same."""
    total = np.maximum(table.sum(axis=(-2, -1)), 1)
    agreed = np.trace(table, axis1=-2, axis2=-1) / total
    by_chance = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1) / total**2
    return np.where(by_chance < 1, (agreed - by_chance) / np.where(by_chance < 1, 1 - by_chance, 1), 0.0)


def kappa_estimate(table: np.ndarray[Any, Any]) -> Estimate:
    """With the interval of `macro_f1_estimate`."""
    return _estimate(kappa, table)


def _estimate(measure: Callable[[np.ndarray[Any, Any]], Any], table: np.ndarray[Any, Any]) -> Estimate:
    cells = table.ravel() / table.sum()
    drawn = np.random.default_rng(SEED).multinomial(int(table.sum()), cells, _DRAWS).reshape(-1, *table.shape)
    low, high = np.quantile(measure(drawn), (0.025, 0.975))
    return Estimate(float(measure(table)), float(low), float(high))

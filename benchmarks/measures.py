"""Measures with their 95 % intervals: telling two groups apart, shares, macro-F1 and Cohen's kappa of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crag_core.experiments.statistics.curves import Values
from crag_core.experiments.statistics.curves import auroc as auroc
from crag_core.experiments.statistics.intervals import Estimate, proportion

SEED = 4
"""Of every draw of the benchmark: samples of questions, halves for fitting, resamples for intervals."""

_DRAWS = 2000

share = proportion
"""`hits` of `count`, with its exact interval; None of nothing."""


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

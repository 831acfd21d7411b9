"""Measures with their 95 % intervals: telling two groups apart, shares of a whole, macro-F1 of a confusion table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = Sequence[float] | np.ndarray[Any, Any]

SEED = 4
"""Of every draw of the benchmark: samples of questions, halves for fitting, resamples for intervals."""

_Z = 1.959964
_DRAWS = 2000


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.2f}–{self.high:.2f})"


def midranks(values: Values) -> np.ndarray[Any, Any]:
    """Ranks from 1; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def auroc(scores: Values, is_positive: Sequence[bool], clusters: Sequence[int] | None = None) -> Estimate | None:
    """The chance that a positive outscores a negative, ties counted half (Mann-Whitney); None without both kinds.

    The interval is DeLong's, on the logit scale so that it stays within 0..1. Values of one cluster, such as the
    passages of one question, are not taken for independent of each other (Obuchowski 1997, Biometrics 53).
    """
    scored, positive = np.asarray(scores, dtype=float), np.asarray(is_positive, dtype=bool)
    sides = (positive, ~positive)
    if not positive.any() or positive.all():
        return None
    ranks = midranks(scored)
    beaten = np.empty(len(scored))  # of each value: the share of the other side that it stands right to
    for side, other in (sides, sides[::-1]):
        beaten[side] = (ranks[side] - midranks(scored[side])) / other.sum()
    beaten[~positive] = 1.0 - beaten[~positive]
    value = float(beaten[positive].mean())
    home = np.arange(len(scored)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    return Estimate(value, *_around(value, beaten - value, sides, home))


def share(hits: float, count: int) -> Estimate | None:
    """`hits` of `count`, with Wilson's interval; None of nothing."""
    return Estimate(hits / count, *_wilson(hits / count, count)) if count else None


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
    cells = table.ravel() / table.sum()
    drawn = np.random.default_rng(SEED).multinomial(int(table.sum()), cells, _DRAWS).reshape(-1, *table.shape)
    low, high = np.quantile(macro_f1(drawn), (0.025, 0.975))
    return Estimate(float(macro_f1(table)), float(low), float(high))


def _around(value: float, apart: Any, sides: tuple[Any, Any], home: Any) -> tuple[float, float]:
    """From each value's departure from the AUROC, summed by cluster; values that stand alone give DeLong's."""
    held = [np.unique(home[side]).size for side in sides]
    if min(held) < 2:
        return 0.0, 1.0
    sums = [np.bincount(home, weights=apart * side) / side.sum() for side in sides]
    pairs = zip((held[0], held[1]), sums, strict=True)
    variance = sum(count / (count - 1) * float((total**2).sum()) for count, total in pairs)
    variance += 2 * len(sums[0]) / (len(sums[0]) - 1) * float((sums[0] * sums[1]).sum())
    if not (variance > 1e-12 and 0 < value < 1):
        return _wilson(value, min(held))  # told apart without a fault: another sample may yet have some
    middle, half = math.log(value / (1 - value)), _Z * math.sqrt(variance) / (value * (1 - value))
    return _logistic(middle - half), _logistic(middle + half)


def _logistic(value: float) -> float:
    return 0.5 * (1.0 + math.tanh(value / 2))


def _wilson(value: float, count: int) -> tuple[float, float]:
    middle = value + _Z**2 / (2 * count)
    half = _Z * math.sqrt(value * (1 - value) / count + _Z**2 / (4 * count**2))
    whole = 1 + _Z**2 / count
    return max((middle - half) / whole, 0.0), min((middle + half) / whole, 1.0)

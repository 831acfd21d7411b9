"""AUROC with an interval that allows for clusters.

Scores and labels are as in `crag_core.experiments.statistics.curves`: what was never graded is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crag_core.experiments.statistics.curves import Array, Labels, Values, graded, unspread
from crag_core.experiments.statistics.intervals import Z95, Estimate


def auroc(scores: Values, is_positive: Labels, clusters: Sequence[int] | Array | None = None) -> Estimate | None:
    """The chance that a positive outscores a negative, ties counted half (Mann-Whitney); None without both kinds.

    The interval is DeLong's (1988, Biometrics 44), 95 %, on the logit scale so that it stays within 0..1. Values of one
    cluster, such as the passages of one question, are not taken for independent of each other (Obuchowski 1997,
    Biometrics 53).
    """
    found = graded(scores, is_positive)
    scored, positive = found.scores, found.labels
    sides = (positive, ~positive)
    if not positive.any() or positive.all():
        return None
    ranks = midranks(scored)
    beaten = np.empty(len(scored))  # of each value: the share of the other side that it stands right to
    for side, other in (sides, sides[::-1]):
        beaten[side] = (ranks[side] - midranks(scored[side])) / other.sum()
    beaten[~positive] = 1.0 - beaten[~positive]
    value = float(beaten[positive].mean())
    given = np.arange(len(found.kept)) if clusters is None else np.asarray(clusters)
    home = np.unique(given[found.kept], return_inverse=True)[1]
    return _around(value, beaten - value, sides, home)


def midranks(values: Values) -> Array:
    """Ranks from 1; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _around(value: float, apart: Array, sides: tuple[Array, Array], home: Array) -> Estimate:
    """From each value's departure from the AUROC, summed by cluster; values that stand alone give DeLong's."""
    held = [np.unique(home[side]).size for side in sides]
    if min(held) < 2:
        return Estimate(value, 0.0, 1.0)
    sums = [np.bincount(home, weights=apart * side) / side.sum() for side in sides]
    pairs = zip((held[0], held[1]), sums, strict=True)
    variance = sum(count / (count - 1) * float((total**2).sum()) for count, total in pairs)
    variance += 2 * len(sums[0]) / (len(sums[0]) - 1) * float((sums[0] * sums[1]).sum())
    if not (variance > 1e-12 and 0 < value < 1):
        return unspread(value, min(held))
    middle = math.log(value / (1 - value))
    half = Z95 * math.sqrt(variance) / (value * (1 - value))
    low, high = (0.5 * (1.0 + math.tanh(end / 2)) for end in (middle - half, middle + half))
    return Estimate(value, low, high)

"""AUROC of scores.

Scores are higher where a question is likelier positive, such as answerable. A NaN stands for a question that was never
graded, and is left out everywhere. Of equal scores none comes first: a threshold takes all of them or none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crag_core.experiments.statistics.intervals import Z95, Estimate, proportion

Array = np.ndarray[Any, Any]
Values = Sequence[float] | Array
Labels = Sequence[bool] | Array


@dataclass(frozen=True, eq=False)
class Graded:
    """The questions with a score, in order."""

    scores: Array
    labels: Array

    @property
    def has_both(self) -> bool:
        return bool(self.labels.any() and not self.labels.all())


def graded(scores: Values, labels: Labels) -> Graded:
    """ValueError: not as many labels as scores."""
    numbers, truths = np.asarray(scores, dtype=float), np.asarray(labels, dtype=bool)
    if numbers.ndim != 1 or numbers.shape != truths.shape:
        raise ValueError(f"expected as many labels as scores, found {truths.size} and {numbers.size}")
    kept = ~np.isnan(numbers)
    return Graded(numbers[kept], truths[kept])


def _unspread(value: float, count: int) -> Estimate:
    """For a sample without spread, such as one that is separated perfectly: another sample may have some."""
    around = proportion(value * count, count)
    return Estimate(value, around.low, around.high) if around else Estimate(value, 0.0, 1.0)


def auroc(scores: Values, is_positive: Labels, clusters: Sequence[int] | Array | None = None) -> Estimate | None:
    """The chance that a positive outscores a negative, ties counted half (Mann-Whitney); None without both kinds.

    The interval is DeLong's (1988, Biometrics 44), 95 %, on the logit scale so that it stays within 0..1. Values of one
    cluster, such as the passages of one question, are not taken for independent of each other (Obuchowski 1997,
    Biometrics 53).
    """
    from scipy.special import expit, logit
    from scipy.stats import rankdata

    found = graded(scores, is_positive)
    if not found.has_both:
        return None
    given = np.arange(len(scores)) if clusters is None else np.asarray(clusters)
    home = np.unique(given[~np.isnan(np.asarray(scores, dtype=float))], return_inverse=True)[1]
    ranks, sides = rankdata(found.scores), (found.labels, ~found.labels)
    beaten = np.empty(len(ranks))  # of each value: the share of the other side that it stands right to
    for side, other in (sides, sides[::-1]):
        beaten[side] = (ranks[side] - rankdata(found.scores[side])) / other.sum()
    beaten[sides[1]] = 1.0 - beaten[sides[1]]
    value = float(beaten[sides[0]].mean())
    held = [np.unique(home[side]).size for side in sides]
    if min(held) < 2:
        return Estimate(value, 0.0, 1.0)
    sums = [np.bincount(home, weights=(beaten - value) * side) / side.sum() for side in sides]
    variance = sum(count / (count - 1) * float(total @ total) for count, total in zip(held, sums, strict=True))
    variance += 2 * len(sums[0]) / (len(sums[0]) - 1) * float(sums[0] @ sums[1])
    if not (variance > 1e-12 and 0 < value < 1):
        return _unspread(value, min(held))
    half = Z95 * math.sqrt(variance) / (value * (1 - value))
    return Estimate(value, float(expit(logit(value) - half)), float(expit(logit(value) + half)))

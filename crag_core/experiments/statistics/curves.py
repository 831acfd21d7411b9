"""AUROC of scores.

Scores are higher where a question is likelier positive, such as answerable. A NaN stands for a question that was never
graded, and is left out. Of equal scores none comes first: a threshold takes all of them or none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crag_core.experiments.statistics.intervals import Z95, Estimate, proportion

Array = np.ndarray[Any, Any]
Values = Sequence[float] | Array
Labels = Sequence[bool] | Array


class Graded(NamedTuple):
    """The questions with a score, in order."""

    scores: Array
    labels: Array


def graded(scores: Values, labels: Labels) -> Graded:
    """ValueError: not as many labels as scores."""
    numbers, truths = np.asarray(scores, dtype=float), np.asarray(labels, dtype=bool)
    if numbers.ndim != 1 or numbers.shape != truths.shape:
        raise ValueError(f"expected as many labels as scores, found {truths.size} and {numbers.size}")
    kept = ~np.isnan(numbers)
    return Graded(numbers[kept], truths[kept])


def auroc(scores: Values, is_positive: Labels) -> Estimate | None:
    """The chance that a positive outscores a negative, ties counted half (Mann-Whitney); None without both kinds.

    The interval is DeLong's (1988, Biometrics 44), 95 %, on the logit scale so that it stays within 0..1; that of a
    sample without spread, such as one that is separated perfectly, is that of a share of the rarer kind.
    """
    from scipy.special import expit, logit
    from scipy.stats import rankdata

    numbers, labels = graded(scores, is_positive)
    ones, others = numbers[labels], numbers[~labels]
    fewest = min(len(ones), len(others))
    if not fewest:
        return None
    ranks = rankdata(numbers)
    above = (ranks[labels] - rankdata(ones)) / len(others)  # of each positive: the share of negatives below it
    below = 1.0 - (ranks[~labels] - rankdata(others)) / len(ones)
    value = float(above.mean())
    if fewest < 2:
        return Estimate(value, 0.0, 1.0)
    variance = float(above.var(ddof=1) / len(ones) + below.var(ddof=1) / len(others))
    if variance <= 1e-12 or not 0 < value < 1:
        around = proportion(value * fewest, fewest)
        return Estimate(value, around.low, around.high) if around else None
    half = Z95 * math.sqrt(variance) / (value * (1 - value))
    return Estimate(value, float(expit(logit(value) - half)), float(expit(logit(value) + half)))

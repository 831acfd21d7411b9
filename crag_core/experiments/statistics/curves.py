"""ROC, AUROC, precision-recall and risk-coverage curves of scores.

Scores are higher where a question is likelier positive, such as answerable. A NaN stands for a question that was never
graded, and is left out everywhere; `graded` says how many there are. Of equal scores none comes first: a threshold
takes all of them or none.
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
    """The questions with a score, in order; `kept` is True for each of these among all that were given."""

    scores: Array
    labels: Array
    kept: Array

    @property
    def dropped(self) -> int:
        return int((~self.kept).sum())


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """A point for every threshold, the highest first: the share of questions that it takes, and of these the share
    that is wrong. `area`: the mean risk over the questions, each with its own score for a threshold (AURC).
    """

    thresholds: Array
    coverage: Array
    risk: Array
    area: float


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of both kinds between `edges`, of which there is one more; a score on an edge counts above it."""

    edges: Array
    positive: Array
    negative: Array


def graded(scores: Values, labels: Labels) -> Graded:
    """ValueError: not as many labels as scores."""
    numbers, truths = np.asarray(scores, dtype=float), np.asarray(labels, dtype=bool)
    if numbers.ndim != 1 or numbers.shape != truths.shape:
        raise ValueError(f"expected as many labels as scores, found {truths.size} and {numbers.size}")
    kept = ~np.isnan(numbers)
    return Graded(numbers[kept], truths[kept], kept)


def unspread(value: float, count: int) -> Estimate:
    """For a sample without spread, such as one that is separated perfectly: another sample may have some."""
    around = proportion(value * count, count)
    return Estimate(value, around.low, around.high) if around else Estimate(value, 0.0, 1.0)


def roc(scores: Values, positive: Labels) -> tuple[Array, Array, Array] | None:
    """False and true positive rate at each threshold, from (0, 0) at infinity to (1, 1); None without both kinds."""
    from sklearn.metrics import roc_curve  # slow to import, and needed only where a curve is drawn

    found = graded(scores, positive)
    if len(np.unique(found.labels)) < 2:
        return None
    false_rate, true_rate, thresholds = roc_curve(found.labels, found.scores, drop_intermediate=False)
    return false_rate, true_rate, thresholds


def precision_recall(scores: Values, positive: Labels) -> tuple[Array, Array] | None:
    """Precision and recall at each threshold, the lowest first, then 1 and 0; None without positives."""
    from sklearn.metrics import precision_recall_curve

    found = graded(scores, positive)
    if not found.labels.any():
        return None
    precision, recall, _ = precision_recall_curve(found.labels, found.scores)
    return precision, recall


def average_precision(scores: Values, positive: Labels, seed: int, draws: int = 2000) -> Estimate | None:
    """The precision at every threshold, weighed by the recall that it adds; None without positives.

    The interval, 95 %, is that of `draws` samples of as many questions, drawn with replacement; of few questions it
    holds the truth less often than that (of 30: 9 times of 10). A sample without positives is passed over. What no
    sample changes has Wilson's interval for as many questions as are positive; one positive tells nothing, 0 to 1.
    """
    found = graded(scores, positive)
    positives = int(found.labels.sum())
    if not positives:
        return None
    order = np.lexsort((found.labels, -found.scores))
    labels, last, count = found.labels[order], _ends(found.scores[order]), len(order)
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(draws):
        weights = np.bincount(rng.integers(count, size=count), minlength=count)
        if (weights * labels).any():
            values.append(_average(np.cumsum(weights * labels)[last], np.cumsum(weights)[last]))
    value = _average(np.cumsum(labels)[last], last + 1)
    if positives < 2 or not values:
        return Estimate(value, 0.0, 1.0)
    low, high = np.quantile(values, (0.025, 0.975))
    return Estimate(value, float(low), float(high)) if low < high else unspread(value, positives)


def risk_coverage(scores: Values, is_right: Labels) -> RiskCoverage | None:
    """What is wrong among the questions that a threshold takes; None without questions.

    Geifman & El-Yaniv 2017, "Selective classification for deep neural networks"; the area is that of Geifman, Uziel &
    El-Yaniv 2019.
    """
    thresholds, hits, taken = _steps(graded(scores, is_right))
    if not taken.size:
        return None
    coverage, risk = taken / taken[-1], (taken - hits) / taken
    return RiskCoverage(thresholds, coverage, risk, float(np.diff(coverage, prepend=0.0) @ risk))


def histogram(scores: Values, positive: Labels, bins: int = 20) -> Histogram:
    """ValueError: a score outside 0..1."""
    found = graded(scores, positive)
    if found.scores.size and not 0 <= found.scores.min() <= found.scores.max() <= 1:
        raise ValueError(f"expected scores in 0..1, found {found.scores.min()} to {found.scores.max()}")
    edges = np.linspace(0.0, 1.0, bins + 1)
    sides = (found.scores[found.labels], found.scores[~found.labels])
    return Histogram(edges, *(np.histogram(side, edges)[0] for side in sides))


def _steps(found: Graded) -> tuple[Array, Array, Array]:
    """Every different score, the highest first; the positives, and the questions, that score as much or more."""
    order = np.argsort(-found.scores)
    last = _ends(found.scores[order])
    return found.scores[order][last], np.cumsum(found.labels[order])[last], last + 1


def _ends(ranked: Array) -> Array:
    """The places at which a run of equal scores ends."""
    return np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if ranked.size else np.arange(0)


def _average(hits: Array, taken: Array) -> float:
    return float(np.diff(hits, prepend=0) @ (hits / np.maximum(taken, 1)) / hits[-1])


# --- AUROC ------------------------------------------------------------------------------------------------------------


def auroc(scores: Values, is_positive: Labels, clusters: Sequence[int] | Array | None = None) -> Estimate | None:
    """The chance that a positive outscores a negative, ties counted half (Mann-Whitney); None without both kinds.

    The interval is DeLong's (1988, Biometrics 44), 95 %, on the logit scale so that it stays within 0..1. Values of one
    cluster, such as the passages of one question, are not taken for independent of each other (Obuchowski 1997,
    Biometrics 53).
    """
    from scipy.stats import rankdata  # slow to import, and needed only where questions are labelled

    found = graded(scores, is_positive)
    scored, positive = found.scores, found.labels
    sides = (positive, ~positive)
    if not positive.any() or positive.all():
        return None
    ranks = rankdata(scored)
    beaten = np.empty(len(scored))  # of each value: the share of the other side that it stands right to
    for side, other in (sides, sides[::-1]):
        beaten[side] = (ranks[side] - rankdata(scored[side])) / other.sum()
    beaten[~positive] = 1.0 - beaten[~positive]
    value = float(beaten[positive].mean())
    given = np.arange(len(found.kept)) if clusters is None else np.asarray(clusters)
    home = np.unique(given[found.kept], return_inverse=True)[1]
    return _around(value, beaten - value, sides, home)


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

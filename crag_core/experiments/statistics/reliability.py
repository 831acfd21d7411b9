"""Reliability of probabilities: bins, ECE and Brier score. NaN is left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crag_core.experiments.statistics.curves import Graded, Labels, Values, graded
from crag_core.experiments.statistics.intervals import Estimate, wilson


@dataclass(frozen=True)
class Bin:
    """Probabilities above `low` and up to `high`; 0 belongs to the first bin.

    `mean` is their mean and `share` what came true of them, with Wilson's 95 % interval; None in an empty bin.
    """

    low: float
    high: float
    count: int
    mean: float | None
    share: Estimate | None


def reliability(probabilities: Values, outcomes: Labels, bins: int = 10) -> tuple[Bin, ...]:
    """All bins of equal width from 0 to 1, the empty ones too.

    ValueError: a probability outside 0..1, not as many outcomes.
    """
    said = _said(probabilities, outcomes)
    edges = np.linspace(0.0, 1.0, bins + 1)
    place = np.searchsorted(edges[1:-1], said.scores)
    rows = []
    for number in range(bins):
        here = place == number
        count = int(here.sum())
        mean = float(said.scores[here].mean()) if count else None
        share = wilson(int(said.labels[here].sum()), count)
        rows.append(Bin(float(edges[number]), float(edges[number + 1]), count, mean, share))
    return tuple(rows)


def ece(probabilities: Values, outcomes: Labels, bins: int = 10) -> float | None:
    """The expected calibration error, 0 at best: how far mean and share of a bin lie apart, weighed by its count.

    Naeini et al. 2015, "Obtaining well calibrated probabilities using Bayesian binning"; as in Guo et al. 2017, "On
    calibration of modern neural networks", with bins of equal width. None without probabilities; ValueError as in
    `reliability`.
    """
    rows = reliability(probabilities, outcomes, bins)
    gaps = [row.count * abs(row.share.value - row.mean) for row in rows if row.share and row.mean is not None]
    return sum(gaps) / sum(row.count for row in rows) if gaps else None


def brier(probabilities: Values, outcomes: Labels) -> float | None:
    """The mean squared distance from what came true, 0 at best (Brier 1950, Monthly Weather Review 78).

    None without probabilities; ValueError: a probability outside 0..1, not as many outcomes.
    """
    said = _said(probabilities, outcomes)
    return float(((said.scores - said.labels) ** 2).mean()) if said.scores.size else None


def _said(probabilities: Values, outcomes: Labels) -> Graded:
    said = graded(probabilities, outcomes)
    outside = said.scores[(said.scores < 0) | (said.scores > 1)]
    if outside.size:
        raise ValueError(f"expected probabilities in 0..1, found {outside[0]}")
    return said

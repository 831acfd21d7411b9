"""Proportions with confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True)
class Estimate:
    """A figure, and the ends of its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.2f}–{self.high:.2f})"


Z95 = NormalDist().inv_cdf(0.975)
"""Standard errors on either side of the mean that hold 95 % of a normal distribution."""


def wilson(hits: float, count: int) -> Estimate | None:
    """`hits` of `count`, in 0..1, with the 95 % score interval; None of nothing (Wilson 1927, JASA 22).

    Hits may be a fraction, such as the chance to draw one among equals. ValueError: hits outside 0..count.
    """
    _check(hits, count)
    if not count:
        return None
    share, z2 = hits / count, Z95**2
    whole, middle = 1 + z2 / count, share + z2 / (2 * count)
    half = math.sqrt(z2 * (share * (1 - share) / count + z2 / (4 * count**2)))
    low = (middle - half) / whole if hits else 0.0  # which rounding misses
    high = (middle + half) / whole if hits < count else 1.0
    return Estimate(share, max(low, 0.0), min(high, 1.0))


def clopper_pearson_upper(hits: int, count: int, delta: float) -> float:
    """What the true share exceeds with probability `delta` at most; 1 where all are hits, and of nothing.

    The exact one-sided bound (Clopper & Pearson 1934, Biometrika 26). ValueError: hits outside 0..count, delta outside
    0..1.
    """
    from scipy.special import betainccinv  # a third of a second, which the first page of the application need not wait

    _check(hits, count)
    if not 0 < delta < 1:
        raise ValueError(f"expected a delta between 0 and 1, found {delta}")
    return float(betainccinv(hits + 1, count - hits, delta)) if hits < count else 1.0


def _check(hits: float, count: int) -> None:
    if not 0 <= hits <= count:
        raise ValueError(f"expected hits from 0 to the count of {count}, found {hits}")

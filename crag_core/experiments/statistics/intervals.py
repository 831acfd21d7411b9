"""Proportions with confidence intervals, and bootstrap intervals over questions.

The percentile bootstrap (Efron 1979, Annals of Statistics 7): as many questions as there are, drawn with replacement,
many times. Every figure is worked out from the same draws, so that configurations are compared question by question.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

Z95 = NormalDist().inv_cdf(0.975)
"""Standard errors on either side of the mean that hold 95 % of a normal distribution."""
DRAWS = 2000
_SEED = 4
_TOGETHER = 16
"""Draws worked out at a time: few enough to stay in the processor's cache."""


@dataclass(frozen=True)
class Estimate:
    """A figure, and the ends of its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.2f}–{self.high:.2f})"


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


def least_certified(count: int, confidence: float) -> float:
    """The smallest limit on a share that so many questions can show with that confidence, which they do without a hit.

    1 without a question.
    """
    return 1.0 - (1.0 - confidence) ** (1.0 / count) if count else 1.0


def _check(hits: float, count: int) -> None:
    if not 0 <= hits <= count:
        raise ValueError(f"expected hits from 0 to the count of {count}, found {hits}")


Array = NDArray[np.float64]


# --- bootstrap --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ratio:
    """Sum over sum: `parts` and `wholes` have one number a question; a mean has wholes of 1, and 0 where a question
    does not count."""

    parts: Array
    wholes: Array

    @property
    def value(self) -> float | None:
        """None of nothing."""
        whole = float(self.wholes.sum())
        return float(self.parts.sum()) / whole if whole else None

    @property
    def counted(self) -> int:
        """Questions that count."""
        return int(np.count_nonzero(self.wholes))


class Resamples:
    """The draws for sets of `count` questions; the same count and seed always give the same."""

    def __init__(self, count: int, draws: int = DRAWS, seed: int = _SEED) -> None:
        self._count, self._draws, self._seed = count, draws, seed
        self._known: WeakKeyDictionary[Ratio, Array] = WeakKeyDictionary()

    @cached_property
    def _times(self) -> NDArray[np.uint8]:
        """(draws, questions): how often each question is drawn; 256 times is beyond all chance."""
        random = np.random.default_rng(self._seed)
        times = np.empty((self._draws, self._count), dtype=np.uint8)
        for row in times:
            row[:] = np.bincount(random.integers(self._count, size=self._count), minlength=self._count)
        return times

    def estimate(self, ratio: Ratio) -> Estimate | None:
        """With its 95 % interval; None of nothing."""
        value = ratio.value
        return None if value is None else _around(value, self._drawn(ratio))

    def difference(self, one: Ratio, other: Ratio) -> Estimate | None:
        """`one` less `other`, on the same questions in the same order; None where one of them is of nothing."""
        if one.value is None or other.value is None:
            return None
        return _around(one.value - other.value, self._drawn(one) - self._drawn(other))

    def change(self, one: Ratio, other: Ratio) -> Estimate | None:
        """`one` over `other`, less 1: -0.2 is a fifth less; None where one is of nothing, or `other` is 0."""
        if one.value is None or not other.value:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = self._drawn(one) / self._drawn(other) - 1
        return _around(one.value / other.value - 1, drawn)

    def quantile(self, values: Array, share: float) -> Estimate | None:
        """Of the numbers that are not NaN, the smallest that `share` of them do not exceed; None of nothing."""
        known = np.flatnonzero(~np.isnan(values))
        if not len(known):
            return None
        order = known[np.argsort(values[known], kind="stable")]
        places = np.concatenate([_places(times[:, order], share) for times in self._some()])
        whole = order[max(int(np.ceil(share * len(order))), 1) - 1]
        return _around(float(values[whole]), values[order[places]])

    def _drawn(self, ratio: Ratio) -> Array:
        """The ratio of every draw, worked out once."""
        if ratio not in self._known:
            both = np.stack((ratio.parts, ratio.wholes), axis=1)
            parts, wholes = np.concatenate([times.astype(np.float64) @ both for times in self._some()]).T
            with np.errstate(divide="ignore", invalid="ignore"):
                self._known[ratio] = parts / wholes
        return self._known[ratio]

    def _some(self) -> Iterator[NDArray[np.uint8]]:
        for start in range(0, self._draws, _TOGETHER):
            yield self._times[start : start + _TOGETHER]


def _places(times: NDArray[np.uint8], share: float) -> NDArray[np.intp]:
    """Where in order the quantile lies in each draw, but for draws with none of it."""
    sums = np.cumsum(times, axis=1, dtype=np.int64)
    sums = sums[sums[:, -1] > 0]
    found: NDArray[np.intp] = (sums >= np.ceil(share * sums[:, -1:]).clip(min=1)).argmax(axis=1)
    return found


def _around(value: float, drawn: Array) -> Estimate:
    """Draws in which nothing counts say nothing."""
    sound = drawn[np.isfinite(drawn)]
    low, high = np.quantile(sound, (0.025, 0.975)) if len(sound) else (value, value)
    return Estimate(value, float(low), float(high))

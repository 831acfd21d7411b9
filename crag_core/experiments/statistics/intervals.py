"""Proportions with exact confidence intervals, and bootstrap intervals over questions.

The percentile bootstrap (Efron 1979, Annals of Statistics 7): as many questions as there are, drawn with replacement,
many times. Every figure is worked out from the same draws, so that configurations are compared question by question.
A resample cannot tell where all questions say the same, or where there are fewer than `FEWEST`: then the interval of a
bounded figure is exact, and that of an unbounded one, such as seconds, is what was seen, or infinite of so few.
"""

from __future__ import annotations

import math
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
FEWEST = 6
"""Of fewer, the least and the greatest hold the median between them in less than 95 % of samples."""


@dataclass(frozen=True)
class Estimate:
    """A figure, and the ends of its interval: infinite where so few questions do not tell them."""

    value: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        """Whether there is one to show: no end is infinite, and not all questions say the same."""
        return math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.2f}–{self.high:.2f})"


def proportion(hits: float, count: int) -> Estimate | None:
    """`hits` of `count`, with the exact 95 % interval; None of nothing (Clopper & Pearson 1934, Biometrika 26).

    Hits may be a fraction, such as the chance to draw one among equals. ValueError: hits outside 0..count.
    """
    from scipy.special import betaincinv  # a third of a second, which the first page of the application need not wait

    _check(hits, count)
    if not count:
        return None
    low = float(betaincinv(hits, count - hits + 1, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 1, count - hits, 0.975)) if hits < count else 1.0
    return Estimate(hits / count, low, high)


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
    does not count. The ratio of every question lies in `least`..`most`."""

    parts: Array
    wholes: Array
    least: float = -math.inf
    most: float = math.inf

    @property
    def value(self) -> float | None:
        """None of nothing."""
        whole = float(self.wholes.sum())
        return float(self.parts.sum()) / whole if whole else None

    @property
    def counted(self) -> int:
        return int(np.count_nonzero(self.wholes))

    @property
    def is_count(self) -> bool:
        """Whether it is a share of questions, each of which is a hit or none."""
        is_share = (self.least, self.most) == (0.0, 1.0)
        return is_share and bool((self.wholes <= 1).all() and np.isin(self.parts, (0.0, 1.0)).all())

    @property
    def is_constant(self) -> bool:
        """Whether all questions that count have the same ratio, but for rounding."""
        value = self.value
        return value is not None and bool(np.allclose(self.parts, value * self.wholes, rtol=0, atol=1e-12))

    def less(self, other: Ratio) -> Ratio:
        """The difference, where the same questions count in both."""
        return Ratio(self.parts - other.parts, self.wholes, self.least - other.most, self.most - other.least)


class Resamples:
    """The draws for sets of `count` questions; the same count always gives the same."""

    def __init__(self, count: int, draws: int = DRAWS) -> None:
        self._count, self._draws = count, draws
        self._known: WeakKeyDictionary[Ratio, Array] = WeakKeyDictionary()

    @cached_property
    def times(self) -> NDArray[np.uint8]:
        """(draws, questions): how often each question is drawn; 256 times is beyond all chance."""
        random = np.random.default_rng(_SEED)
        times = np.empty((self._draws, self._count), dtype=np.uint8)
        for row in times:
            row[:] = np.bincount(random.integers(self._count, size=self._count), minlength=self._count)
        return times

    def estimate(self, ratio: Ratio) -> Estimate | None:
        """With its 95 % interval; None of nothing."""
        value = ratio.value
        if value is None:
            return None
        if ratio.is_count:
            return proportion(float(ratio.parts.sum()), ratio.counted)
        drawn = self._drawn(ratio)
        return _untold(value, ratio) or _around(value, drawn[np.isfinite(drawn)])

    def difference(self, one: Ratio, other: Ratio) -> Estimate | None:
        """`one` less `other`, on the same questions in the same order; None where one of them is of nothing."""
        if one.value is None or other.value is None:
            return None
        value, is_paired = one.value - other.value, bool((one.wholes == other.wholes).all())
        if is_paired and (untold := _untold(value, one.less(other))):
            return untold
        drawn = self._drawn(one) - self._drawn(other)
        sound = drawn[np.isfinite(drawn)]  # draws in which nothing counts say nothing
        are_few = min(one.counted, other.counted) < FEWEST
        if not is_paired and (are_few or not len(sound) or np.ptp(sound) < 1e-12):
            found, first = self.estimate(one), self.estimate(other)  # then the ends of both tell
            return found and first and Estimate(value, found.low - first.high, found.high - first.low)
        found = _around(value, sound)
        return _no_narrower(found, one, other) if is_paired and one.is_count and other.is_count else found

    def _drawn(self, ratio: Ratio) -> Array:
        """The ratio of every draw, worked out once."""
        if ratio not in self._known:
            both = np.stack((ratio.parts, ratio.wholes), axis=1)
            parts, wholes = np.array([row.astype(np.float64) @ both for row in self.times]).T
            with np.errstate(divide="ignore", invalid="ignore"):
                self._known[ratio] = parts / wholes
        return self._known[ratio]


def _around(value: float, drawn: Array) -> Estimate:
    """Draws in which nothing counts say nothing."""
    low, high = np.quantile(drawn, (0.025, 0.975)) if len(drawn) else (value, value)
    return Estimate(value, float(low), float(high))


def _untold(value: float, ratio: Ratio) -> Estimate | None:
    """Where draws cannot tell the interval; None: they can.

    Where n questions all say the same, a share of 0.025^(1/n) of all questions at least does, and the others may lie
    anywhere between the bounds. At 0 and 1 of a share that is `proportion`; of paired differences it is the sign test.
    """
    is_constant, are_few = ratio.is_constant, ratio.counted < FEWEST
    if not (is_constant or are_few):
        return None
    alike = 0.025 ** (1 / ratio.counted) if is_constant else 0.0
    ends = (end if are_few or math.isfinite(end) else value for end in (ratio.least, ratio.most))
    low, high = (alike * value + (1 - alike) * end for end in ends)
    return Estimate(value, low, high)


def _no_narrower(found: Estimate, one: Ratio, other: Ratio) -> Estimate:
    """Than the exact interval of those questions that differ: draws of few of them promise too much."""
    apart = one.parts - other.parts
    differ = int(np.count_nonzero(apart))
    ahead = proportion(int((apart > 0).sum()), differ)
    if ahead is None:
        return found
    low, high = ((2 * end - 1) * differ / one.counted for end in (ahead.low, ahead.high))
    return Estimate(found.value, min(found.low, low), max(found.high, high))

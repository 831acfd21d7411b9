"""Watches a rate while data come in: an alarm that is valid whenever one looks, and drift of scores without labels.

The alarm tests by betting (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting",
JRSS B 86): for each bet the wealth, multiplied by 1 + bet x (hit - limit) at every label, is a supermartingale while
the rate does not exceed the limit, and so is the mean over bets. By Ville's inequality (1939) its greatest value ever
reaches 1 / alpha with a probability of alpha at most, however often and whenever one looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALPHA = 0.05
LEAST_SCORES = 50
"""Scores on either side without which nothing is said of drift."""
BINS = 20
_BETS = 19


@dataclass(frozen=True)
class Alarm:
    """`evidence` is the greatest so far against "the rate does not exceed `limit`", of `count` labels."""

    limit: float
    count: int
    hits: int
    evidence: float

    @property
    def is_raised(self) -> bool:
        return self.evidence >= 1.0 / ALPHA


def watch_rate(hits: Sequence[bool], limit: float) -> Alarm:
    """Of hits in the order in which they came. ValueError: a limit outside 0..1."""
    if not 0.0 < limit < 1.0:
        raise ValueError(f"expected a limit between 0 and 1, found {limit}")
    seen = np.asarray(hits, dtype=float)
    bets = np.arange(1, _BETS + 1) / (_BETS + 1) / limit
    wealth = np.logaddexp.reduce(np.cumsum(np.log1p((seen[:, None] - limit) * bets), axis=0), axis=1) - math.log(_BETS)
    best = float(np.exp(np.minimum(wealth.max(initial=0.0), 700.0)))
    return Alarm(limit, len(seen), int(seen.sum()), best)


@dataclass(frozen=True)
class Drift:
    """`distance`: the greatest difference of the two shares below a score; chance alone passes `chance` in 1 of 20."""

    before: int
    now: int
    distance: float
    chance: float

    @property
    def is_beyond_chance(self) -> bool:
        return self.distance > self.chance


def binned(scores: Sequence[float] | NDArray[Any]) -> tuple[int, ...]:
    """How many of the scores, from 0 to 1, lie in each of `BINS` bins."""
    known = np.asarray(scores, dtype=float)
    counts, _ = np.histogram(known[np.isfinite(known)], BINS, (0.0, 1.0))
    return tuple(counts.tolist())


def drift(before: Sequence[int], now: Sequence[int]) -> Drift | None:
    """Two-sample Kolmogorov-Smirnov test of counts by bin, conservative for that (Smirnov 1939); None of too few."""
    first, second = sum(before), sum(now)
    if min(first, second) < LEAST_SCORES or len(before) != len(now):
        return None
    apart = np.abs(np.cumsum(before) / first - np.cumsum(now) / second)
    chance = math.sqrt(-math.log(ALPHA / 2) / 2 * (first + second) / (first * second))
    return Drift(first, second, float(apart.max()), chance)

"""Intervals of shares, and by resampling: against SciPy's, and as often around the truth as they promise."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom, binomtest

from crag_core.experiments.statistics.intervals import (
    Z95,
    Array,
    Estimate,
    Ratio,
    Resamples,
    clopper_pearson_upper,
    proportion,
)

COUNTS = [(hits, count) for count in (1, 3, 57, 1000) for hits in {0, 1, count // 2, count - 1, count}]
MANY = 20_000
"""Draws that leave little to chance, so that two ways to draw can be compared."""


def known(told: Estimate | None) -> Estimate:
    assert told is not None
    return told


# --- shares -----------------------------------------------------------------------------------------------------------


def test_intervals_and_bounds_are_those_of_scipy() -> None:
    for counts in COUNTS:
        told, theirs = known(proportion(*counts)), binomtest(*counts).proportion_ci(0.95, "exact")
        assert (told.value, told.low, told.high) == pytest.approx(
            (counts[0] / counts[1], theirs.low, theirs.high), abs=1e-9
        )
        for delta in (0.5, 0.05, 0.001):
            theirs = binomtest(*counts, alternative="less").proportion_ci(1 - delta, "exact")
            assert clopper_pearson_upper(*counts, delta) == pytest.approx(theirs.high, abs=1e-9), (counts, delta)


@pytest.mark.parametrize("truth", [0.01, 0.05, 0.2, 0.5, 0.9])
def test_upper_bound_fails_no_more_often_than_it_says(truth: float) -> None:
    for count, delta in product((5, 40, 200), (0.05, 0.2)):
        below = [hits for hits in range(count + 1) if clopper_pearson_upper(hits, count, delta) < truth]
        assert float(binom.pmf(below, count, truth).sum()) <= delta + 1e-12


def test_shares_at_their_ends() -> None:
    assert clopper_pearson_upper(0, 59, 0.05) == pytest.approx(1 - 0.05 ** (1 / 59), abs=1e-12)
    assert known(proportion(0, 10)).low == 0.0 and known(proportion(10, 10)).high == 1.0
    assert proportion(0, 0) is None and clopper_pearson_upper(0, 0, 0.05) == clopper_pearson_upper(7, 7, 0.05) == 1.0
    assert known(proportion(2, 10)).low < known(proportion(2.5, 10)).low < known(proportion(3, 10)).low
    assert str(proportion(8, 10)) == "0.800 (0.44–0.97)" and pytest.approx(1.959963984540054, abs=1e-12) == Z95


@pytest.mark.parametrize(("hits", "count"), [(-1, 10), (11, 10), (1, 0), (0, -1), (math.nan, 10)])
def test_hits_that_cannot_be_are_refused(hits: int, count: int) -> None:
    for interval in (proportion, lambda *counts: clopper_pearson_upper(*counts, 0.5)):
        with pytest.raises(ValueError, match=f"count of {count}, found {hits}"):
            interval(hits, count)


@pytest.mark.parametrize("delta", [0.0, 1.0, 95, math.nan])
def test_a_delta_that_cannot_be_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match=f"between 0 and 1, found {delta}"):
        clopper_pearson_upper(1, 10, delta)


# --- resampling, against SciPy ----------------------------------------------------------------------------------------


def drawn(seed: int, count: int = 80) -> tuple[Ratio, Ratio]:
    """Two ratios over the same questions that go together; every question has a whole of 0 to 6."""
    random = np.random.default_rng(seed)
    wholes = random.integers(0, 7, count).astype(float)
    hard = random.random(count)
    other = np.clip(wholes + random.integers(-1, 2, count), 0, None)
    parts = random.binomial(wholes.astype(int), hard).astype(float)
    return Ratio(parts, wholes), Ratio(random.binomial(other.astype(int), hard**0.5).astype(float), other)


def mean_of(values: Array) -> Ratio:
    return Ratio(values, np.ones(len(values)))


def assert_alike(found: Estimate | None, statistic: Callable[..., Array], *data: Array) -> None:
    """With each question drawn with all its numbers."""
    theirs = stats.bootstrap(
        data, statistic, paired=True, vectorized=True, n_resamples=MANY, batch=1000, method="percentile", rng=7
    ).confidence_interval
    near = 0.03 * (theirs.high - theirs.low)
    told = known(found)
    assert (told.low, told.high) == (pytest.approx(theirs.low, abs=near), pytest.approx(theirs.high, abs=near))
    assert told.value == pytest.approx(statistic(*data, axis=0))


@pytest.mark.parametrize("seed", range(3))
def test_intervals_are_those_of_scipy_on_paired_questions(seed: int) -> None:
    one, other = drawn(seed)
    resamples = Resamples(80, MANY)

    def ratio(parts: Array, wholes: Array, axis: int) -> Array:
        return np.asarray(parts.sum(axis) / wholes.sum(axis))

    both = (one.parts, one.wholes, other.parts, other.wholes)
    assert_alike(resamples.estimate(one), ratio, one.parts, one.wholes)
    assert_alike(
        resamples.difference(one, other), lambda p, w, q, v, axis: ratio(p, w, axis) - ratio(q, v, axis), *both
    )


def test_questions_are_paired() -> None:
    """What makes a question hard for one makes it hard for the other, and says nothing about their difference."""
    random = np.random.default_rng(5)
    hard = random.normal(0, 10, 200)
    one, other = mean_of(hard + random.normal(0, 0.1, 200)), mean_of(hard)
    found, alone = known(Resamples(200).difference(one, other)), known(Resamples(200).estimate(one))
    assert found.high - found.low < (alone.high - alone.low) / 20


@pytest.mark.exhaustive
def test_a_difference_holds_the_truth_as_often_as_promised() -> None:
    random, resamples = np.random.default_rng(12), Resamples(120, 500)
    held, surely = 0, 0
    for _ in range(1000):
        hard = random.random(120)
        one = mean_of((random.random(120) < hard).astype(float))
        other = mean_of((random.random(120) < np.clip(hard, 0.1, 1)).astype(float))
        found = known(resamples.difference(one, other))
        held += found.low <= -0.005 <= found.high  # the mean of what clipping adds: 0.1² / 2
        surely += found.low > 0
    assert 0.91 <= held / 1000 <= 0.98 and surely / 1000 < 0.03


# --- little to go by --------------------------------------------------------------------------------------------------


def hits(*of: int) -> Ratio:
    """A share of questions."""
    return Ratio(np.array(of, dtype=float), np.ones(len(of)), 0.0, 1.0)


@pytest.mark.parametrize(("hit", "of"), [(0, 1), (3, 3), (2, 3), (0, 11), (11, 11), (7, 49)])
def test_a_share_of_questions_has_the_exact_interval_whatever_it_is(hit: int, of: int) -> None:
    """A resample of 3 of 3 says 100 % to 100 %."""
    assert Resamples(of).estimate(hits(*[1] * hit, *[0] * (of - hit))) == proportion(hit, of)


@pytest.mark.parametrize(
    ("differ", "of"), [(0, 3), (3, 3), (5, 5), (6, 6), (4, 21), (5, 21), (6, 21), (0, 49), (40, 49)]
)
def test_a_gain_of_shares_is_certain_where_a_sign_test_says_so_too(differ: int, of: int) -> None:
    found = known(Resamples(of).difference(hits(*[1] * differ, *[0] * (of - differ)), hits(*[0] * of)))
    assert found.value == differ / of and -1.0 <= found.low < found.high <= 1.0
    assert (found.low > 0) == (differ > 0 and stats.binomtest(differ, differ).pvalue < 0.05)


def test_scores_that_are_all_alike_leave_the_room_of_the_others() -> None:
    """With at least 1 - 0.025^(1/n) of all questions somewhere else between 0 and 1."""
    room = 1 - 0.025 ** (1 / 11)
    for score in (0.0, 0.3, 1.0):
        found = known(Resamples(11).estimate(Ratio(np.full(11, score), np.ones(11), 0.0, 1.0)))
        assert (found.low, found.high) == pytest.approx((score * (1 - room), score * (1 - room) + room))
    one, other = (Ratio(np.full(11, score), np.ones(11), 0.0, 1.0) for score in (0.5, 0.25))
    assert known(Resamples(11).difference(one, other)).low == pytest.approx(0.25 * (1 - room) - room)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_few_questions_tell_no_interval_of_what_has_no_bounds(count: int) -> None:
    values = np.arange(1.0, count + 1)
    one, more, resamples = mean_of(values), mean_of(values + 1), Resamples(count)
    for found in (resamples.estimate(one), resamples.difference(more, one)):
        assert (known(found).low, known(found).high) == (-np.inf, np.inf) and not known(found).has_interval
    bounded = known(resamples.estimate(Ratio(values / 10, np.ones(count), 0.0, 1.0)))
    assert 0.0 <= bounded.low < 0.1 and bounded.high > 0.5


def test_nothing_that_counts_has_no_estimate() -> None:
    nothing, something, resamples = Ratio(np.zeros(5), np.zeros(5)), mean_of(np.ones(5)), Resamples(5)
    assert (nothing.value, nothing.counted, resamples.estimate(nothing)) == (None, 0, None)
    gain = resamples.difference
    assert gain(nothing, something) is gain(something, nothing) is gain(nothing, nothing) is None


def test_numbers_without_bounds_that_never_change_leave_no_room() -> None:
    tenth, tenths = Ratio(np.ones(300), np.full(300, 10.0)), mean_of(np.full(300, 0.1))
    found = known(Resamples(300).estimate(tenths))
    assert found == Estimate(*[pytest.approx(0.1, rel=1e-12)] * 3) and not found.has_interval
    apart = known(Resamples(300).difference(tenth, tenths))
    assert max(abs(apart.low), abs(apart.high)) < 1e-12, "1 of 10 and 0.1 of 1 differ by rounding alone"


# --- the same draws ---------------------------------------------------------------------------------------------------


def test_gains_are_the_same_every_time_and_their_own_opposite() -> None:
    one, other = drawn(3)
    resamples = Resamples(80)
    for same in (one, Ratio(one.parts.copy(), one.wholes.copy())):
        assert resamples.difference(one, same) == Estimate(0.0, 0.0, 0.0)
    found, turned = known(resamples.difference(one, other)), known(resamples.difference(other, one))
    assert found == Resamples(80).difference(one, other)
    assert (found.value, found.low, found.high) == pytest.approx((-turned.value, -turned.high, -turned.low))

"""Intervals by resampling: against SciPy's percentile bootstrap, and as often around the truth as they promise."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from crag_core.experiments.statistics.intervals import DRAWS, Array, Estimate, Ratio, Resamples

MANY = 20_000
"""Draws that leave little to chance, so that two ways to draw can be compared."""


def drawn(seed: int, count: int = 80) -> tuple[Ratio, Ratio]:
    """Two ratios over the same questions that go together; every question has a whole of 0 to 6."""
    random = np.random.default_rng(seed)
    wholes = random.integers(0, 7, count).astype(float)
    hard = random.random(count)
    other = np.clip(wholes + random.integers(-1, 2, count), 0, None)
    return Ratio(random.binomial(wholes.astype(int), hard).astype(float), wholes), Ratio(
        random.binomial(other.astype(int), hard**0.5).astype(float), other
    )


def mean_of(values: Array) -> Ratio:
    return Ratio(values, np.ones(len(values)))


def by_scipy(statistic: Callable[..., Array], *data: Array) -> tuple[float, float]:
    """The ends of its interval, each question drawn with all its numbers."""
    found = stats.bootstrap(
        data, statistic, paired=True, vectorized=True, n_resamples=MANY, batch=1000, method="percentile", rng=7
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def assert_alike(found: Estimate | None, low: float, high: float) -> None:
    assert found is not None
    near = 0.03 * (high - low)
    assert (found.low, found.high) == (pytest.approx(low, abs=near), pytest.approx(high, abs=near))


# --- against SciPy --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_interval_of_a_ratio_is_that_of_scipy(seed: int) -> None:
    one, _ = drawn(seed)
    low, high = by_scipy(lambda parts, wholes, axis: parts.sum(axis) / wholes.sum(axis), one.parts, one.wholes)
    found = Resamples(80, MANY).estimate(one)
    assert_alike(found, low, high)
    assert found is not None and found.value == one.parts.sum() / one.wholes.sum()


@pytest.mark.parametrize("seed", range(4))
def test_the_interval_of_a_mean_is_that_of_scipy(seed: int) -> None:
    values = np.random.default_rng(seed).exponential(size=50)
    low, high = by_scipy(lambda sample, axis: sample.mean(axis), values)
    assert_alike(Resamples(50, MANY).estimate(mean_of(values)), low, high)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["difference", "change"])
def test_gains_are_those_of_scipy_on_paired_questions(seed: int, kind: str) -> None:
    one, other = drawn(seed)

    def gain(p1: Array, w1: Array, p2: Array, w2: Array, axis: int) -> Array:
        first, second = p1.sum(axis) / w1.sum(axis), p2.sum(axis) / w2.sum(axis)
        return first - second if kind == "difference" else first / second - 1

    low, high = by_scipy(gain, one.parts, one.wholes, other.parts, other.wholes)
    found = getattr(Resamples(80, MANY), kind)(one, other)
    assert_alike(found, low, high)
    assert found.value == pytest.approx(gain(one.parts, one.wholes, other.parts, other.wholes, axis=0))


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_the_interval_of_a_quantile_is_that_of_scipy(share: float) -> None:
    values = np.random.default_rng(3).lognormal(size=300)
    low, high = by_scipy(lambda sample, axis: np.quantile(sample, share, method="inverted_cdf", axis=axis), values)
    assert_alike(Resamples(300, MANY).quantile(values, share), low, high)


def test_questions_are_paired() -> None:
    """What makes a question hard for one makes it hard for the other, and says nothing about their difference."""
    random = np.random.default_rng(5)
    hard = random.normal(0, 10, 200)
    one, other = mean_of(hard + random.normal(0, 0.1, 200)), mean_of(hard)
    found, alone = Resamples(200).difference(one, other), Resamples(200).estimate(one)
    assert found is not None and alone is not None
    assert found.high - found.low < (alone.high - alone.low) / 20


# --- coverage -------------------------------------------------------------------------------------------------------

TRUTH = 0.35


def shares(random: np.random.Generator, count: int) -> Ratio:
    return mean_of(random.binomial(1, TRUTH, count).astype(float))


def clusters(random: np.random.Generator, count: int) -> Ratio:
    """Sentences that stand and fall with their question."""
    wholes = random.integers(0, 8, count)
    of_each = random.beta(TRUTH, 1 - TRUTH, count)
    return Ratio(random.binomial(wholes, of_each).astype(float), wholes.astype(float))


def some(random: np.random.Generator, count: int) -> Ratio:
    counts = random.binomial(1, 0.6, count).astype(float)
    return Ratio(random.exponential(TRUTH, count) * counts, counts)


@pytest.mark.slow
@pytest.mark.parametrize("make", [shares, clusters, some])
def test_the_truth_lies_within_as_often_as_promised(make: Callable[[np.random.Generator, int], Ratio]) -> None:
    random, resamples = np.random.default_rng(11), Resamples(120)
    found = [resamples.estimate(make(random, 120)) for _ in range(1000)]
    held = np.mean([one is not None and one.low <= TRUTH <= one.high for one in found])
    assert 0.91 <= held <= 0.98


@pytest.mark.slow
def test_a_difference_holds_the_truth_as_often_as_promised() -> None:
    random, resamples = np.random.default_rng(12), Resamples(120)
    held, surely = 0, 0
    for _ in range(1000):
        hard = random.random(120)
        one = mean_of((random.random(120) < hard).astype(float))
        other = mean_of((random.random(120) < np.clip(hard, 0.1, 1)).astype(float))
        found = resamples.difference(one, other)
        assert found is not None
        held += found.low <= -0.005 <= found.high  # the mean of what clipping adds: 0.1² / 2
        surely += found.low > 0
    assert 0.91 <= held / 1000 <= 0.98 and surely / 1000 < 0.03


@pytest.mark.slow
def test_the_median_is_held_as_often_as_promised() -> None:
    random, resamples = np.random.default_rng(13), Resamples(120)
    found = [resamples.quantile(random.exponential(size=120), 0.5) for _ in range(1000)]
    held = np.mean([one is not None and one.low <= np.log(2) <= one.high for one in found])
    assert 0.91 <= held <= 0.98


# --- quantiles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 19, 20, 21, 100, 333])
def test_a_quantile_is_that_of_numpy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count).round(1)  # with ties
    for share in (0.0, 0.05, 0.25, 0.5, 0.9, 0.95, 0.99, 1.0):
        found = Resamples(count, 10).quantile(values, share)
        assert found is not None and found.value == np.quantile(values, share, method="inverted_cdf"), share
        assert not found.has_interval or values.min() <= found.low <= found.high <= values.max(), share


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("share", [0.5, 0.95])
@pytest.mark.parametrize("known", [100, 60])
def test_every_draw_has_the_quantile_of_numpy(known: int, share: float, seed: int) -> None:
    """Of the numbers that it has; a draw that has none is left out."""
    values = np.random.default_rng(1).normal(size=100)
    values[known:] = np.nan
    random = np.random.default_rng(seed)
    samples = [values[random.integers(100, size=100)] for _ in range(64)]
    there = [sample[~np.isnan(sample)] for sample in samples]
    quantiles = [float(np.quantile(sample, share, method="inverted_cdf")) for sample in there if len(sample)]
    found = Resamples(100, 64, seed).quantile(values, share)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(quantiles, (0.025, 0.975))))


def test_numbers_that_are_not_there_are_left_out() -> None:
    values = np.full(12, np.nan)
    values[::2] = 6.0, 1.0, 2.0, 5.0, 3.0, 4.0
    found = Resamples(12).quantile(values, 0.5)
    assert found is not None and found.value == 3.0
    assert 1.0 <= found.low < found.high <= 6.0
    assert Resamples(12).quantile(np.full(12, np.nan), 0.5) is None


# --- little to go by ------------------------------------------------------------------------------------------------


def hits(*of: int) -> Ratio:
    """A share of questions."""
    return Ratio(np.array(of, dtype=float), np.ones(len(of)), 0.0, 1.0)


ALL, NONE = (hits(*[1] * 11), hits(*[0] * 11))


@pytest.mark.parametrize(
    "share", ["0 of 1", "1 of 1", "3 of 3", "2 of 3", "0 of 11", "11 of 11", "7 of 49", "48 of 49"]
)
def test_a_share_of_questions_has_the_exact_interval_whatever_it_is(share: str) -> None:
    """A resample of 3 of 3 says 100 % to 100 %."""
    hit, of = map(int, share.split(" of "))
    theirs = stats.binomtest(hit, of).proportion_ci(0.95, "exact")
    found = Resamples(of).estimate(hits(*[1] * hit, *[0] * (of - hit)))
    assert found is not None and found.value == hit / of
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert found.low < found.high and (found.low, found.high) != (0.0, 1.0)


@pytest.mark.parametrize(
    ("differ", "of"), [(0, 3), (3, 3), (5, 5), (6, 6), (4, 21), (5, 21), (6, 21), (0, 49), (40, 49)]
)
def test_a_gain_of_shares_is_certain_where_a_sign_test_says_so_too(differ: int, of: int) -> None:
    found = Resamples(of).difference(hits(*[1] * differ, *[0] * (of - differ)), hits(*[0] * of))
    assert found is not None and found.value == differ / of and -1.0 <= found.low < found.high <= 1.0
    assert (found.low > 0) == (differ > 0 and stats.binomtest(differ, differ).pvalue < 0.05)


def test_scores_that_are_all_alike_leave_the_room_of_the_others() -> None:
    """With at least 1 - 0.025^(1/n) of all questions somewhere else between 0 and 1."""
    room = 1 - 0.025 ** (1 / 11)
    for score in (0.0, 0.3, 1.0):
        found = Resamples(11).estimate(Ratio(np.full(11, score), np.ones(11), 0.0, 1.0))
        assert found is not None
        assert (found.low, found.high) == pytest.approx((score * (1 - room), score * (1 - room) + room))
    one, other = (Ratio(np.full(11, score), np.ones(11), 0.0, 1.0) for score in (0.5, 0.25))
    gain = Resamples(11).difference(one, other)
    assert gain is not None and gain.low == pytest.approx(0.25 * (1 - room) - room)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_few_questions_tell_no_interval_of_what_has_no_bounds(count: int) -> None:
    values = np.arange(1.0, count + 1)
    one, more, resamples = mean_of(values), mean_of(values + 1), Resamples(count)
    found = resamples.estimate(one), resamples.difference(more, one), resamples.quantile(values, 0.5)
    assert all(each and (each.low, each.high) == (-np.inf, np.inf) and not each.has_interval for each in found)
    scores = Ratio(values / 10, np.ones(count), 0.0, 1.0)
    bounded = resamples.estimate(scores)
    assert bounded is not None and 0.0 <= bounded.low < 0.1 and bounded.high > 0.5


@pytest.mark.parametrize(
    ("count", "share", "tells"), [(5, 0.5, False), (6, 0.5, True), (58, 0.95, False), (59, 0.95, True)]
)
def test_a_quantile_has_an_interval_where_the_least_and_the_greatest_may_hold_it(
    count: int, share: float, tells: bool
) -> None:
    found = Resamples(count).quantile(np.arange(float(count)), share)
    assert found is not None and found.has_interval is tells


def test_a_change_that_no_draw_tells_has_the_room_of_the_gain() -> None:
    fewer, gain = Resamples(11).change(NONE, ALL), Resamples(11).difference(NONE, ALL)
    assert fewer is not None and gain is not None and (fewer.value, fewer.low) == (-1.0, -1.0)
    assert fewer.high == gain.high < 0


def test_nothing_that_counts_has_no_estimate() -> None:
    nothing, something, resamples = Ratio(np.zeros(5), np.zeros(5)), mean_of(np.ones(5)), Resamples(5)
    assert nothing.value is None and nothing.counted == 0
    assert resamples.estimate(nothing) is None
    for gain in (resamples.difference, resamples.change):
        assert gain(nothing, something) is gain(something, nothing) is gain(nothing, nothing) is None
    assert resamples.change(something, mean_of(np.zeros(5))) is None, "nothing can be said in relation to 0"


def test_a_ratio_counts_the_questions_with_a_part_in_it() -> None:
    ratio = Ratio(np.array([1.0, 0.0, 0.0, 3.0]), np.array([2.0, 0.0, 5.0, 3.0]))
    assert (ratio.value, ratio.counted) == (0.4, 3)


def test_numbers_without_bounds_that_never_change_leave_no_room() -> None:
    tenths = mean_of(np.full(300, 0.1))
    found = Resamples(300).estimate(tenths)
    assert found == Estimate(*[pytest.approx(0.1, rel=1e-12)] * 3) and not found.has_interval


# --- the same draws -------------------------------------------------------------------------------------------------


def test_a_configuration_gains_exactly_nothing_over_itself() -> None:
    one, _ = drawn(1)
    resamples = Resamples(80)
    again = Ratio(one.parts.copy(), one.wholes.copy())
    for same in (one, again):
        assert resamples.difference(one, same) == resamples.change(one, same) == Estimate(0.0, 0.0, 0.0)


def test_equal_shares_of_other_numbers_are_no_certain_gain() -> None:
    """1 of 10 and 0.1 of 1 differ in no draw by more than rounding leaves."""
    tenth, tenths = Ratio(np.ones(300), np.full(300, 10.0)), mean_of(np.full(300, 0.1))
    found = Resamples(300).difference(tenth, tenths)
    assert found is not None and max(abs(found.low), abs(found.high)) < 1e-12


def test_draws_are_the_same_every_time() -> None:
    one, other = drawn(2)
    assert Resamples(80).difference(one, other) == Resamples(80).difference(one, other)
    assert Resamples(80, seed=1).estimate(one) != Resamples(80, seed=2).estimate(one)
    assert Resamples(80).estimate(one) == Resamples(80, DRAWS).estimate(one)


def test_one_less_the_other_is_the_opposite_of_the_other_less_the_one() -> None:
    one, other = drawn(3)
    found, turned = Resamples(80).difference(one, other), Resamples(80).difference(other, one)
    assert found is not None and turned is not None
    assert (found.value, found.low, found.high) == pytest.approx((-turned.value, -turned.high, -turned.low))


# --- many questions -------------------------------------------------------------------------------------------------


def test_ten_thousand_questions_fit_into_little_memory() -> None:
    values = np.random.default_rng(4).random(10_000)
    resamples = Resamples(10_000)
    tracemalloc.start()
    found = resamples.difference(mean_of(values), mean_of(values / 2))
    times = resamples.quantile(values, 0.95)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is not None and found.value == pytest.approx(values.mean() / 2)
    assert times is not None and times.high - times.low < 0.02
    assert peak < 40e6, "2000 draws of 10,000 questions, a byte each, and some to work with"

"""Intervals of a share, against SciPy's, and against what they promise."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from crag_core.experiments.statistics.intervals import (
    Z95,
    Estimate,
    clopper_pearson_upper,
    proportion,
)

COUNTS = [(hits, count) for count in (1, 3, 57, 1000) for hits in {0, 1, count // 2, count - 1, count}]


def known(told: Estimate | None) -> Estimate:
    assert told is not None
    return told


def test_the_interval_is_that_of_scipy() -> None:
    for counts in COUNTS:
        told, theirs = known(proportion(*counts)), binomtest(*counts).proportion_ci(0.95, "exact")
        assert (told.low, told.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9), counts
        assert told.value == counts[0] / counts[1]


def test_upper_bound_is_that_of_scipy() -> None:
    for counts, delta in product(COUNTS, (0.5, 0.05, 0.001)):
        theirs = binomtest(*counts, alternative="less").proportion_ci(1 - delta, "exact").high
        assert clopper_pearson_upper(*counts, delta) == pytest.approx(theirs, abs=1e-9), (counts, delta)


@pytest.mark.parametrize("truth", [0.01, 0.05, 0.2, 0.5, 0.9])
def test_upper_bound_fails_no_more_often_than_it_says(truth: float) -> None:
    for count, delta in product((5, 40, 200), (0.05, 0.2)):
        below = [hits for hits in range(count + 1) if clopper_pearson_upper(hits, count, delta) < truth]
        assert float(binom.pmf(below, count, truth).sum()) <= delta + 1e-12


def test_no_hit_has_the_bound_that_can_be_worked_out_by_hand() -> None:
    assert clopper_pearson_upper(0, 59, 0.05) == pytest.approx(1 - 0.05 ** (1 / 59), abs=1e-12)
    assert known(proportion(0, 10)).high == pytest.approx(1 - 0.025 ** (1 / 10), abs=1e-12)


def test_a_bound_of_next_to_no_doubt_is_still_below_one() -> None:
    assert 0.3 < clopper_pearson_upper(5, 100, 1e-12) < clopper_pearson_upper(5, 100, 1e-30) < 1.0


def test_ends_are_exact_where_nothing_or_all_are_hits() -> None:
    for count in (1, 3, 7, 10, 333):
        assert known(proportion(0, count)).low == 0.0 and known(proportion(count, count)).high == 1.0
        assert clopper_pearson_upper(count, count, 0.05) == 1.0


def test_of_nothing_there_is_no_share_and_no_bound() -> None:
    assert proportion(0, 0) is None and clopper_pearson_upper(0, 0, 0.05) == 1.0


@given(st.integers(1, 500).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count))))
def test_the_interval_holds_the_share_and_is_mirrored(counts: tuple[int, int]) -> None:
    hits, count = counts
    told, mirrored = known(proportion(hits, count)), known(proportion(count - hits, count))
    assert 0.0 <= told.low <= told.value <= told.high <= 1.0
    assert (1 - told.high, 1 - told.low) == pytest.approx((mirrored.low, mirrored.high), abs=1e-9)


@given(st.integers(0, 99), st.floats(0.001, 0.9))
def test_upper_bound_rises_with_the_hits_and_falls_with_the_doubt_allowed(hits: int, delta: float) -> None:
    bound = clopper_pearson_upper(hits, 100, delta)
    assert hits / 100 * 0.5 < bound < clopper_pearson_upper(hits + 1, 100, delta)
    assert clopper_pearson_upper(hits, 100, delta + 0.05) < bound


def test_a_fraction_of_a_hit_counts() -> None:
    assert known(proportion(2.5, 10)).value == 0.25
    assert known(proportion(2, 10)).low < known(proportion(2.5, 10)).low < known(proportion(3, 10)).low


@pytest.mark.parametrize(
    ("hits", "count", "found"),
    [
        (-1, 10, "hits from 0 to the count of 10, found -1"),
        (11, 10, "found 11"),
        (1, 0, "found 1"),
        (0, -1, "count of -1"),
        (math.nan, 10, "found nan"),
    ],
)
def test_hits_that_cannot_be_are_refused(hits: int, count: int, found: str) -> None:
    for interval in (proportion, lambda *counts: clopper_pearson_upper(*counts, 0.5)):
        with pytest.raises(ValueError, match=found):
            interval(hits, count)


@pytest.mark.parametrize("delta", [0.0, 1.0, 95, math.nan])
def test_a_delta_that_cannot_be_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match=f"between 0 and 1, found {delta}"):
        clopper_pearson_upper(1, 10, delta)


def test_z_is_the_one_of_every_textbook() -> None:
    assert pytest.approx(1.959963984540054, abs=1e-12) == Z95


def test_an_estimate_reads_as_figure_and_interval() -> None:
    assert str(proportion(8, 10)) == "0.800 (0.44–0.97)"

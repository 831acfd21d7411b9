"""Stretches of time cut at hours, days and weeks of the visitor's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ui.metrics.metrics_state import DAY, edges, width_of

BERLIN, KATHMANDU = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kathmandu")


@settings(max_examples=25)
@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)),
    st.timedeltas(timedelta(0), timedelta(days=900)),
    st.sampled_from([UTC, BERLIN, KATHMANDU, ZoneInfo("America/St_Johns")]),
)
def test_all_of_the_time_is_covered_once(start: datetime, length: timedelta, zone: ZoneInfo) -> None:
    since = start.replace(tzinfo=UTC).astimezone(zone)
    until = (since.astimezone(UTC) + length).astimezone(zone)
    found = [edge.timestamp() for edge in edges(since, until)]
    assert found[0] <= since.timestamp() and until.timestamp() < found[-1] + 3600
    assert all(one < other for one, other in pairwise(found))


@pytest.mark.parametrize(
    ("days", "width"), [(0, "hour"), (1, "hour"), (2, "hour"), (7, "day"), (93, "day"), (94, "week")]
)
def test_the_longer_the_coarser(days: int, width: str) -> None:
    since = datetime(2026, 5, 6, 7, 8, tzinfo=BERLIN)
    assert width_of(edges(since, since + days * DAY)) == width


def test_days_begin_at_midnight_whatever_the_clock_is_changed() -> None:
    found = edges(datetime(2026, 3, 27, 12, tzinfo=BERLIN), datetime(2026, 3, 31, 12, tzinfo=BERLIN))
    assert {edge.hour for edge in found} == {0} and [edge.day for edge in found] == [27, 28, 29, 30, 31, 1]
    assert [int(b.timestamp() - a.timestamp()) // 3600 for a, b in pairwise(found)] == [24, 24, 23, 24, 24]


def test_weeks_begin_on_monday() -> None:
    found = edges(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))
    assert {edge.weekday() for edge in found} == {0} and found[0] == datetime(2025, 12, 29, tzinfo=UTC)


def test_hours_begin_with_the_hour_of_the_zone_or_of_the_world() -> None:
    found = edges(datetime(2026, 1, 1, 10, 59, tzinfo=BERLIN), datetime(2026, 1, 1, 12, 1, tzinfo=BERLIN))
    assert [edge.hour for edge in found] == [10, 11, 12, 13]

"""State of the Metrics page: period and policy, the runs that they select, and the steps of time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise

import streamlit as st

from crag_core.storage.history.runs import Selection
from crag_core.trace.summary import Measured
from ui.session import access, app_state

PERIODS = {"24 hours": timedelta(days=1), "7 days": timedelta(days=7), "30 days": timedelta(days=30), "All": None}
_FRESH_S = 15


@dataclass(frozen=True)
class Seen:
    """All runs, and those of each step of time by itself; `steps` has one entry more than `parts`."""

    whole: tuple[Measured, ...]
    parts: tuple[tuple[Measured, ...], ...]
    steps: tuple[datetime, ...]


def seen(period: str, policy: str) -> Seen:
    """Of the last while, at most `_FRESH_S` old; `policy` "": of all. Raises `CragError`."""
    length, now = PERIODS[period], time.time() // _FRESH_S * _FRESH_S + _FRESH_S
    since = None if length is None else now - length.total_seconds()
    config = app_state.settings()
    rows = _measured(f"{config.home} {config.history}", _selection(since, policy))
    zone = app_state.time_zone()
    first = datetime.fromtimestamp(since if since is not None else rows[0].at if rows else now, zone)
    steps = edges(first, datetime.fromtimestamp(now, zone))
    return Seen(rows, parted(rows, [step.timestamp() for step in steps]), steps)


def parted(runs: Sequence[Measured], starts: Sequence[float]) -> tuple[tuple[Measured, ...], ...]:
    """The runs of each span from one of `starts`, which belongs to it, up to the next, which does not."""
    return tuple(tuple(run for run in runs if start <= run.at < end) for start, end in pairwise(starts))


def policies() -> tuple[str, ...]:
    """Those that kept runs were made under."""
    return app_state.workbench().history.policies(_selection(None, ""))


def _selection(since: float | None, policy: str) -> Selection:
    asked_by = None if access.is_administrator() else access.user()
    return Selection(policies=(policy,) if policy else (), since=since, asked_by=asked_by, imported=False)


@st.cache_data(ttl=_FRESH_S, max_entries=50, show_spinner=False)
def _measured(history: str, selection: Selection) -> tuple[Measured, ...]:
    return app_state.workbench().history.measured(selection)


DAY = timedelta(days=1)
_HOURLY, _DAILY = 2 * DAY, 93 * DAY


def edges(since: datetime, until: datetime) -> tuple[datetime, ...]:
    """From before `since` to after `until`, an hour, a day or a week apart, by how long that is.

    Both are of one time zone. Days begin at midnight there, also those with 23 or 25 hours; weeks begin on Monday.
    """
    if until - since <= _HOURLY:
        return _hours(since, until)
    step = DAY if until - since <= _DAILY else 7 * DAY
    start = datetime(since.year, since.month, since.day)
    if step > DAY:
        start -= timedelta(days=start.weekday())
    found = [start]
    while _placed(found[-1], since.tzinfo) <= until:
        found.append(found[-1] + step)  # without a zone: midnight stays midnight
    return tuple(_placed(one, since.tzinfo) for one in found)


def width_of(steps: tuple[datetime, ...]) -> str:
    apart = steps[1].replace(tzinfo=None) - steps[0].replace(tzinfo=None)
    return "week" if apart > DAY else "day" if apart == DAY else "hour"


def _hours(since: datetime, until: datetime) -> tuple[datetime, ...]:
    hour = timedelta(hours=1)
    start = since.timestamp() // 3600 * 3600
    count = int((until.timestamp() - start) // hour.total_seconds()) + 2
    return tuple(datetime.fromtimestamp(start + number * 3600, since.tzinfo) for number in range(count))


def _placed(day: datetime, zone: tzinfo | None) -> datetime:
    return day.replace(tzinfo=zone)

"""Periods of time in the visitor's time zone: hours, days, weeks."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

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
    """What one step is called."""
    apart = steps[1].replace(tzinfo=None) - steps[0].replace(tzinfo=None)
    return "week" if apart > DAY else "day" if apart == DAY else "hour"


def _hours(since: datetime, until: datetime) -> tuple[datetime, ...]:
    hour = timedelta(hours=1)
    start = since.timestamp() // 3600 * 3600
    count = int((until.timestamp() - start) // hour.total_seconds()) + 2
    return tuple(datetime.fromtimestamp(start + number * 3600, since.tzinfo) for number in range(count))


def _placed(day: datetime, zone: tzinfo | None) -> datetime:
    return day.replace(tzinfo=zone)

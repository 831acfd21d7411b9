"""The times of the filter; the settings in which two runs differ."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from tests import builders
from ui.history.history_state import since
from ui.history.run_detail import differing

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 29, 12, 0, tzinfo=BERLIN)  # the clocks went forward that night


def test_days_begin_at_the_visitors_midnight() -> None:
    assert since("Any time", NOW) is None
    assert since("Today", NOW) == datetime(2026, 3, 29, tzinfo=BERLIN).timestamp()
    assert since("7 days", NOW) == (NOW.timestamp() - 7 * 86400) + 3600, "by the clock on the wall"


def test_only_settings_that_differ_between_two_runs_are_told() -> None:
    run = builders.trace(builders.policy("paper"))
    assert differing(run, replace(run, id="other", created="2026-11-28T00:00:00+00:00")) == {}
    made = replace(run.settings, policy=run.settings.policy.with_thresholds(0.1, 0.9), top_k=3)
    told = differing(run, replace(run, settings=made))
    assert set(told) == {"Thresholds of the run", "Chunks asked for"}
    assert told["Chunks asked for"] == (str(run.settings.top_k), "3")
    assert "lower 0.10" in told["Thresholds of the run"][1]

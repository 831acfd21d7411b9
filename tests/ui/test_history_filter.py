"""The words of the filter as a selection; the settings in which two runs differ."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from crag_core.base.types.decisions import Action
from crag_core.storage.history.runs import Feedback, Selection
from crag_core.trace.summary import Ending
from tests import builders
from ui.history.history_state import Filter
from ui.history.run_detail import differing

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 29, 12, 0, tzinfo=BERLIN)  # the clocks went forward that night
TITLES = {"paper": "Paper", "own": "Paper", "mine": "mine"}


def selected(**fields_: object) -> Selection:
    return Filter(**fields_).selection(NOW, TITLES, None)  # type: ignore[arg-type]


def test_an_empty_filter_is_everything_that_somebody_may_see() -> None:
    assert selected() == Selection()
    assert Filter().selection(NOW, TITLES, "ann@example.org") == Selection(asked_by="ann@example.org")


def test_words_become_what_they_mean() -> None:
    found = selected(
        text=" yacht ", actions=("Correct", "Undecided"), policies=("Paper",), feedback=("None",), endings=("Failed",)
    )
    assert (found.text, found.actions, found.policies) == ("yacht", (Action.CORRECT, None), ("paper", "own"))
    assert (found.feedback, found.endings) == ((Feedback.NONE,), (Ending.FAILED,))


def test_days_begin_at_the_visitors_midnight() -> None:
    midnight = datetime(2026, 3, 29, tzinfo=BERLIN).timestamp()
    assert selected(when="Today") == Selection(since=midnight)
    assert selected(when="7 days").since == (NOW.timestamp() - 7 * 86400) + 3600, "by the clock on the wall"


def test_only_settings_that_differ_between_two_runs_are_told() -> None:
    run = builders.trace(builders.policy("paper"))
    assert differing(run, replace(run, id="other", created="2026-11-28T00:00:00+00:00")) == {}
    made = replace(run.settings, policy=run.settings.policy.with_thresholds(0.1, 0.9), top_k=3)
    told = differing(run, replace(run, settings=made))
    assert set(told) == {"Thresholds of the run", "Chunks asked for"}
    assert (
        told["Chunks asked for"] == (str(run.settings.top_k), "3") and "lower 0.10" in told["Thresholds of the run"][1]
    )

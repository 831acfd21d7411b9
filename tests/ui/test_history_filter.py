"""The words of the filter as a selection; two runs' settings in words."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

from crag_core.base.types.decisions import Action
from crag_core.storage.history.runs import Feedback, Selection
from crag_core.trace.summary import Ending
from crag_core.trace.trace import RunSettings
from tests import builders
from ui.history.history_state import Filter
from ui.history.run_detail import _NAMES, differing

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
    found = selected(when="From – to", since=date(2026, 3, 29), until=date(2026, 3, 29))
    assert found.since == midnight and found.until == midnight + 23 * 3600, "a day of 23 hours"
    assert selected(when="From – to", until=date(2026, 3, 1)).since is None
    assert selected(since=date(2026, 3, 29)) == Selection(), "only where days are chosen"


# --- two runs -------------------------------------------------------------------------------------------------------

MADE = builders.settings(builders.policy("paper"))


def test_there_is_a_name_for_every_setting_of_a_run() -> None:
    assert set(_NAMES) | {"policy"} == {field.name for field in fields(RunSettings)}


def test_only_what_differs_is_told() -> None:
    assert differing(MADE, MADE) == {}
    moved = replace(MADE, policy=MADE.policy.with_thresholds(0.1, 0.9), writer_version="a80c4f17acd5", top_k=3)
    assert differing(MADE, moved) == {
        "Lower threshold": (f"{MADE.policy.lower:.2f}", "0.10"),
        "Upper threshold": (f"{MADE.policy.upper:.2f}", "0.90"),
        "Model version": ("–", "a80c4f17acd5"),
        "Chunks retrieved": (str(MADE.top_k), "3"),
    }
    other = replace(MADE, policy=builders.policy("signals"))
    assert differing(MADE, other)["Policy"] == ("Paper", "Signals") and "Policy rules" not in differing(MADE, other)


def test_settings_that_read_alike_are_not_told_as_equal() -> None:
    one, other = replace(MADE, pinned=("a",)), replace(MADE, pinned=("b",))
    assert differing(one, other) == {"Pinned files": ("1 file", "1 file, another one")}
    rules = replace(MADE, policy=builders.changing(MADE.policy, web_refine=not MADE.policy.web.refine))
    (told,) = differing(MADE, rules).items()
    assert told[0] == "Policy rules" and told[1][0] != told[1][1]

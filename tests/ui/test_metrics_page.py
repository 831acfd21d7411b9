"""The Metrics page: what the kept runs come to, who sees whose, and what it says where there is nothing."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Step, Usage
from crag_core.storage.history import HistoryStore
from crag_core.trace.summary import Ending, Measured
from crag_core.trace.trace import Trace
from tests.builders import graded, policy, trace
from tests.ui.conftest import Start, shown
from ui.metrics.metrics_page import cards
from ui.metrics.metrics_state import DAY, edges, parted, width_of

PAGE = "pages/metrics.py"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def keep(history: Path, *runs: Trace, days_ago: float = 0.1, asked_by: str = "") -> None:
    store = HistoryStore(history, clock=lambda: time.time() - days_ago * 86400)
    for run in runs:
        store.save(run, asked_by=asked_by)


def run(id: str, score: float, name: str = "paper", **fields: object) -> Trace:
    from crag_core.trace.reroute import reroute

    found, grades = graded(score)
    steps = (Step("retrieve", "", seconds=0.01), Step("grade", "", seconds=0.02, usage=Usage(3, 200, 10)))
    known = {"id": id, "passages": found, "grades": grades, "context": (), "steps": steps}
    made = trace(policy(name), **known | fields)
    return replace(made, decision=reroute(made, made.settings.policy).decision)


def start_page(start: Start, history: Path, **environment: str) -> AppTest:
    return start(PAGE, CRAG_HISTORY=f"sqlite:///{history}", **environment)


def values(app: AppTest) -> dict[str, str]:
    """The value on each card, by its name."""
    return {metric.label: metric.value for metric in app.metric}


def test_it_says_so_where_nothing_was_asked(start: Start, history: Path) -> None:
    app = start_page(start, history)
    assert not app.exception and "No runs in this period" in shown(app) and not values(app)


def test_every_figure_says_what_it_is_counted_of_and_none_is_judged(start: Start, history: Path) -> None:
    keep(history, *(run(f"run-{number}", (0.9, 0.9, 0.5, 0.1)[number % 4]) for number in range(40)))
    keep(history, replace(run("failed", 0.9), decision=None))
    app = start_page(start, history)
    assert not app.exception
    found = values(app)
    assert (found["Routed CORRECT"], found["Searched the web"], found["LLM calls"]) == ("50%", "0%", "123")
    assert (found["Best score rose after correction"], found["Decision time"]) == ("–", "30 ms")
    made_from = " ".join(metric.delta for metric in app.metric)
    assert (
        "20 of 40 decided runs" in made_from and "0 of 0 twice graded runs" in made_from and "8,610 tokens" in made_from
    )
    assert "median of 20 CORRECT runs" in made_from and "median of 20 corrected runs" in made_from
    assert not any(metric.proto.chart_data for metric in app.metric), "all on one day: there is no course to draw"
    assert "**41 runs** :gray[40 decided" in shown(app) and ":green[CORRECT 50%]" in shown(app)


def test_the_table_is_made_when_it_is_opened(start: Start, history: Path) -> None:
    keep(history, run("a", 0.9))
    app = start_page(start, history)
    assert not app.dataframe
    app.session_state["metrics_numbers"] = True
    app.run()
    assert not app.exception and list(app.dataframe[0].value["Decision time"]) == ["30 ms"]


def test_one_policy_by_itself(start: Start, history: Path) -> None:
    keep(history, run("a", 0.9), run("b", 0.1, "worst-chunk"))
    app = start_page(start, history)
    app.selectbox(key="metrics_policy").select("worst-chunk").run()
    assert not app.exception and values(app)["Routed CORRECT"] == "0%"


def test_without_the_right_only_ones_own(start: Start, history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ui.session import access

    keep(history, run("a", 0.9), asked_by="ann@example.org")
    keep(history, run("b", 0.1), asked_by="bob@example.org")
    monkeypatch.setattr(access, "user", lambda: "ann@example.org")
    monkeypatch.setattr(access, "is_administrator", lambda: False)
    app = start_page(start, history)
    assert not app.exception and values(app)["Routed CORRECT"] == "100%" and "Your own runs only." in shown(app)


def test_a_history_that_cannot_be_read_is_told(start: Start, history: Path) -> None:
    history.write_bytes(b"this is not a database" * 100)
    app = start_page(start, history)
    assert not app.exception and "cannot be read" in shown(app)


# --- figures --------------------------------------------------------------------------------------------------------


def measured(action: Action | None = Action.CORRECT, **fields: Any) -> Measured:
    known: dict[str, Any] = {
        "at": 0.0, "ending": Ending.DONE, "action": action, "policy": "paper", "strategy": "none", "score": 0.9,
        "decided_ms": 40.0, "retrieval_ms": 50.0, "provider_ms": 0.0, "total_ms": 60.0, "searched": False,
        "improved": None, "graded": 6, "ungraded": 0, "cached": 0, "calls": 0, "prompt_tokens": 0,
        "completion_tokens": 0,
    }  # fmt: skip
    return Measured(**known | fields)


def told(*runs: Measured) -> dict[str, tuple[str, str]]:
    return {card.name: (card.value, card.of) for card in cards(runs)}


def test_nothing_comes_to_nothing() -> None:
    assert {value for value, _ in told().values()} == {"–", "0"} and all(
        card.number in (None, 0.0) for card in cards(())
    )


def test_shares_are_of_the_runs_that_were_decided() -> None:
    undecided = measured(None, ending=Ending.FAILED, retrieval_ms=None, provider_ms=None, graded=0)
    runs = measured(), measured(Action.AMBIGUOUS, searched=True), measured(Action.INCORRECT), measured(), undecided
    assert told(*runs)["Routed CORRECT"] == ("50%", "2 of 4 decided runs")
    assert told(*runs)["Searched the web"] == ("25%", "1 of 4 decided runs")


def test_times_are_of_their_own_path_and_without_the_provider() -> None:
    slow = [
        measured(Action.AMBIGUOUS, retrieval_ms=1000.0, provider_ms=700.0),
        measured(Action.INCORRECT, retrieval_ms=500.0),
    ]
    found = told(measured(decided_ms=40.0), measured(decided_ms=80.0), *slow)
    assert found["Decision time"] == ("60 ms", "median of 2 CORRECT runs")
    assert found["Evidence time"] == ("400 ms", "median of 2 corrected runs")


def test_a_run_belongs_to_the_span_that_it_begins() -> None:
    found = parted([measured(at=at) for at in (10.0, 19.9, 20.0, 30.0, 9.9)], [10.0, 20.0, 30.0])
    assert list(map(len, found)) == [2, 1]


# --- stretches of time, cut at hours, days and weeks of the visitor's clock ------------------------------------------


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

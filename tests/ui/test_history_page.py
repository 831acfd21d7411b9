"""The History page: its filter and address, the list, one run, two runs, deleting, exporting, importing, rights."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.errors import BadRecord
from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Step, StepState
from crag_core.storage.history import HistoryStore
from crag_core.trace.feedback import Mark
from crag_core.trace.trace import Trace
from tests import builders
from tests.fakes import Hand
from tests.storage.history_parts import HOSTILE, fake_runs, route_label, run, whole_run
from tests.ui.conftest import Start, ask, press, shown
from ui.history import bulk_actions
from ui.history.bulk_actions import Imported, take_in, to_lines
from ui.history.history_state import since
from ui.history.run_detail import differing
from ui.session import access

QUESTION = "How much does a yacht of ten metres pay?"


@pytest.fixture
def clock() -> Hand:
    """Of forty days ago."""
    hand = Hand()
    hand.now = time.time() - 40 * 86400
    return hand


@pytest.fixture
def store(tmp_path: Path, clock: Hand) -> HistoryStore:
    return HistoryStore(tmp_path / "kept.db", clock)


@pytest.fixture
def open_page(start: Start, store: HistoryStore, tmp_path: Path) -> Callable[..., AppTest]:
    def opened(days: str = "0", **address: str) -> AppTest:
        app = start(CRAG_HISTORY=f"sqlite:///{tmp_path}/kept.db", CRAG_HISTORY_DAYS=days)
        app.switch_page("pages/history.py")
        app.query_params.update(address)
        app.run()
        assert not app.exception
        return app

    return opened


def rows(app: AppTest) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = app.dataframe[0].value.to_dict("records") if app.dataframe else []
    return found


def questions(app: AppTest) -> list[str]:
    return [row["question"] for row in rows(app)]


def several(store: HistoryStore, count: int) -> list[Trace]:
    made = [run(f"run-{number}", question=f"Question {number}?") for number in range(count)]
    for one in made:
        store.save(one)
    return made


def test_a_run_that_was_asked_stands_in_the_list_with_its_facts(open_page: Callable[..., AppTest]) -> None:
    app = open_page()
    assert "No runs yet" in shown(app)
    app.switch_page("pages/ask.py").run()
    ask(app, QUESTION)
    app.switch_page("pages/history.py").run()
    row = rows(app)[0]
    assert (row["action"], row["question"], row["policy"], row["model"]) == (
        "✓ CORRECT",
        QUESTION,
        "Paper",
        "quotations",
    )
    assert row["LLM calls"] == 0 and row["seconds"] > 0 and 0 < row["score"] < 1
    assert "ended" not in row and "feedback" not in row, "they would say nothing"
    assert "1 run" in shown(app) and "Kept without limit" in shown(app)


def test_a_page_has_25_runs_newest_first(open_page: Callable[..., AppTest], store: HistoryStore, clock: Hand) -> None:
    for number in range(30):
        clock.now += 60
        store.save(run(f"run-{number}", question=f"Question {number}?"))
    app = open_page()
    assert questions(app) == [f"Question {number}?" for number in range(29, 4, -1)]
    app.session_state["history_page"] = 2
    app.run()
    assert questions(app) == [f"Question {number}?" for number in range(4, -1, -1)] and "30 runs" in shown(app)


def test_the_filter_narrows_and_counts(open_page: Callable[..., AppTest], store: HistoryStore, clock: Hand) -> None:
    store.save(replace(whole_run("correct"), question="Wie ist die STRASSE?"))
    store.save(run("failed", question="Why?", steps=(Step("grade", "away", state=StepState.FAILED),)))
    clock.now = time.time()
    store.save(run("new", question="What now?"))
    store.add_label(route_label(whole_run("correct"), Mark.WRONG, Action.INCORRECT))
    app = open_page()
    for key, value, found in (
        ("history_text", "straße", ["Wie ist die STRASSE?"]),
        ("history_action", ["Correct"], ["Wie ist die STRASSE?"]),
        ("history_action", ["Undecided"], ["What now?", "Why?"]),
        ("history_ended", ["Failed"], ["Why?"]),
        ("history_feedback", ["Route wrong"], ["Wie ist die STRASSE?"]),
        ("history_feedback", ["None"], ["What now?", "Why?"]),
        ("history_when", "7 days", ["What now?"]),
        ("history_when", "Today", ["What now?"]),
        ("history_policy", ["Paper"], ["What now?", "Why?", "Wie ist die STRASSE?"]),
    ):
        app.session_state[key] = value
        app.run()
        assert questions(app) == found, (key, value)
        assert f"{len(found)} of 3 runs" in shown(app) or len(found) == 3
        press(app, "Clear filter")
    assert len(questions(app)) == 3


def test_an_address_sets_the_filter_without_what_is_of_no_use_in_it(
    open_page: Callable[..., AppTest], store: HistoryStore
) -> None:
    several(store, 12)
    app = open_page(history_action="<script>", history_policy="mine", history_text="question 11")
    assert questions(app) == ["Question 11?"] and "history_action" not in app.query_params


def test_hostile_text_stands_in_the_list_as_text(open_page: Callable[..., AppTest], store: HistoryStore) -> None:
    store.save(replace(whole_run(), question=HOSTILE))
    found = questions(open_page())[0]
    assert "<script>alert('x')</script>" in found and "\u202e" not in found


@pytest.mark.parametrize("setting", ["off", "postgresql://nobody:s3cret@127.0.0.1:9/none"])
def test_a_history_that_is_off_or_away_says_what_to_do(start: Start, setting: str) -> None:
    app = start("pages/history.py", CRAG_HISTORY=setting)
    told = shown(app)
    assert not app.exception and "s3cret" not in told
    assert "Set CRAG_HISTORY=disk" in told if setting == "off" else "cannot be read" in told and "lets you in" in told


# --- rights ---------------------------------------------------------------------------------------------------------


def test_without_the_right_only_the_own_runs_are_seen_and_deleted(
    open_page: Callable[..., AppTest], store: HistoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(run("mine", question="Mine?"), asked_by="ann@example.org")
    store.save(run("theirs", question="Theirs?"), asked_by="bob@example.org")
    app = open_page()
    assert sorted(questions(app)) == ["Mine?", "Theirs?"]
    monkeypatch.setattr(access, "user", lambda: "ann@example.org")
    monkeypatch.setattr(access, "is_administrator", lambda: False)
    monkeypatch.setattr(access, "refusal", lambda right: "Only bob may see the runs of others.")
    press(app, "Refresh")
    assert questions(app) == ["Mine?"] and "1 run" in shown(app) and "Only bob may see" in shown(app)
    app.button(key="history_delete_now").click().run()
    assert [kept.id for kept in store.search()] == ["theirs"]


# --- what is done with them -----------------------------------------------------------------------------------------


def test_what_matches_is_deleted_after_a_word_on_how_many(
    open_page: Callable[..., AppTest], store: HistoryStore
) -> None:
    several(store, 12)
    store.add_label(route_label(run("run-11"), Mark.RIGHT))
    app = open_page()
    app.session_state["history_text"] = "question 1"
    app.run()
    assert "Deletes 3 runs with records" in shown(app).replace("*", "") and "labels" in shown(app)
    app.button(key="history_delete_now").click().run()
    assert store.count() == 9 and store.all_labels() == ()


def test_a_run_that_comes_in_meanwhile_is_not_deleted_with_those_that_were_counted(
    open_page: Callable[..., AppTest], store: HistoryStore, clock: Hand
) -> None:
    several(store, 2)
    app = open_page()
    clock.now += 60
    store.save(run("late", question="Late?"))
    app.button(key="history_delete_now").click().run()
    assert [kept.id for kept in store.search()] == ["late"]


def test_runs_that_come_in_move_no_row_until_asked_for(
    open_page: Callable[..., AppTest], store: HistoryStore, clock: Hand
) -> None:
    several(store, 2)
    app = open_page()
    clock.now += 60
    store.save(run("late", question="Late?"))
    app.run()
    assert len(rows(app)) == 2 and [button.label for button in app.button if "new run" in button.label]
    press(app, "Show 1 new run")
    assert questions(app)[0] == "Late?"
    clock.now += 60
    store.save(run("later", question="Later?"))
    app.switch_page("pages/settings.py").run()
    assert questions(app.switch_page("pages/history.py").run())[0] == "Later?", "nor once the page was left"


# --- times of the filter, settings of two runs -----------------------------------------------------------------------


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


# --- files of kept runs ----------------------------------------------------------------------------------------------


def taken(content: bytes) -> tuple[Imported, list[Trace]]:
    found: list[Trace] = []
    return take_in(content, found.append, lambda share: None), found


def test_every_line_of_an_export_is_a_record() -> None:
    runs = [whole_run("a"), run("b", question=f"{HOSTILE}\n\u2028\x85"), *fake_runs()]
    content = to_lines(runs)
    lines = content.split(b"\n")
    assert content.isascii() and [Trace.from_json(line.decode()) for line in lines[:-1]] == runs and lines[-1] == b""


def test_an_export_stops_at_what_one_file_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_actions, "MOST_RECORDS", 2)
    assert to_lines(run(f"run-{number}") for number in range(5)).count(b"\n") == 2
    monkeypatch.setattr(bulk_actions, "MOST_EXPORTED_MB", 0)
    assert to_lines([whole_run("large"), run("next")]).count(b"\n") == 1, "the first goes in whatever its size"


def test_a_line_that_is_no_record_is_told_and_the_others_go_in() -> None:
    lines = to_lines([run("one"), run("two")]).split(b"\n")
    future = json.dumps(json.loads(lines[0]) | {"schema": 99}).encode()
    bad = [b"not JSON", b"[1, 2]", b'"text"', b"\xff\xfe", b"[" * 100_000, future, b'{"schema": 3}', b"NaN"]
    done, found = taken(b"\r\n".join([lines[0], *bad, b"", lines[1]]))
    assert [trace.id for trace in found] == ["one", "two"] and (done.taken, len(done.refused)) == (2, len(bad))
    assert [line.partition(":")[0] for line in done.refused] == [f"Line {number}" for number in range(2, 2 + len(bad))]
    assert "schema 99" in done.refused[5]


@pytest.mark.parametrize(
    ("name", "value", "content", "words"),
    [
        ("LARGEST_IMPORT_MB", 0, b"x" * 100, "expected at most 0 MB"),
        ("MOST_LINES", 3, b"{}\n" * 4, "4 lines, expected at most 200 MB and 3 lines"),
        ("MOST_LINES", 3, b" \n\n", "This file is empty"),
    ],
)
def test_a_file_that_is_too_large_or_empty_is_refused_whole(
    name: str, value: int, content: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_actions, name, value)
    with pytest.raises(BadRecord, match=words):
        taken(content)


def test_a_record_that_share_has_saved_is_one_record() -> None:
    done, found = taken(run("shared").to_json().encode())
    assert (done.taken, done.refused) == (1, ()) and found == [run("shared")]

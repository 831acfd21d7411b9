"""The History page: its filter and address, the list, one run, two runs, deleting, exporting, importing, rights."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Step, StepState
from crag_core.storage.history import HistoryStore
from crag_core.trace.feedback import Mark
from crag_core.trace.trace import Trace
from tests.storage.history_parts import HOSTILE, route_label, run, whole_run
from tests.ui.conftest import ask, press, shown
from ui.session import access

Start = Callable[..., AppTest]
QUESTION = "How much does a yacht of ten metres pay?"


class Clock:
    def __init__(self) -> None:
        self.now = time.time() - 40 * 86400

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> HistoryStore:
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


def test_a_page_has_25_runs_newest_first(open_page: Callable[..., AppTest], store: HistoryStore, clock: Clock) -> None:
    for number in range(30):
        clock.now += 60
        store.save(run(f"run-{number}", question=f"Question {number}?"))
    app = open_page()
    assert questions(app) == [f"Question {number}?" for number in range(29, 4, -1)]
    app.session_state["history_page"] = 2
    app.run()
    assert questions(app) == [f"Question {number}?" for number in range(4, -1, -1)] and "30 runs" in shown(app)


def test_the_filter_narrows_and_counts(open_page: Callable[..., AppTest], store: HistoryStore, clock: Clock) -> None:
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
    open_page: Callable[..., AppTest], store: HistoryStore, clock: Clock
) -> None:
    several(store, 2)
    app = open_page()
    clock.now += 60
    store.save(run("late", question="Late?"))
    app.button(key="history_delete_now").click().run()
    assert [kept.id for kept in store.search()] == ["late"]


def test_runs_that_come_in_move_no_row_until_asked_for(
    open_page: Callable[..., AppTest], store: HistoryStore, clock: Clock
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

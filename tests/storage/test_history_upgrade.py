"""A history in a file of its own, by earlier versions: taken over whole, once, or not at all."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.types.decisions import Action
from crag_core.storage.history import HistoryStore
from crag_core.storage.history import store as history_store
from crag_core.storage.history.runs import Selection
from crag_core.trace.feedback import Mark
from crag_core.trace.summary import Ending
from tests.storage.first_version import write
from tests.storage.history_parts import golden_runs, passage_label, route_label, run, whole_run

OLD = [whole_run("whole"), run("empty"), *golden_runs()[:8]]
LABELS = [passage_label(OLD[0], "p1"), route_label(OLD[0], Mark.WRONG, Action.INCORRECT)]


@pytest.fixture(params=[1, 2])
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file that the first version of the tables wrote, or the second in a file of its own."""
    file = tmp_path / "history.db"

    def execute(statement: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(file)) as database, database:
            return database.execute(statement, values).fetchall()

    write(execute, "?", OLD, LABELS, broken="broken")
    execute("PRAGMA journal_mode = WAL")
    if request.param == 2:
        second = HistoryStore(tmp_path / "second.db")
        second.take_over(file)
        os.replace(tmp_path / "second.db", file)
    return file


@pytest.fixture
def store(earlier: Path, tmp_path: Path) -> HistoryStore:
    store = HistoryStore(tmp_path / "crag.db")
    store.take_over(earlier)
    return store


def test_every_run_and_label_is_there_as_it_was(store: HistoryStore) -> None:
    assert [kept.id for kept in store.search(limit=100)] == ["broken", *(trace.id for trace in reversed(OLD))]
    assert [store.load(trace.id) for trace in OLD] == OLD
    assert set(store.all_labels()) == set(LABELS)
    assert [kept.is_imported for kept in reversed(store.search(limit=100))][:4] == [False, True, False, True]


def test_a_record_that_cannot_be_read_stays_with_neutral_figures(store: HistoryStore) -> None:
    kept = store.find("broken")
    assert kept is not None and (kept.question, kept.policy, kept.is_readable) == ("Wie BREIT?", "mine", False)
    assert (kept.action, kept.ending, kept.calls, kept.score) == (None, Ending.DONE, 0, None)
    assert [one.id for one in store.search(Selection(text="breit"))] == ["broken"]
    assert 5000.0 not in [one.at for one in store.measured()]
    with pytest.raises(BadRecord, match="schema 99"):
        store.load("broken")
    assert "broken" not in [trace.id for trace in store.export()] and len(list(store.export())) == len(OLD)


def test_once_more_changes_nothing_and_what_is_there_stays(store: HistoryStore, earlier: Path) -> None:
    newer = route_label(OLD[0], Mark.RIGHT)
    store.add_label(newer)
    store.delete_all(Selection(ids=("empty",)))
    store.take_over(earlier)
    assert newer in store.all_labels() and len(store.all_labels()) == len(LABELS)
    assert [store.load(trace.id) for trace in OLD] == OLD


def test_what_breaks_off_half_way_leaves_nothing(
    earlier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(row: object) -> dict[str, Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(history_store, "_completed_label", break_off)
    store = HistoryStore(tmp_path / "crag.db")
    with pytest.raises(KeyboardInterrupt):
        store.take_over(earlier)
    monkeypatch.undo()
    assert store.count() == 0
    store.take_over(earlier)
    assert store.count() == len(OLD) + 1

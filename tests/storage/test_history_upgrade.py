"""A history in a file of its own, by earlier versions: taken over whole, once, or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crag_core.base.errors import BadRecord, HistoryUnavailable
from crag_core.base.types.decisions import Action
from crag_core.storage.history import HistoryStore, tables
from crag_core.storage.history.runs import Selection
from crag_core.trace.feedback import Mark
from tests.storage.history_parts import passage_label, route_label, run, whole_run

OLD = [whole_run("whole"), run("empty"), run("hostile", question="Café <b>‮")]
LABELS = [passage_label(OLD[0], "p1"), route_label(OLD[0], Mark.WRONG, Action.INCORRECT)]


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """With a record in it that this version cannot read."""
    file = tmp_path / "history.db"
    own = HistoryStore(file, clock=iter(range(1000, 2000)).__next__)
    for trace in [*OLD, run("broken")]:
        own.save(trace)
    for label in LABELS:
        own.add_label(label)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE crag_runs SET readable = 0, record = '{\"schema\": 99}' WHERE id = 'broken'")
    return file


@pytest.fixture
def store(earlier: Path, tmp_path: Path) -> HistoryStore:
    store = HistoryStore(tmp_path / "crag.db")
    store.take_over(earlier)
    return store


def test_every_run_and_label_is_there_as_it_was(store: HistoryStore) -> None:
    assert [kept.id for kept in store.search(limit=100)] == ["broken", *(trace.id for trace in reversed(OLD))]
    assert [store.load(trace.id) for trace in OLD] == OLD and set(store.all_labels()) == set(LABELS)
    kept = store.find("broken")
    assert kept is not None and not kept.is_readable and len(store.measured()) == len(OLD)
    with pytest.raises(BadRecord, match="schema 99"):
        store.load("broken")
    assert len(list(store.export())) == len(OLD)


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
    def break_off(*given: object) -> None:
        raise KeyboardInterrupt

    store = HistoryStore(tmp_path / "crag.db")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        take_over = tables.Rows.take_over
        patch.setattr(tables.Rows, "take_over", lambda *given: (take_over(*given), break_off()))
        store.take_over(earlier)
    assert store.count() == 0
    store.take_over(earlier)
    assert store.count() == len(OLD) + 1


def test_one_of_another_version_is_refused(earlier: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(earlier)) as database, database:
        database.execute("UPDATE crag_history SET version = 1")
    with pytest.raises(HistoryUnavailable, match="has version 1, expected 2"):
        HistoryStore(tmp_path / "crag.db").take_over(earlier)

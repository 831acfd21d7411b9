"""A history that the first version of the tables wrote: taken over whole, once, or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection

from crag_core.base.errors import BadRecord
from crag_core.base.types.decisions import Action
from crag_core.storage.history import HistoryStore, tables
from crag_core.storage.history.runs import Feedback, Selection
from crag_core.trace.feedback import Mark
from crag_core.trace.summary import Ending, measure
from tests.storage.first_version import write
from tests.storage.history_parts import golden_runs, passage_label, route_label, run, whole_run
from tests.storage.test_history_processes import run_together

OLD = [whole_run("whole"), run("empty"), *golden_runs()[:8]]
LABELS = [passage_label(OLD[0], "p1"), route_label(OLD[0], Mark.WRONG, Action.INCORRECT)]


def _in_a_file(file: Path) -> Callable[..., Any]:
    def execute(statement: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(file)) as database, database:
            return database.execute(statement, values).fetchall()

    return execute


def _in_postgres(url: str) -> Callable[..., Any]:
    def execute(statement: str, *values: Any) -> list[Any]:
        with psycopg.connect(url) as database:
            done = database.execute(statement, values)
            return done.fetchall() if done.description else []

    return execute


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path | str, Callable[..., Any]]:
    """A history of version 1, and a way to look into it."""
    if request.param == "file":
        file = tmp_path / "history.db"
        execute = _in_a_file(file)
        write(execute, "?", OLD, LABELS, broken="broken")
        execute("PRAGMA journal_mode = WAL")
        return file, execute
    url = request.getfixturevalue("postgres_url")
    execute = _in_postgres(url)
    write(execute, "%s", OLD, LABELS, broken="broken")
    return url, execute


@pytest.fixture
def store(place: tuple[Path | str, Callable[..., Any]]) -> Iterator[HistoryStore]:
    made = HistoryStore(place[0])
    yield made
    assert made._database is not None
    made._database._engine.dispose()


def test_every_run_and_label_is_there_as_it_was(store: HistoryStore) -> None:
    assert [kept.id for kept in store.search(limit=100)] == ["broken", *(trace.id for trace in reversed(OLD))]
    assert [store.load(trace.id) for trace in OLD] == OLD
    assert set(store.all_labels()) == set(LABELS)
    assert [kept.is_imported for kept in reversed(store.search(limit=100))][:4] == [False, True, False, True]


def test_the_new_columns_are_filled_from_the_records(store: HistoryStore) -> None:
    kept = store.find("whole")
    assert kept is not None
    assert (kept.fingerprint, kept.writer, kept.seconds) == (OLD[0].fingerprint, "extractive", OLD[0].seconds)
    assert (kept.route, kept.labelled, kept.asked_by, kept.kept_at) == (Mark.WRONG, 1, "", 1000.0)
    told = {found.at: found for found in store.measured()}
    for number, trace in enumerate(OLD):
        assert number % 2 or told[1000.0 + number] == measure(trace, 1000.0 + number)
    assert [one.id for one in store.search(Selection(text="NINE EUROS"))] == ["whole"]
    assert [one.id for one in store.search(Selection(feedback=(Feedback.ROUTE_WRONG,)))] == ["whole"]


def test_a_record_that_cannot_be_read_stays_with_neutral_figures(store: HistoryStore) -> None:
    kept = store.find("broken")
    assert kept is not None and (kept.question, kept.policy, kept.is_readable) == ("Wie BREIT?", "mine", False)
    assert (kept.action, kept.ending, kept.calls, kept.score) == (None, Ending.DONE, 0, None)
    assert [one.id for one in store.search(Selection(text="breit"))] == ["broken"]
    assert 5000.0 not in [one.at for one in store.measured()]
    with pytest.raises(BadRecord, match="schema 99"):
        store.load("broken")
    assert "broken" not in [trace.id for trace in store.export()] and len(list(store.export())) == len(OLD)


def test_an_upgrade_that_is_killed_half_way_leaves_version_1(
    place: tuple[Path | str, Callable[..., Any]], store: HistoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(connection: Connection) -> None:
        tables.select_and_count(connection)
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "STEPS", (tables.create_first, break_off))
    with pytest.raises(KeyboardInterrupt):
        store.search()
    monkeypatch.undo()
    execute = place[1]
    assert execute("SELECT version FROM crag_history") == [(1,)]
    assert execute("SELECT count(*) FROM crag_runs") == [(len(OLD) + 1,)]
    assert [store.load(trace.id) for trace in OLD] == OLD
    assert execute("SELECT version FROM crag_history") == [(2,)]


def test_two_processes_that_upgrade_at_once_lose_nothing(
    place: tuple[Path | str, Callable[..., Any]], store: HistoryStore
) -> None:
    assert run_together(place[0], "upgrade") == [{"count": len(OLD) + 1, "problem": ""}] * 2
    assert [store.load(trace.id) for trace in OLD] == OLD and set(store.all_labels()) == set(LABELS)
    assert place[1]("SELECT version FROM crag_history") == [(2,)]

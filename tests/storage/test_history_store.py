"""Runs and labels that are kept: whole, found again, never in each other's place."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crag_core.base.errors import BadRecord, HistoryUnavailable
from crag_core.base.types.decisions import Action
from crag_core.storage.history import HistoryStore, open_history
from crag_core.trace.feedback import Mark
from crag_core.trace.trace import Trace
from tests.storage.history_parts import (
    Ticking,
    fake_runs,
    golden_runs,
    large_run,
    passage_label,
    route_label,
    run,
    whole_run,
)


@pytest.fixture
def store(tmp_path: Path) -> HistoryStore:
    return HistoryStore(tmp_path / "home" / "history.db", Ticking())


def execute(folder: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    """By hand, past the store."""
    with sqlite3.connect(folder / "home" / "history.db") as database:
        return database.execute(statement, values).fetchall()


# --- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_comes_back_as_it_was(store: HistoryStore) -> None:
    store.save(whole_run())
    assert store.load("run-1") == whole_run()
    assert store.load("run-1").to_json() == whole_run().to_json()  # type: ignore[union-attr]


@pytest.mark.parametrize("make", [golden_runs, fake_runs])
def test_every_run_that_the_other_tests_make_comes_back(store: HistoryStore, make: Callable[[], list[Trace]]) -> None:
    runs = make()
    assert len(runs) >= 28
    for made in runs:
        store.save(made)
    assert all(store.load(made.id) == made for made in runs)
    assert len(store.search(limit=1000)) == len(runs)


def test_a_run_of_five_megabytes_comes_back(store: HistoryStore) -> None:
    large = large_run()
    assert len(large.to_json()) > 5_000_000
    store.save(large)
    assert store.load("large") == large


def test_a_run_that_has_grown_replaces_itself_and_keeps_its_place(store: HistoryStore) -> None:
    store.save(run("first"))
    store.save(run("second"))
    store.save(replace(whole_run("first"), question="Why?"))
    assert store.load("first") == replace(whole_run("first"), question="Why?")
    assert [(kept.id, kept.question) for kept in store.search()] == [
        ("second", "What does the ferry cost?"),
        ("first", "Why?"),
    ]


def test_the_last_runs_are_told_newest_first_without_their_records(store: HistoryStore, tmp_path: Path) -> None:
    for number in range(5):
        store.save(run(f"run-{number}"))
    store.save(whole_run("run-5"))
    execute(tmp_path, "UPDATE crag_runs SET record = 'not read at all'")
    assert [kept.id for kept in store.search(limit=3)] == ["run-5", "run-4", "run-3"]
    assert [kept.id for kept in store.search(limit=3, skip=4)] == ["run-1", "run-0"]
    newest = store.search(limit=1)[0]
    assert store.find("run-5") == newest
    assert (newest.created, newest.action, newest.policy, newest.evaluator, newest.is_imported) == (
        "2025-01-01T00:00:00Z",
        Action.CORRECT,
        "paper",
        "hand",
        False,
    )
    assert store.search(skip=5)[0].action is None, "a run that decided nothing"


@pytest.mark.parametrize("id_", ["", "a" * 5000, "a/../b", "\x00", "\ufffd", "née", "' OR 1=1 --", "run 1"])
def test_any_id_finds_its_own_run_and_no_other(store: HistoryStore, id_: str) -> None:
    store.save(run("run-1"))
    store.save(run(id_))
    assert store.load(id_) == run(id_)
    assert store.load("run-1") == run("run-1")
    assert {store.load(kept.id) for kept in store.search()} == {run(id_), run("run-1")}


def test_a_record_of_a_later_program_is_told_and_the_others_are_read(store: HistoryStore, tmp_path: Path) -> None:
    store.save(run("old"))
    store.save(run("new"))
    execute(tmp_path, "UPDATE crag_runs SET record = '{\"schema\": 99}' WHERE id = 'new'")
    with pytest.raises(BadRecord, match="schema 99, expected one of"):
        store.load("new")
    assert store.load("old") == run("old") and len(store.search()) == 2


# --- runs from elsewhere --------------------------------------------------------------------------------------------


def test_the_same_run_again_stays_the_one_that_is_there(store: HistoryStore) -> None:
    store.save(whole_run())
    assert store.save_import(whole_run()) == whole_run()
    assert [kept.is_imported for kept in store.search()] == [False], "it was made here"
    store.save_import(run("other"))
    store.save_import(run("other"))
    assert len(store.search()) == 2


def test_an_import_never_takes_the_place_of_another_run(store: HistoryStore) -> None:
    store.save(whole_run())
    forged = replace(whole_run(), question="Is the boss a fool?")
    first, second = store.save_import(forged), store.save_import(forged)
    assert first == second == replace(forged, id=first.id) and first.id.startswith("imported-")
    assert store.load("run-1") == whole_run() and store.load(first.id) == first
    assert [kept.is_imported for kept in store.search()] == [True, False]


@pytest.mark.parametrize("id_", ["", "a" * 65, "../../etc", "\x00\ud800", "a b"])
def test_an_import_whose_id_no_link_can_carry_gets_another(store: HistoryStore, id_: str) -> None:
    kept = store.save_import(run(id_))
    assert kept == run(kept.id) and kept.id.startswith("imported-") and len(kept.id) <= 64
    assert store.save_import(run(id_)) == kept


# --- labels ---------------------------------------------------------------------------------------------------------


def test_a_label_comes_back_and_another_on_the_same_thing_replaces_it(store: HistoryStore) -> None:
    made = whole_run()
    store.add_label(passage_label(made, "p1"))
    store.add_label(route_label(made, Mark.WRONG, Action.INCORRECT))
    store.add_label(passage_label(made, "p1", Mark.NOT_RELEVANT))
    store.add_label(passage_label(made, "p3"))
    assert store.labels("run-1") == (
        route_label(made, Mark.WRONG, Action.INCORRECT),
        passage_label(made, "p1", Mark.NOT_RELEVANT),
        passage_label(made, "p3"),
    )


def test_a_label_is_taken_back_whatever_it_said(store: HistoryStore) -> None:
    made = whole_run()
    store.add_label(passage_label(made, "p1"))
    assert store.remove_label(passage_label(made, "p1", Mark.NOT_RELEVANT))
    assert not store.remove_label(passage_label(made, "p1"))
    assert store.labels("run-1") == ()


# --- together and off -----------------------------------------------------------------------------------------------


def test_a_history_that_is_off_says_so_and_touches_nothing(tmp_path: Path) -> None:
    store = open_history("off", tmp_path)
    for use in (
        lambda: store.save(run()),
        lambda: store.save_import(run()),
        lambda: store.load("run-1"),
        lambda: store.search(),
        lambda: store.add_label(route_label(run(), Mark.RIGHT)),
        lambda: store.all_labels(),
    ):
        with pytest.raises(HistoryUnavailable, match="CRAG_HISTORY is off"):
            use()
    assert (store.is_on, store.problem, list(tmp_path.iterdir())) == (False, "", [])


@pytest.mark.parametrize("setting", ["", "disk", " disk "])
def test_on_disk_it_lies_in_the_home(tmp_path: Path, setting: str) -> None:
    store = open_history(setting, tmp_path / "home ?%20#")
    store.save(run())
    assert store.is_on and (tmp_path / "home ?%20#" / "crag.db").is_file()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("dsik", "expected disk, off, or the URL of a database; found 'dsik'"),
        ("oracel://scott:s3cret@box/db", "expected postgresql://"),
        ("://s3cret", "expected postgresql://"),
        ("postgresql://scott:s3cr@s3cret@box/db", "expected postgresql://"),
        ("sqlite://", "a database that keeps what is written"),
        ("sqlite:///file:s3cret?mode=ro&uri=true", "a database that keeps what is written"),
        ("sqlite:///:memory:", "a database that keeps what is written"),
        ("postgresql+pg8000://scott:s3cret@box/db", "expected postgresql://"),
        ("sqlite+aiosqlite:////s3cret", "a database that keeps what is written"),
    ],
)
def test_a_setting_of_no_use_is_refused_without_its_password(tmp_path: Path, setting: str, words: str) -> None:
    with pytest.raises(BadRecord) as refusal:
        open_history(setting, tmp_path)
    assert words in str(refusal.value) and "s3cret" not in str(refusal.value)

"""A history that cannot be used says why and what to do, harms nothing, and works again when it can."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import HistoryUnavailable
from crag_core.storage.history import HistoryStore, database
from crag_core.storage.history.runs import EVERYTHING
from crag_core.trace.feedback import Mark
from tests.storage.history_parts import route_label, run, whole_run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def store(file: Path, monkeypatch: pytest.MonkeyPatch) -> HistoryStore:
    """With one run in it, and little patience."""
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    made = HistoryStore(file)
    made.save(whole_run())
    return made


USES: dict[str, Callable[[HistoryStore], object]] = {
    "save": lambda store: store.save(run("run-2")),
    "save_import": lambda store: store.save_import(run("run-2")),
    "add_label": lambda store: store.add_label(route_label(run(), Mark.RIGHT)),
    "remove_label": lambda store: store.remove_label(route_label(run(), Mark.RIGHT)),
    "load": lambda store: store.load("run-1"),
    "find": lambda store: store.find("run-1"),
    "labels": lambda store: store.labels("run-1"),
    "all_labels": lambda store: store.all_labels(),
    "search": lambda store: store.search(EVERYTHING),
    "count": lambda store: store.count(),
    "policies": lambda store: store.policies(),
    "measured": lambda store: store.measured(),
    "export": lambda store: list(store.export()),
    "delete_all": lambda store: store.delete_all(EVERYTHING),
    "prune": lambda store: store.prune(1.0),
}
WRITING = ("save", "save_import", "add_label", "remove_label", "delete_all", "prune")


def refused(store: HistoryStore, name: str) -> str:
    with pytest.raises(HistoryUnavailable) as refusal:
        USES[name](store)
    assert store.problem == str(refusal.value)
    return str(refusal.value)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@pytest.mark.parametrize("name", WRITING)
def test_while_another_keeps_it_locked_nothing_is_written_and_the_reason_is_told(
    store: HistoryStore, file: Path, name: str
) -> None:
    with locked(file):
        told = refused(store, name)
        assert f"The history {file} cannot be written" in told and "Another process" in told
        assert store.load("run-1") == whole_run(), "it can be read meanwhile"
    USES[name](store)
    assert store.problem == ""


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("content", [b"this was never a database " * 400, b"SQLite format 3\x00" + b"\xff" * 8000])
def test_a_damaged_file_is_told_and_left_as_it_is(file: Path, name: str, content: bytes) -> None:
    file.write_bytes(content)
    told = refused(HistoryStore(file), name)
    assert "damaged" in told and "move it away" in told
    assert file.read_bytes() == content


def test_a_damaged_file_that_is_moved_away_makes_room_for_a_new_one(store: HistoryStore, file: Path) -> None:
    file.write_bytes(b"no longer a database " * 400)
    refused(store, "save")
    file.rename(file.with_name("broken"))
    assert "was here and is not any more" in refused(store, "save")
    file.with_name("history.db.made").unlink()
    sqlite_file.SEEN.clear()  # as the next start of the program
    store.save(run("run-2"))
    assert [kept.id for kept in store.search()] == ["run-2"] and store.problem == ""


# --- versions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 99])
@pytest.mark.parametrize("name", USES)
def test_a_history_of_another_version_is_left_alone(store: HistoryStore, file: Path, name: str, version: int) -> None:
    with sqlite3.connect(file) as other:
        other.execute("UPDATE crag_history SET version = ?", (version,))
    told = refused(store, name)
    assert "Another version" in told and f"it has version {version}, expected 2" in told
    with sqlite3.connect(file) as other:
        assert other.execute("SELECT count(*) FROM crag_runs").fetchone() == (1,)

"""One history, several processes at once: nothing lost, nothing torn, whenever one of them is killed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from crag_core.storage.history import HistoryStore
from tests.matrix import mostly
from tests.storage.history_parts import large_run, run, whole_run
from tests.storage.history_worker import RUNS

REPOSITORY = Path(__file__).parents[2]


class Worker:
    """A process of its own that waits to be let go before it touches the history."""

    def __init__(self, place: Path | str, task: str, mark: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.storage.history_worker", str(place), task, mark],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def read_line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate(timeout=60)[1])
        return line

    def let_go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def finish(self) -> dict[str, Any]:
        output, errors = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, errors
        said: dict[str, Any] = json.loads(output)
        return said

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)


def run_together(place: Path | str, task: str) -> list[dict[str, Any]]:
    workers = [Worker(place, task, mark) for mark in ("a", "b")]
    for worker in workers:
        assert worker.read_line() == "ready\n"
    for worker in workers:
        worker.let_go()
    return [worker.finish() for worker in workers]


def test_two_processes_lose_and_tear_nothing(tmp_path: Path) -> None:
    """They make the file at the same time too."""
    file = tmp_path / "history.db"
    assert run_together(file, "hammer") == [{"lost": 0, "problem": ""}] * 2
    store = HistoryStore(file)
    assert len(store.search(limit=1000)) == 2 * RUNS + 1 and len(store.all_labels()) == 2 * RUNS
    assert store.load("shared") == whole_run("shared")


def test_two_processes_that_import_the_same_run_get_the_same_one(tmp_path: Path) -> None:
    one, other = run_together(tmp_path / "history.db", "import")
    assert one == other and one["id"].startswith("imported-")
    assert len(HistoryStore(tmp_path / "history.db").search()) == 1


@pytest.mark.parametrize("pause", mostly(0.05, 0.0, 0.15))
def test_a_process_that_is_killed_in_the_middle_of_a_save_leaves_the_history_whole(
    tmp_path: Path, pause: float
) -> None:
    file = tmp_path / "history.db"
    store = HistoryStore(file)
    store.save(run("mine"))
    worker = Worker(file, "save", "a")
    assert worker.read_line() == "ready\n"
    worker.let_go()
    assert worker.read_line() == "0\n"
    threading.Event().wait(pause)  # somewhere into the next save, which takes longer than that
    worker.kill()
    with sqlite3.connect(file) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert store.load("mine") == run("mine")
    for kept in store.search():
        assert kept.id == "mine" or store.load(kept.id) == large_run(kept.id)
    assert store.load("a-0") == large_run("a-0"), "what was saved is there"
    store.save(whole_run("after"))
    assert store.load("after") == whole_run("after") and store.problem == ""


def test_a_process_that_is_killed_while_it_makes_the_file_leaves_none_in_the_way(tmp_path: Path) -> None:
    (tmp_path / ".new-1").write_bytes(b"half a database")
    store = HistoryStore(tmp_path / "history.db")
    store.save(run())
    assert store.load("run-1") == run()
    assert {path.name for path in tmp_path.iterdir()} == {"history.db", "history.db.made", ".new-1"}

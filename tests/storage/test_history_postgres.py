"""The history in a PostgreSQL, against a real server: what holds in a file holds there, whoever dies."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path

import pytest

from crag_core.base.errors import HistoryUnavailable
from crag_core.storage.history import HistoryStore, open_history
from tests.stand_ins.local_server import HOST
from tests.stand_ins.postgres_server import USER, PostgresServer
from tests.storage import test_history_selection as selecting
from tests.storage import test_history_store as contract
from tests.storage.history_parts import Ticking, large_run, run, whole_run
from tests.storage.test_history_faults import USES, refused

AS_IN_A_FILE: list[Callable[[HistoryStore], None]] = [
    check
    for module in (contract, selecting)
    for name, check in vars(module).items()
    if name.startswith("test_") and [*signature(check).parameters] == ["store"]
]


def close(store: HistoryStore) -> None:
    store._database.close()


@pytest.fixture
def store(postgres_url: str) -> Iterator[HistoryStore]:
    store = HistoryStore(postgres_url, Ticking())
    yield store
    close(store)


@pytest.mark.parametrize("check", AS_IN_A_FILE, ids=[check.__name__ for check in AS_IN_A_FILE])
def test_it_does_what_a_file_does(store: HistoryStore, check: Callable[[HistoryStore], None]) -> None:
    check(store)


@pytest.mark.parametrize("scheme", ["postgresql://", "postgres://", "postgresql+psycopg://"])
def test_the_setting_is_the_url_as_people_write_it(postgres_url: str, tmp_path: Path, scheme: str) -> None:
    store = open_history(postgres_url.replace("postgresql://", scheme), tmp_path)
    store.save(run())
    assert store.load("run-1") == run() and list(tmp_path.iterdir()) == []
    close(store)


SAVING = """
import sys
from crag_core.storage.history import HistoryStore
from tests.storage.history_parts import large_run
store, number = HistoryStore(sys.argv[1]), 0
while True:
    store.save(large_run(f"a-{number % 3}"))
    print(number, flush=True)
    number += 1
"""


def test_a_process_that_is_killed_in_the_middle_of_a_save_leaves_the_history_whole(
    store: HistoryStore, postgres_url: str
) -> None:
    store.save(run("mine"))
    command = [sys.executable, "-c", SAVING, postgres_url]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None and worker.stdout.readline() == "0\n"
        time.sleep(0.05)  # somewhere into the next save, which takes longer than that
        worker.kill()
    assert store.load("a-0") == large_run("a-0"), "what was saved is there"
    for kept in store.search():
        assert kept.id == "mine" or store.load(kept.id) == large_run(kept.id)
    store.save(whole_run("after"))
    assert store.load("after") == whole_run("after") and store.problem == ""


def test_a_server_that_is_killed_is_told_and_used_again_when_it_is_back(postgres: PostgresServer) -> None:
    with PostgresServer() as server:
        store = HistoryStore(server.url, Ticking())
        store.save(whole_run())
        server.stop()
        for name in USES:
            told = refused(store, name)
            assert f"postgresql://{HOST}:{server.port}/postgres cannot be" in told and "lets you in" in told
        server.start()
        assert store.load("run-1") == whole_run() and store.problem == ""
        store.save(run("run-2"))
        assert len(store.search()) == 2
        server.stop()
        server.start()
        store.save(run("run-3"))
        assert len(store.search()) == 3 and store.problem == "", "nobody saw that it was away"
        close(store)


def test_a_wrong_password_is_told_and_not_shown(postgres: PostgresServer) -> None:
    store = HistoryStore(postgres.url_of("postgres", USER, "wrong-word"))
    with pytest.raises(HistoryUnavailable) as refusal:
        store.search()
    assert "wrong-word" not in str(refusal.value) + store.problem and "lets you in" in str(refusal.value)
    close(store)

"""Real processes, killed at random moments of adding, replacing, removing, re-indexing, grading, keeping runs and sets
and copying, and two at work at once.

Nothing that was acknowledged is lost, nothing is torn, and no step of repair is needed before the index is used.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from crag_core.base.concurrency.sqlite_file import NAME
from crag_core.base.documents import IngestOutcome
from crag_core.experiments.store import ExperimentStore
from crag_core.retrieval.index import ingest
from crag_core.retrieval.index.index_writer import name_content
from crag_core.retrieval.index.store import PassageStore
from crag_core.storage.cache import TableCache
from crag_core.storage.history import HistoryStore
from tests.matrix import mostly
from tests.retrieval.conftest import REPOSITORY
from tests.retrieval.fakes import WordEmbedder, embed_words, write_prose
from tests.retrieval.processes import wait_until
from tests.retrieval.store_worker import open_store
from tests.storage.history_parts import whole_run


def check(folder: Path) -> PassageStore:
    """Every document is whole, with its file and in both searches; what is not whole says so."""
    store = open_store(folder)
    rows = store.listing()
    for row in rows:
        passages = store.passages_of(row.id)
        assert [one.ordinal for one in passages] == list(range(row.passages)), row
        assert row.is_whole or row.is_under_way
        assert bool(passages) == (row.is_whole or row.is_partial)
        if passages:
            assert name_content(store.read_original(row.id)) == row.id
    names = [row.name for row in rows if row.is_whole]
    assert len(names) == len({*names}), "a name has one content"
    ids = {one.id for row in rows for one in store.passages_of(row.id)}
    assert {hit.passage.id for hit in store.search_dense(embed_words("sentence"), 10_000)} == ids
    assert bool(store.search_keyword("sentence", 1)) == bool(ids)
    with closing(sqlite3.connect(folder / NAME)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        version = store.index_version.id
        database.execute(f"INSERT INTO words_{version} (words_{version}) VALUES ('integrity-check')")
        sizes = [
            database.execute(f"SELECT count(*) FROM {table}_{version}").fetchone() for table in ("passages", "words")
        ]
        assert sizes[0] == sizes[1]
    return store


@contextmanager
def working(folder: Path, seed: int, told: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker that is ready; what it says goes into a file, and it is killed at the end."""
    with told.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.retrieval.store_worker", str(folder), str(seed)],
            cwd=REPOSITORY, stdout=file, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
    try:
        while "ready" not in told.read_text():
            assert process.poll() is None, told.read_text()
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -9, told.read_text()


def wait_for_lines(told: Path, seed: int, most: int) -> None:
    """A number of steps and a moment, at random, however busy this machine is."""
    dice = random.Random(seed)
    steps = dice.randrange(most)
    wait_until(lambda: len(told.read_text().splitlines()) > steps, 60)
    time.sleep(dice.uniform(0, 0.1))


def keep(kept: dict[str, set[str]], told: list[str], folder: Path) -> None:
    """All runs, grades and questions that were acknowledged are there, and whole copies that have those before them."""
    for line in told:
        match line.split():
            case ["copied", mark]:
                with closing(sqlite3.connect(folder / f"copy-{mark}.db")) as copy:
                    assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                    runs = copy.execute("SELECT id FROM crag_runs").fetchall() if kept["saved"] else []
                assert {run for (run,) in runs} >= kept["saved"]
                (folder / f"copy-{mark}.db").unlink()
            case [("saved" | "graded" | "labelled") as what, mark]:
                kept[what].add(mark)
    history, grades = HistoryStore(folder / NAME), TableCache(folder / NAME, 3600.0)
    assert all(history.load(run) == whole_run(run) for run in kept["saved"])
    assert grades.get_many([*kept["graded"]]).keys() == kept["graded"] and not grades.problem
    if kept["labelled"]:
        read = ExperimentStore(folder).load_set("own")
        assert {one.question for one in read.questions} >= {f"{mark}?" for mark in kept["labelled"]}


def expect(known: dict[str, str], told: list[str], store: PassageStore) -> dict[str, str]:
    """What is there after a kill: all that was acknowledged; of the change under way either state."""
    under_way = ""
    for line in told:
        match line.split():
            case ["added", name, id_]:
                known, under_way = {**known, name: id_}, ""
            case ["removed", name]:
                known, under_way = {one: known[one] for one in known if one != name}, ""
            case ["rebuilt", _]:
                under_way = ""
            case [_, under_way]:
                pass
    there = {row.name: row.id for row in store.documents()}
    for name in {*known, *there} - {under_way}:
        assert there.get(name) == known.get(name), (name, told[-3:])
    return there


@pytest.mark.parametrize("kills", mostly(5, 100))
def test_killed_at_random_moments(tmp_path: Path, kills: int) -> None:
    known: dict[str, str] = {}
    kept: dict[str, set[str]] = {"saved": set(), "graded": set(), "labelled": set()}
    folder = tmp_path / "index"
    for seed in range(kills):
        with working(folder, seed, tmp_path / "told"):
            wait_for_lines(tmp_path / "told", seed, 12)
        if not (folder / NAME).exists():
            continue
        store = check(folder)
        told = (tmp_path / "told").read_text().splitlines()[1:]
        keep(kept, told, folder)
        known = expect(known, told, store)
        store.take_over()
        waiting = {row.name for row in store.listing() if row.is_under_way}
        assert {one.name for one in store.finish_interrupted()} == waiting
        assert not any(row.is_under_way or row.is_partial for row in check(folder).listing())
        known = {row.name: row.id for row in store.documents()}
    assert known and all(kept.values())


def test_two_processes_at_work_and_a_reader_lose_and_tear_nothing(tmp_path: Path) -> None:
    folder, searches = tmp_path / "index", 0
    with working(folder, 1, tmp_path / "one"), working(folder, 2, tmp_path / "two"):
        store = PassageStore(folder, WordEmbedder())
        end = time.monotonic() + 1
        while time.monotonic() < end:
            for hit in [*store.search_keyword("sentence", 50), *store.search_dense(embed_words("sentence"), 50)]:
                assert hit.passage.text and hit.passage.source
                searches += 1
    assert searches
    check(folder)


def test_what_a_worker_that_lives_has_begun_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "PART", 2)
    other, seen = PassageStore(tmp_path, WordEmbedder()), list[object]()

    def look(progress: object) -> None:
        seen.append(other.finish_interrupted())

    PassageStore(tmp_path, WordEmbedder()).ingest([("long.txt", write_prose("gulls", 150))], look)
    assert len(seen) > 3 and {one for one in seen} == {()}
    assert other.ingest([("long.txt", write_prose("gulls", 150))])[0].outcome == IngestOutcome.ALREADY
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("working-")]

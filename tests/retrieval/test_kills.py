"""A process that dies at every step of indexing, one after the other: each document is whole or absent, none forgotten.

Dying is an exception that nothing catches, so that every step can be tried; a few of the steps are then died at by real
processes and a real SIGKILL.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crag_core.retrieval.backends.backend import name_content
from crag_core.retrieval.index.store import PassageStore
from tests.matrix import mostly
from tests.retrieval.conftest import REPOSITORY
from tests.retrieval.dying import BEFORE, FILES, Killed, dying_at, index, replace_one
from tests.retrieval.fakes import WordEmbedder, embed_words

STEPS = 200  # more than there are


def whole(folder: Path) -> dict[str, int]:
    """Names and versions of the documents, after it was checked that each has all its passages and its own file."""
    store = PassageStore(folder, WordEmbedder())
    for document in store.documents():
        passages = store.passages_of(document.id)
        assert [one.ordinal for one in passages] == list(range(document.passages)), document.name
        assert name_content(store.read_original(document.id)) == document.id
    for held in store._index_writer.passages().documents():
        assert [one.ordinal for one in store.passages_of(held.id)] == list(range(held.passages)), "none twice"
    return {document.name: document.version for document in store.documents()}


def finish(folder: Path) -> PassageStore:
    """What the next start does; twice is once."""
    store = PassageStore(folder, WordEmbedder())
    store.finish_interrupted()
    assert store.finish_interrupted() == ()
    states = {row.state for row in store.listing()}
    assert states <= {"indexed"}, states
    return store


def every_step(tmp_path: Path, work: Callable[[Path], None], at_least: int = 10) -> Iterator[Path]:
    """A folder for each step of `work`, left as dying just before it leaves it."""
    for step in range(STEPS):
        folder = tmp_path / str(step)
        PassageStore(folder, WordEmbedder()).ingest(BEFORE)
        try:
            with dying_at(step):
                work(folder)
        except Killed:
            yield folder
        else:
            assert step > at_least, "there are steps to die at"
            return
    raise AssertionError(f"more than {STEPS} steps")


@pytest.fixture(autouse=True)
def _owners_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who died here is this very process, which is still alive."""
    monkeypatch.setattr("crag_core.retrieval.index.index_writer.is_alive", lambda owner, said_at: False)


def test_dying_at_any_step_of_indexing(tmp_path: Path) -> None:
    old = [name for name, _ in BEFORE]
    seen: set[int] = set()
    for folder in every_step(tmp_path, index):
        left = whole(folder)
        assert set(old) <= set(left) <= {*old, *(name for name, _ in FILES)}
        waiting = {row.name for row in PassageStore(folder, WordEmbedder()).listing() if row.is_under_way}
        store = finish(folder)
        after = whole(folder)
        assert set(after) == set(left) | waiting, "what had been begun is there, and nothing else"
        seen.add(len(after) - len(old))
        index(folder)
        assert set(whole(folder)) == {*old, *(name for name, _ in FILES)} and store.search_keyword("buoys", 1)
    assert seen == {0, len(FILES)}, "once the files are kept all of them come in"


def test_dying_while_a_part_of_a_long_document_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crag_core.retrieval.index.ingest.PART", 2)
    old = {name for name, _ in BEFORE}
    long, parts = FILES[2], set()
    work = every_step(tmp_path, lambda folder: PassageStore(folder, WordEmbedder()).ingest([long]))
    for step, folder in enumerate(work):
        whole(folder)
        store = PassageStore(folder, WordEmbedder())
        parts |= {row.passages for row in store.listing() if row.is_partial}
        waiting = {row.name for row in store.interrupted()}
        assert {row.name for row in store.interrupted()} == waiting, "asked twice, the same"
        # Whole or absent from here on, before anybody has answered.
        assert {one.id for one in store._index_writer.passages().documents()} == {one.id for one in store.documents()}
        assert {one.name for one in store.documents()} | waiting in (old, {*old, long[0]})
        if step % 2 and waiting:
            assert {row.name for row in store.discard_interrupted()} == waiting
            assert store.interrupted() == () and {row.name for row in store.listing()} == old
        else:
            finish(folder)
            assert set(whole(folder)) == {one.name for one in store.documents()} >= waiting
        store.ingest([long])
        assert set(whole(folder)) == {*old, long[0]}
    assert parts == {2, 4, 6}


@pytest.mark.exhaustive
def test_dying_at_any_step_of_replacing_never_leaves_neither_and_never_both(tmp_path: Path) -> None:
    for folder in every_step(tmp_path, replace_one):
        store = PassageStore(folder, WordEmbedder())
        assert [name for name in whole(folder) if name == "guide.txt"], "one of the two contents is there"
        begun = any(row.name == "guide.txt" and row.is_under_way for row in store.listing())
        began_before = whole(folder)["guide.txt"] == 2
        finish(folder)
        assert whole(folder)["guide.txt"] == 1 + (begun or began_before)
        found = {hit.passage.document_id for hit in store.search_keyword("ropes winches", 50)}
        assert len(found) == 1, "only one content is found"


def test_dying_at_any_step_of_deleting(tmp_path: Path) -> None:
    def delete(folder: Path) -> None:
        store = PassageStore(folder, WordEmbedder())
        store.delete_all(document.id for document in store.documents())

    left = set()
    for folder in every_step(tmp_path, delete, at_least=4):
        store = finish(folder)
        left.add(len(whole(folder)))
        assert store.count() == sum(document.passages for document in store.documents())
        assert bool(store.search_keyword("ropes", 5)) == bool(store.documents())
    assert left == {0, len(BEFORE)}, "all or none of what was to go"


def test_dying_at_any_step_of_moving(tmp_path: Path) -> None:
    def move(folder: Path) -> None:
        store = PassageStore(folder, WordEmbedder())
        store.move([document.id for document in store.documents()], "harbour")

    left = set()
    for folder in every_step(tmp_path, move, at_least=2):
        store = finish(folder)
        places = {document.collection for document in store.documents()}
        left |= places
        assert len(places) == 1 and store.count(*places) == store.count() > 0
        assert store.search_keyword("ropes", 5, *places) and not store.search_keyword("ropes", 5, "elsewhere")
        assert store.search_dense(embed_words("ropes"), 5, *places)
    assert left == {"main", "harbour"}


def run_and_die(folder: Path, step: int) -> int:
    command = [sys.executable, "-m", "tests.retrieval.dying", str(folder), str(step)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


@pytest.mark.exhaustive
@pytest.mark.parametrize("every", mostly(12, 4))
def test_real_processes_killed_at_many_steps(tmp_path: Path, every: int) -> None:
    steps = range(0, 40, every)
    folders = {step: tmp_path / str(step) for step in steps}
    with ThreadPoolExecutor(2) as pool:
        codes = dict(zip(steps, pool.map(run_and_die, folders.values(), steps), strict=True))
    assert list(codes.values()).count(-signal.SIGKILL) >= 24 // every
    for folder in folders.values():
        left = whole(folder)
        finish(folder)
        assert set(left) <= set(whole(folder))
        index(folder)
        assert set(whole(folder)) == {name for name, _ in FILES}

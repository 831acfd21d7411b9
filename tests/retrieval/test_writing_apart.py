"""The index is written in a process of its own: dying there costs at most the document that it died over."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from filelock import FileLock
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from crag_core.base.documents import IndexVersion, IngestOutcome, State
from crag_core.base.errors import Stopped, StoreUnavailable, WriteLost
from crag_core.retrieval.backends.backend import name_content
from crag_core.retrieval.backends.disk import FolderBackend
from crag_core.retrieval.backends.lance.writer import Writer
from crag_core.retrieval.index.store import PassageStore
from tests.matrix import mostly
from tests.retrieval.conftest import REPOSITORY
from tests.retrieval.dying import BEFORE, FILES
from tests.retrieval.failing_writes import DyingAt, Poisoned, Writing
from tests.retrieval.fakes import WordEmbedder, embed_words, write_prose
from tests.retrieval.test_kills import finish, whole

WORDS = IndexVersion(embedding="words-64")
NAMES = {name for name, _ in (*BEFORE, *FILES)}


@pytest.fixture
def writer() -> Iterator[Writer]:
    one = Writer()
    yield one
    one.close()


def store_of(folder: Path, writing: Writing | Writer) -> PassageStore:
    return PassageStore(FolderBackend(folder, writing.write), WordEmbedder())


# --- what made it die -------------------------------------------------------------------------------------------------


def equal_texts_and_a_long_one() -> list[TextNode]:
    """As one line of 10 MB beside a file that repeats itself gave; a document each."""
    texts = ["x" * 30, "y " * 5_000_000, *["漢" * 220] * 9_000]
    return [
        TextNode(
            text=text,
            id_=f"{'0' * 32}-{number}",
            metadata={"file_name": "a.txt", "ordinal": number, "pages": 0, "characters": len(text)},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="0" * 32)},
            embedding=embed_words(str(number)),
        )
        for number, text in enumerate(texts)
    ]


def add_and_tidy(folder: Path) -> None:
    """In a process that may not reserve what would be asked for: 30 GB."""
    passages = FolderBackend(folder).passages(WORDS)
    passages.add(equal_texts_and_a_long_one(), {"0" * 32: "main"})
    resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30, 12 * 2**30))
    passages.tidy()
    assert len(passages.of("0" * 32)) == 9_002
    assert passages.search_keyword("漢" * 220, 3)


@pytest.mark.exhaustive
def test_a_long_text_among_equal_ones_takes_no_memory_that_is_not_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.retrieval.test_writing_apart", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-500:]


# --- dying at every write ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_late", [False, True], ids=["before", "after"])
def test_dying_once_at_any_write_costs_nothing(tmp_path: Path, is_late: bool) -> None:
    for step in range(100):
        folder = tmp_path / str(step)
        PassageStore(folder, WordEmbedder()).ingest(BEFORE)
        writing = DyingAt(step, is_late=is_late)
        store = store_of(folder, writing)
        store.ingest(FILES)
        assert set(whole(folder)) == NAMES, writing.calls
        assert store.search_keyword("buoys", 1) and {row.state for row in store.listing()} == {State.INDEXED}
        if len(writing.calls) <= step:
            assert step > 6, "there are writes to die at"
            return
    raise AssertionError("more than 100 writes")


@pytest.mark.parametrize("times", mostly(3, 2, 5))
def test_dying_again_and_again_leaves_every_document_whole_or_absent(
    tmp_path: Path, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crag_core.retrieval.index.index_writer.is_alive", lambda owner, said_at: False)
    for step in range(0, 100, 2):
        folder = tmp_path / str(step)
        PassageStore(folder, WordEmbedder()).ingest(BEFORE)
        writing = DyingAt(step, times, is_late=bool(step % 4))
        try:
            told = store_of(folder, writing).ingest(FILES)
        except StoreUnavailable:
            told = ()
        left = whole(folder)
        assert {name for name, _ in BEFORE} <= set(left) <= NAMES
        assert {one.name for one in told if one.outcome == IngestOutcome.INDEXED} <= set(left)
        with FileLock(folder / "write.lock", timeout=0):
            pass
        again = PassageStore(folder, WordEmbedder())
        again.finish_interrupted()
        again.ingest(FILES)
        assert set(whole(folder)) == NAMES
        if len(writing.calls) <= step:
            return


# --- a document that it always dies over ------------------------------------------------------------------------------


def test_a_document_that_cannot_be_tidied_is_named_and_set_aside(tmp_path: Path) -> None:
    PassageStore(tmp_path, WordEmbedder()).ingest([*BEFORE, *FILES])
    bad = name_content(dict(FILES)["gulls.txt"])
    store = store_of(tmp_path, Poisoned([bad], ["tidy", "rebuild_keywords", "rehearse"]))
    (new, gone) = store.ingest([("small.txt", b"thirty-one bytes and no more...")])
    assert new.outcome == IngestOutcome.INDEXED
    assert (gone.name, gone.outcome) == ("gulls.txt", IngestOutcome.REFUSED) and "gulls.txt" in gone.message
    assert store.remark.startswith("The keyword index was damaged and has been rebuilt") and "gulls" in store.remark
    (row,) = [row for row in store.listing() if row.name == "gulls.txt"]
    assert row.state == State.REFUSED and row.message and row.hint
    assert set(whole(tmp_path)) == NAMES - {"gulls.txt"} | {"small.txt"}
    assert not [hit for hit in store.search_keyword("gulls", 20) if hit.passage.source == "gulls.txt"]
    assert store.search_keyword("thirty", 1) and store.search_keyword("seals", 1)
    store.ingest([("other.txt", b"another one")])
    assert store.remark == "", "all is well again"


def test_a_document_that_cannot_be_written_is_refused_and_the_others_are_in(tmp_path: Path) -> None:
    bad = name_content(dict(FILES)["gulls.txt"])
    store = store_of(tmp_path, Poisoned([bad], ["add_rows"]))
    told = {one.name: one.outcome for one in store.ingest([*BEFORE, *FILES])}
    assert told.pop("gulls.txt") == IngestOutcome.REFUSED and set(told.values()) == {IngestOutcome.INDEXED}
    assert set(whole(tmp_path)) == NAMES - {"gulls.txt"}
    assert [row.state for row in store.listing() if row.name == "gulls.txt"] == [State.REFUSED]


def test_where_no_document_is_at_fault_none_is_set_aside(tmp_path: Path) -> None:
    PassageStore(tmp_path, WordEmbedder()).ingest([*BEFORE, *FILES])
    ids = [row.id for row in PassageStore(tmp_path, WordEmbedder()).documents()]
    for deadly in (["tidy", "rebuild_keywords"], ["tidy", "rebuild_keywords", "rehearse"]):
        store = store_of(tmp_path, Poisoned(ids, deadly))
        (new,) = store.ingest([(f"new{len(deadly)}.txt", write_prose(f"tides {len(deadly)}"))])
        assert new.outcome == IngestOutcome.INDEXED and "could not be rebuilt" in store.remark
        assert "reindex" in store.remark
        assert set(whole(tmp_path)) >= NAMES


def test_dying_while_a_document_is_set_aside_is_made_good_by_the_next_write(tmp_path: Path) -> None:
    for step in range(20):
        folder = tmp_path / str(step)
        PassageStore(folder, WordEmbedder()).ingest([*BEFORE, *FILES])
        row = next(row for row in PassageStore(folder, WordEmbedder()).documents() if row.name == "gulls.txt")
        writing = DyingAt(step, 3)
        shelf = store_of(folder, writing)._index_writer
        with suppress(WriteLost):
            shelf.set_aside(row)
            assert step > 1, "there are writes to die at"
            return
        PassageStore(folder, WordEmbedder()).ingest([("new.txt", b"another one")])
        left = whole(folder)
        held = {one.name for one in shelf.passages().documents()}
        assert held == set(left), "the chunks of a document are in when it is, and no others"


# --- the real process -------------------------------------------------------------------------------------------------


def processes_of(writer: Writer) -> list[int]:
    return [process._process.pid for process in writer._processes if not process.is_over]


@pytest.mark.exhaustive
def test_a_process_that_is_killed_in_mid_write_costs_nothing(
    tmp_path: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crag_core.retrieval.index.index_writer.is_alive", lambda owner, said_at: False)
    store = store_of(tmp_path, writer)
    store.ingest(BEFORE)
    done = threading.Event()
    killed: set[int] = set()

    def kill() -> None:
        while not done.wait(0.05):
            busy = [process for process in writer._processes if process.is_busy and process._is_ready]
            for process in busy if len(killed) < 4 else ():
                done.wait(0.02 * len(killed))
                os.kill(process._process.pid, signal.SIGKILL)
                killed.add(process._process.pid)
                done.wait(2)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for round_ in range(4):
            with suppress(StoreUnavailable):
                store.ingest([(f"{round_}-{name}", content + str(round_).encode()) for name, content in FILES])
            whole(tmp_path)
    finally:
        done.set()
        killer.join()
    assert killed
    with FileLock(tmp_path / "write.lock", timeout=0):
        pass
    store.ingest(FILES)
    assert set(whole(tmp_path)) >= NAMES and finish(tmp_path).search_keyword("buoys", 1)


def test_it_ends_when_nothing_comes_and_starts_again(tmp_path: Path) -> None:
    writer = Writer(idle=0.2)
    store = store_of(tmp_path, writer)
    store.ingest(BEFORE)
    (first,) = writer._processes
    deadline = time.monotonic() + 30
    while not first.is_over and time.monotonic() < deadline:
        time.sleep(0.05)
    assert first.is_over
    store.ingest(FILES)
    assert set(whole(tmp_path)) == NAMES
    writer.close()


def test_once_closed_nothing_is_written_and_no_process_is_left(tmp_path: Path, writer: Writer) -> None:
    store = store_of(tmp_path, writer)
    store.ingest(BEFORE)
    (pid,) = processes_of(writer)
    writer.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(Stopped):
        store._index_writer.move([store.documents()[0].id], "harbour")


def test_it_ends_with_an_application_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from tests.retrieval.test_writing_apart import *; w = Writer();"
        "store_of(Path(sys.argv[1]), w).ingest(BEFORE); print(*processes_of(w), flush=True); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    (pid,) = map(int, done.stdout.split())
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and Path(f"/proc/{pid}/stat").exists():
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}/stat").exists()


def test_what_a_write_raises_is_raised_here(tmp_path: Path, writer: Writer) -> None:
    store = store_of(tmp_path, writer)
    store.ingest(BEFORE)
    (tmp_path / "passages.lance" / "_versions").rename(tmp_path / "aside")
    (tmp_path / "passages.lance" / "_versions").write_text("no folder")
    with pytest.raises(StoreUnavailable) as fault:
        store.ingest(FILES)
    assert "cannot be used" in fault.value.message and not isinstance(fault.value, WriteLost) and fault.value.hint


if __name__ == "__main__":
    add_and_tidy(Path(sys.argv[1]))

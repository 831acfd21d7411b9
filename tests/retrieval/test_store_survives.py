"""Kills, two processes, and folders that are not as they should be."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crag_core.base.documents import IngestOutcome
from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.backends.lance.passages import LancePassages
from crag_core.retrieval.index.store import PassageStore
from tests.matrix import mostly
from tests.retrieval.conftest import REPOSITORY
from tests.retrieval.fakes import WordEmbedder, write_prose

LONG = "an endless story of the sea"
COMMON = ("seals.txt=seals", "gulls.txt=gulls", "guide.txt=ropes")
WORKERS = {
    "new": ("second batch", f"long.txt={LONG}", "gulls.txt=gulls"),
    "replacing": ("after add", "guide.txt=seals"),
    "first of two": ("never", *COMMON, *(f"a{n}.txt=anchors {n}" for n in range(5))),
    "second of two": ("never", *COMMON, *(f"b{n}.txt=buoys {n}" for n in range(5))),
}


class Worker:
    """A process of its own that waits to be let go before it touches its folder."""

    def __init__(self, folder: Path, moment: str, *files: str) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.retrieval.ingest_worker", str(folder), moment, *files],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def let_go(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise AssertionError(self._process.communicate(timeout=60)[1])
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def finish(self) -> tuple[int, list[str]]:
        output, errors = self._process.communicate(timeout=120)
        assert self._process.returncode in (0, -signal.SIGKILL), errors
        return self._process.returncode, output.splitlines()

    def discard(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Worker]]:
    """All at once, because most of their time goes into starting up."""
    together = tmp_path_factory.mktemp("together")
    started = {
        name: Worker(together if name.endswith("of two") else tmp_path_factory.mktemp("killed"), *arguments)
        for name, arguments in WORKERS.items()
    }
    yield started
    for worker in started.values():
        worker.discard()


def run_to_death(worker: Worker) -> None:
    worker.let_go()
    assert worker.finish()[0] == -signal.SIGKILL, "the worker was killed where it was meant to be"


def prose_of(name: str, topic: str) -> tuple[str, bytes]:
    return name, write_prose(topic)


def index_again(folder: Path) -> None:
    store = PassageStore(folder, WordEmbedder())
    store.ingest([prose_of("long.txt", LONG), prose_of("gulls.txt", "gulls"), prose_of("塔.txt", "電波塔です")])
    assert [document.name for document in store.documents()] == ["gulls.txt", "long.txt", "塔.txt"]
    # Without its own index LanceDB searches too, but takes a Chinese or Japanese sentence for one word.
    for word in ("endless", "gulls", "電波塔"):
        assert store.search_keyword(word, 5)


@pytest.mark.exhaustive
def test_a_kill_while_indexing_leaves_documents_whole_or_absent(workers: dict[str, Worker]) -> None:
    run_to_death(workers["new"])
    store = PassageStore(workers["new"].folder, WordEmbedder())
    assert store.documents() == () and store.count() == 0
    assert {row.name: row.is_under_way for row in store.listing()} == {"long.txt": True, "gulls.txt": True}
    done = store.finish_interrupted()
    assert {one.name: one.outcome for one in done} == {"gulls.txt": "indexed", "long.txt": "indexed"}
    index_again(workers["new"].folder)


@pytest.mark.exhaustive
def test_a_kill_while_replacing_never_leaves_neither(workers: dict[str, Worker]) -> None:
    store = PassageStore(workers["replacing"].folder, WordEmbedder())
    store.ingest([prose_of("guide.txt", "tides"), prose_of("other.txt", "gulls")])
    run_to_death(workers["replacing"])
    assert store.search_keyword("seals", 1) and store.search_keyword("tides", 1)

    (again,) = store.ingest([prose_of("guide.txt", "seals")])
    assert again.outcome == IngestOutcome.ALREADY
    assert [document.name for document in store.documents()] == ["guide.txt", "other.txt"]
    assert store.search_keyword("seals", 1) and not store.search_keyword("tides", 1)


class Killed(BaseException):
    """Leaves the disk as a kill does: nothing here catches it, and nothing here cleans up."""


@pytest.mark.parametrize(
    ("moment", "left"),
    [
        ("lancedb.table.LanceTable.create_index", []),
        ("crag_core.retrieval.backends.lance.passages.LancePassages.add", []),
        ("crag_core.retrieval.backends.lance.passages.LancePassages.tidy", ["gulls.txt", "long.txt"]),
    ],
)
def test_dying_at_any_moment_can_be_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, left: list[str]
) -> None:
    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(moment, die)
        with pytest.raises(Killed):
            PassageStore(tmp_path, WordEmbedder()).ingest([prose_of("long.txt", LONG), prose_of("gulls.txt", "gulls")])
    assert [document.name for document in PassageStore(tmp_path, WordEmbedder()).documents()] == left
    index_again(tmp_path)


def test_a_new_version_that_dies_on_its_way_in_leaves_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(self: object, nodes: object, collections: object) -> None:
        raise Killed

    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest([prose_of("guide.txt", "tides")])
    with monkeypatch.context() as patched:
        patched.setattr("crag_core.retrieval.backends.lance.passages.LancePassages.add", die)
        with pytest.raises(Killed):
            store.ingest([prose_of("guide.txt", "seals")])
    assert store.search_keyword("tides", 1) and not store.search_keyword("seals", 1)
    (again,) = store.ingest([prose_of("guide.txt", "seals")])
    assert again.outcome == IngestOutcome.REPLACED


@pytest.mark.exhaustive
def test_two_processes_starting_an_index_together_lose_and_double_nothing(workers: dict[str, Worker]) -> None:
    first, second = workers["first of two"], workers["second of two"]
    first.let_go()
    second.let_go()
    (code, lines), (other_code, other_lines) = first.finish(), second.finish()
    assert (code, other_code) == (0, 0)
    lines += other_lines
    for name in ("seals.txt", "gulls.txt", "guide.txt"):
        assert lines.count(f"indexed {name}") == lines.count(f"already indexed {name}") == 1

    store = PassageStore(first.folder, WordEmbedder())
    files = WORKERS["first of two"][1:] + WORKERS["second of two"][1:]
    expected = {file.partition("=")[0] for file in files}
    assert [document.name for document in store.documents()] == sorted(expected)
    ids = [passage.id for document in store.documents() for passage in store.passages_of(document.id)]
    assert len(ids) == len(set(ids)) == store.count()


def test_damaged_files_are_an_error_with_advice(tmp_path: Path) -> None:
    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest([prose_of("guide.txt", "tides")])
    for path in (tmp_path / "passages.lance" / "_versions").iterdir():
        path.write_bytes(b"garbage" * 9)
    for broken in (store, PassageStore(tmp_path, WordEmbedder())):
        with pytest.raises(StoreUnavailable) as fault:
            broken.search_keyword("tides", 1)
        assert "move it away" in fault.value.hint and str(tmp_path) in fault.value.message


def test_lost_data_files_are_an_error_with_advice(tmp_path: Path) -> None:
    PassageStore(tmp_path, WordEmbedder()).ingest([prose_of("guide.txt", "tides")])
    for path in (tmp_path / "passages.lance" / "data").iterdir():
        path.unlink()
    with pytest.raises(StoreUnavailable):
        PassageStore(tmp_path, WordEmbedder()).search_keyword("tides", 1)


def damaged(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "cut":
        content = content[: len(content) // 2]
    else:
        places = range(0, len(content), 7) if how == "overwritten" else range(max(len(content) - 200, 0), len(content))
        for at in places:
            content[at] ^= 0x5A
    path.write_bytes(content)


@pytest.mark.parametrize("how", mostly("overwritten", "cut", "overwritten at the end"))
@pytest.mark.parametrize("part", mostly("data", "_versions", "_indices"))
def test_files_of_the_index_cut_short_or_overwritten_are_an_error_and_no_more(
    tmp_path: Path, part: str, how: str
) -> None:
    """In a process of its own, since nothing else would show that none of this ends one."""
    PassageStore(tmp_path, WordEmbedder()).ingest([prose_of("guide.txt", "tides"), prose_of("other.txt", "gulls")])
    for table in ("passages", "documents", "generations"):
        for path in (tmp_path / f"{table}.lance" / part).rglob("*"):
            if path.is_file():
                damaged(path, how)
    done = subprocess.run(
        [sys.executable, "-m", "tests.retrieval.use_damaged", str(tmp_path)],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    assert "cannot be used" in done.stdout


def test_a_damaged_keyword_index_is_made_anew_by_the_next_upload(tmp_path: Path) -> None:
    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest([prose_of("guide.txt", "tides")])
    for path in (tmp_path / "passages.lance" / "_indices").rglob("*.lance"):
        damaged(path, "cut")
    store = PassageStore(tmp_path, WordEmbedder())
    with pytest.raises(StoreUnavailable):
        store.search_keyword("tides", 1)
    (other,) = store.ingest([prose_of("other.txt", "gulls")])
    assert other.outcome == IngestOutcome.INDEXED and "has been rebuilt" in store.remark
    assert PassageStore(tmp_path, WordEmbedder()).search_keyword("tides", 1)
    assert store.search_keyword("gulls", 1)


def test_a_panic_of_the_engine_is_an_error_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a `BaseException`, of a type that cannot be imported."""

    class PanicException(BaseException):
        pass

    def panic(self: object, *arguments: object, **options: object) -> None:
        raise PanicException("index out of bounds: the len is 0 but the index is 3")

    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest([prose_of("guide.txt", "tides")])
    monkeypatch.setattr("lancedb.table.LanceTable.search", panic)
    with pytest.raises(StoreUnavailable, match="index out of bounds") as fault:
        store.search_keyword("tides", 1)
    assert "if damaged" in fault.value.hint


def test_a_folder_left_without_a_table_is_used(tmp_path: Path) -> None:
    (tmp_path / "passages.lance" / "_versions").mkdir(parents=True)
    store = PassageStore(tmp_path, WordEmbedder())
    assert store.count() == 0
    store.ingest([prose_of("guide.txt", "tides")])
    assert store.search_keyword("tides", 1)


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="skipped: needs a folder that nobody can write to")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for folder in (Path("/proc/crag-index"), tmp_path / "file" / "index"):
        store = PassageStore(folder, WordEmbedder())
        assert store.count() == 0
        with pytest.raises(StoreUnavailable) as fault:
            store.ingest([prose_of("guide.txt", "tides")])
        assert fault.value.hint


def test_a_full_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, nodes: object, collections: object) -> None:
        raise OSError(28, "No space left on device")

    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest([prose_of("guide.txt", "tides")])
    with monkeypatch.context() as patched:
        patched.setattr(LancePassages, "add", fail)
        with pytest.raises(StoreUnavailable, match="No space left") as fault:
            store.ingest([prose_of("other.txt", "gulls")])
    assert "disk space" in fault.value.hint
    assert [document.name for document in store.documents()] == ["guide.txt"]


def test_a_writer_that_never_ends_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    monkeypatch.setattr("crag_core.retrieval.backends.disk._LOCK_SECONDS", 0)
    with FileLock(tmp_path / "write.lock"), pytest.raises(StoreUnavailable, match="Another process"):
        PassageStore(tmp_path, WordEmbedder()).ingest([prose_of("guide.txt", "tides")])

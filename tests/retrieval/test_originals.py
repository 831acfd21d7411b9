"""The files themselves, kept beside the index: whole or absent, private, named by nobody's words, gone when deleted."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crag_core.base.documents import IngestOutcome
from crag_core.base.errors import DocumentMissing, StoreUnavailable
from crag_core.retrieval.backends.backend import name_content
from crag_core.retrieval.backends.disk import FolderOriginals
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.conftest import REPOSITORY
from tests.retrieval.fakes import WordEmbedder, write_prose

HARBOUR, TIDES = write_prose("the harbour"), write_prose("the tides")


def kept(folder: Path) -> list[str]:
    """The names of all files that are kept, unfinished ones included."""
    originals = folder / "originals"
    return sorted(path.name for path in originals.iterdir()) if originals.exists() else []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


def test_a_file_comes_back_byte_for_byte_also_with_bytes_that_are_no_text(store: PassageStore, tmp_path: Path) -> None:
    odd = b"\xef\xbb\xbfFirst.\r\nSecond\x0c and \xff last.\r\n"
    (tmp_path / "on disk.txt").write_bytes(TIDES)
    one, other = store.ingest([("odd.txt", odd), ("tides.txt", tmp_path / "on disk.txt")])
    assert store.read_original(one.document_id) == odd
    assert store.read_original(other.document_id) == TIDES


@pytest.mark.parametrize(
    "name", ["../../out.txt", "/etc/passwd.txt", "C:\\x.txt", "a" * 300 + ".txt", "船🚢.txt", "'.txt"]
)
def test_no_name_of_a_user_becomes_a_path(store: PassageStore, folder: Path, tmp_path: Path, name: str) -> None:
    (one,) = store.ingest([(name, HARBOUR)])
    assert kept(folder) == [one.document_id]
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.skipif(sys.platform == "win32", reason="skipped: no file modes")
def test_nobody_else_can_read_what_is_kept(store: PassageStore, folder: Path) -> None:
    (one,) = store.ingest([("harbour.txt", HARBOUR)])
    modes = [path.stat().st_mode & 0o777 for path in (folder / "originals", folder / "originals" / one.document_id)]
    assert modes == [0o700, 0o600]


def test_a_refused_file_is_not_kept(store: PassageStore, folder: Path) -> None:
    store.ingest([("bad.pdf", b"%PDF-1.4 broken"), ("x.mp3", b"x"), ("empty.txt", b""), ("blank.txt", b" \n ")])
    assert kept(folder) == []


def test_a_new_version_takes_the_place_of_the_old_one_s_file(store: PassageStore, folder: Path) -> None:
    (old,) = store.ingest([("guide.txt", HARBOUR)])
    (new,) = store.ingest([("guide.txt", TIDES)])
    assert kept(folder) == [new.document_id]
    assert store.read_original(new.document_id) == TIDES
    with pytest.raises(DocumentMissing):
        store.read_original(old.document_id)


def test_what_is_deleted_is_not_kept(store: PassageStore, folder: Path) -> None:
    one, other = store.ingest([("harbour.txt", HARBOUR), ("tides.txt", TIDES)])
    store.delete_all([one.document_id])
    assert kept(folder) == [other.document_id]
    with pytest.raises(DocumentMissing, match="not in the index"):
        store.read_original(one.document_id)


@pytest.mark.parametrize("bad", ["", "x", "../guide", "0" * 31, "G" * 32, "0" * 32, "0" * 32 + "\n"])
def test_an_id_that_is_none_is_told_and_touches_nothing(store: PassageStore, folder: Path, bad: str) -> None:
    (one,) = store.ingest([("harbour.txt", HARBOUR)])
    with pytest.raises(DocumentMissing, match="not in the index") as missing:
        store.read_original(bad)
    assert missing.value.hint and kept(folder) == [one.document_id]


def test_a_document_of_earlier_days_says_so_and_gets_its_file_when_added_again(
    store: PassageStore, folder: Path, embedder: WordEmbedder
) -> None:
    (one,) = store.ingest([("harbour.txt", HARBOUR)])
    (folder / "originals" / one.document_id).unlink()
    with pytest.raises(DocumentMissing, match="indexed before originals were kept") as missing:
        store.read_original(one.document_id)
    assert "Add the same file again" in missing.value.hint
    embedded = len(embedder.embedded)
    (again,) = store.ingest([("harbour.txt", HARBOUR)])
    assert (again.outcome, len(embedder.embedded)) == (IngestOutcome.ALREADY, embedded)
    assert store.read_original(one.document_id) == HARBOUR


@pytest.mark.parametrize("damage", [HARBOUR[:-1], HARBOUR + b"\n", b""])
def test_a_damaged_file_is_never_taken_for_the_original(store: PassageStore, folder: Path, damage: bytes) -> None:
    (one,) = store.ingest([("harbour.txt", HARBOUR)])
    (folder / "originals" / one.document_id).write_bytes(damage)
    with pytest.raises(DocumentMissing, match="damaged"):
        store.read_original(one.document_id)
    store.ingest([("harbour.txt", HARBOUR)])
    assert store.read_original(one.document_id) == HARBOUR


def test_what_a_killed_run_left_is_tidied_and_nothing_else(store: PassageStore, folder: Path) -> None:
    (folder / "originals").mkdir(parents=True)
    for name in (".new-abc", "0" * 32, "notes.txt"):
        (folder / "originals" / name).write_bytes(b"left")
    (one,) = store.ingest([("harbour.txt", HARBOUR)])
    assert kept(folder) == sorted([one.document_id, "notes.txt"])


@pytest.mark.parametrize("moment", ["os.fsync", "os.replace"])
def test_a_full_disk_leaves_neither_document_nor_half_a_file(
    store: PassageStore, folder: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    store.ingest([("guide.txt", TIDES)])
    before = kept(folder)
    with monkeypatch.context() as patched:
        patched.setattr(moment, fail)
        with pytest.raises(StoreUnavailable, match="No space left") as fault:
            store.ingest([("harbour.txt", HARBOUR)])
    assert "disk space" in fault.value.hint
    assert kept(folder) == before and [document.name for document in store.documents()] == ["guide.txt"]


def test_threads_that_add_the_same_file_keep_one(store: PassageStore, folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: store.ingest([("harbour.txt", HARBOUR)])[0], range(4)))
    assert kept(folder) == [done[0].document_id] and store.read_original(done[0].document_id) == HARBOUR


def test_keeping_what_is_there_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    originals = FolderOriginals(tmp_path)
    originals.keep(name_content(TIDES), TIDES)
    monkeypatch.setattr("os.replace", lambda *_: pytest.fail("written again"))
    originals.keep(name_content(TIDES), TIDES)
    assert originals.read(name_content(TIDES)) == TIDES


# --- kills ------------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Leaves the disk as a kill does: nothing here catches it."""


@pytest.mark.parametrize(
    "moment", [f"crag_core.retrieval.backends.disk.FolderOriginals.{step}" for step in ("drop", "tidy")]
)
def test_dying_while_an_old_version_goes_never_takes_the_file_of_the_new(
    store: PassageStore, folder: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def die(*_: object) -> None:
        raise Killed

    store.ingest([("guide.txt", HARBOUR)])
    with monkeypatch.context() as patched:
        patched.setattr(moment, die)
        with pytest.raises(Killed):
            store.ingest([("guide.txt", TIDES)])
    every_document_has_its_file(folder)
    store.ingest([("guide.txt", TIDES), ("other.txt", b"Fine.")])
    assert kept(folder) == sorted(document.id for document in store.documents())


def test_dying_while_deleting_leaves_at_most_a_file_too_many(
    store: PassageStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise Killed

    one, other = store.ingest([("harbour.txt", HARBOUR), ("tides.txt", TIDES)])
    with monkeypatch.context() as patched:
        patched.setattr(FolderOriginals, "tidy", die)
        with pytest.raises(Killed):
            store.delete_all([one.document_id])
    every_document_has_its_file(folder)
    store.delete_all([other.document_id])
    assert kept(folder) == []


WORKER = """
import os, signal, sys
from pathlib import Path
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder, write_prose

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

folder, moment = sys.argv[1:]
store = PassageStore(Path(folder), WordEmbedder())
store.ingest([("guide.txt", write_prose("the tides"))])
if moment == "while writing":
    os.fsync = die
elif moment == "before the new name":
    os.replace = die
else:
    from crag_core.retrieval.backends.lance.passages import LancePassages
    LancePassages.add = die
store.ingest([("guide.txt", write_prose("the harbour"))])
"""
MOMENTS = ("while writing", "before the new name", "before the chunks")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Folders of processes that died at each moment; all at once, since most of their time goes into starting up."""
    folders = {moment: tmp_path_factory.mktemp("killed") for moment in MOMENTS}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder), moment], cwd=REPOSITORY, stderr=subprocess.PIPE, text=True
        )
        for moment, folder in folders.items()
    ]
    for process in started:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL, errors
    yield folders


def every_document_has_its_file(folder: Path) -> None:
    store = PassageStore(folder, WordEmbedder())
    assert store.documents()
    for document in store.documents():
        assert name_content(store.read_original(document.id)) == document.id


@pytest.mark.exhaustive
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_leaves_no_document_with_half_a_file(killed: dict[str, Path], moment: str) -> None:
    folder = killed[moment]
    every_document_has_its_file(folder)
    assert len(kept(folder)) == 2, "it was killed in between"
    store = PassageStore(folder, WordEmbedder())
    (done,) = store.ingest([("guide.txt", HARBOUR)])
    assert done.outcome == IngestOutcome.REPLACED
    assert kept(folder) == [done.document_id] and store.read_original(done.document_id) == HARBOUR

"""An index of an earlier release, in LanceDB, is taken over from its files, without LanceDB; `earlier/` has two."""

from __future__ import annotations

import hashlib
import sys
import tarfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from crag_core.base.documents import IngestOutcome, Progress
from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.index import earlier_index
from crag_core.retrieval.index.index_writer import name_content
from crag_core.retrieval.index.store import PassageStore, _read_here
from tests.retrieval.fakes import WordEmbedder, write_prose

NAMES = {"guide.txt": "main", "note's.md": "main", "tides.txt": "sea & tides", "船の本.txt": "main"}


def unpacked(folder: Path, name: str) -> Path:
    with tarfile.open(Path(__file__).with_name("earlier") / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "index"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PassageStore:
    monkeypatch.setitem(sys.modules, "lancedb", None)
    return PassageStore(unpacked(tmp_path, "small").parent, WordEmbedder())


def check_whole(store: PassageStore) -> None:
    assert {row.name: row.collection for row in store.documents()} == NAMES
    for row in store.documents():
        assert len(store.passages_of(row.id)) == row.passages > 0
        assert name_content(store.read_original(row.id)) == row.id
    assert store.search_keyword("winches", 1) and store.search_keyword("tides", 1, "sea & tides")
    assert not store.search_keyword("ropes", 1), "it was replaced before"


def test_all_documents_are_read_once_more_with_progress_and_the_earlier_index_goes(store: PassageStore) -> None:
    told: list[Progress] = []
    done = store.take_over(told.append)
    assert {one.outcome for one in done} == {IngestOutcome.INDEXED} and told[-1].total == len(done) == len(NAMES)
    check_whole(store)
    assert not list((Path(store.place) / "index").iterdir())
    assert store.take_over() == ()


@pytest.mark.parametrize("position", range(1, 5))
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_what_is_interrupted_is_continued_and_loses_nothing(store: PassageStore, position: int, how: str) -> None:
    cancel = threading.Event()

    def end(progress: Progress) -> None:
        if progress.position == position:
            if how == "killed":
                raise KeyboardInterrupt
            cancel.set()

    with suppress(KeyboardInterrupt):
        store.take_over(end, cancel)
    again = PassageStore(store.place, WordEmbedder())
    assert {row.name: row.collection for row in again.listing()} == NAMES
    assert again.interrupted() == (), "nobody is asked whether they are wanted"
    assert len(again.take_over()) >= 4 - position
    check_whole(again)


def test_dying_while_files_are_kept_loses_none(store: PassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    register, registered = store._writer.register, []

    def die(documents: list[object]) -> None:
        if len(registered) == 2:
            raise KeyboardInterrupt
        registered.append(documents)
        register(documents)  # type: ignore[arg-type]

    monkeypatch.setattr(store._writer, "register", die)
    with pytest.raises(KeyboardInterrupt):
        store.take_over()
    again = PassageStore(store.place, WordEmbedder())
    again.take_over()
    check_whole(again)


def test_what_is_removed_or_replaced_meanwhile_does_not_come_back(store: PassageStore) -> None:
    changed: list[object] = []

    def change(progress: Progress) -> None:
        if not changed:
            changed.append(store.delete_all([row.id for row in store.listing() if row.name == "tides.txt"]))
            changed.append(store.ingest([("guide.txt", write_prose("a new guide"))]))

    store.take_over(change)
    assert {row.name for row in store.documents()} == NAMES.keys() - {"tides.txt"}
    assert store.search_keyword("guide", 1) and not store.search_keyword("winches", 1)
    assert PassageStore(store.place, WordEmbedder()).take_over() == ()


def test_the_file_of_a_document_that_cannot_be_read_any_more_stays(store: PassageStore) -> None:
    def read(content: bytes, name: str, *more: object) -> object:
        if name == "tides.txt":
            raise DocumentRefused(f"{name}: no reader.", hint="Save it in another format.")
        return _read_here(content, name, *more)  # type: ignore[arg-type]

    store._read = read  # type: ignore[assignment]
    store.take_over()
    (refused,) = (row for row in store.listing() if not row.is_whole)
    assert (refused.name, refused.message) == ("tides.txt", "tides.txt: no reader.")
    kept = Path(store.place) / "index" / "originals" / refused.id
    assert (
        name_content(kept.read_bytes()) == refused.id and not (Path(store.place) / "index" / "documents.lance").exists()
    )


def test_a_backup_made_before_has_all_files(store: PassageStore, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    store.copy_to(tmp_path / "copy" / "crag.db")
    copy = PassageStore(tmp_path / "copy", WordEmbedder())
    copy.take_over()
    check_whole(copy)


def test_without_a_readable_table_documents_have_names_made_of_their_ids(store: PassageStore) -> None:
    for path in (Path(store.place) / "index" / "documents.lance" / "_versions").iterdir():
        path.write_bytes(b"garbage" * 9)
    store.take_over()
    assert {row.name for row in store.documents()} == {f"document-{row.id[:8]}.txt" for row in store.documents()}
    assert len(store.documents()) == len(NAMES)


def test_names_and_collections_in_every_encoding_are_read(tmp_path: Path) -> None:
    """FSST, a dictionary with packed indices behind LZ4: what LanceDB chose for thousands of documents."""
    rows = {row[0]: row[1:] for row in earlier_index._rows(unpacked(tmp_path, "large") / "documents.lance")}
    ids = [hashlib.sha256(str(number).encode()).hexdigest()[:32] for number in range(3000)]
    expected = [(f"folder{n % 7}/report number {n}.pdf", "main" if n % 3 else "other") for n in range(3000)]
    assert rows == dict(zip(ids, expected, strict=True))

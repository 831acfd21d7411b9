"""An index of an earlier release, in LanceDB, is taken over from its files; `earlier/` has one."""

from __future__ import annotations

import sys
import tarfile
import threading
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from crag_core.base.documents import IngestOutcome, Progress
from crag_core.base.errors import DocumentRefused, StoreUnavailable
from crag_core.retrieval.index.index_writer import name_content
from crag_core.retrieval.index.store import PassageStore, _read_here
from tests.retrieval.fakes import WordEmbedder, write_prose

ROWS = {
    "33e4a9bdcd368c9f9bdf316e18de7336": ("船の本.txt", "main"),
    "76a4ec5e4b13e6d2b3a763e506220087": ("note's.md", "main"),
    "e983a1a39fe0ad6e9db60699bc822c3f": ("guide.txt", "main"),
    "36b44568ce66e4e318b9f0d13354ca46": ("tides.txt", "sea & tides"),
}
NAMES = dict(ROWS.values())


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PassageStore:
    with tarfile.open(Path(__file__).with_name("earlier") / "small.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    rows = [{"id": one, "name": name, "collection": collection} for one, (name, collection) in ROWS.items()]

    def dataset(place: str) -> SimpleNamespace:
        if not rows:
            raise ValueError("damaged")
        return SimpleNamespace(to_table=lambda columns: SimpleNamespace(to_pylist=lambda: rows))

    lance = ModuleType("lance")
    lance.dataset, lance.rows = dataset, rows  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lance", lance)
    return PassageStore(tmp_path, WordEmbedder())


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
    assert again.finish_interrupted() == (), "they wait for the takeover"
    assert len(again.take_over()) >= 4 - position
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


def test_without_a_readable_table_documents_have_names_made_of_their_ids(store: PassageStore) -> None:
    sys.modules["lance"].rows.clear()
    store.take_over()
    assert {row.name for row in store.documents()} == {f"document-{row.id[:8]}.txt" for row in store.documents()}
    assert len(store.documents()) == len(NAMES)


def test_without_pylance_nothing_is_taken_over_and_nothing_lost(
    store: PassageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context, pytest.raises(StoreUnavailable, match="pip install pylance"):
        context.setitem(sys.modules, "lance", None)
        store.take_over()
    store.take_over()
    check_whole(store)

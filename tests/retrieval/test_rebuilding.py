"""All passages made anew by another recipe: the old ones are searched until the new ones are whole."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from crag_core.base.documents import IndexVersion, Progress, Recipe, Stage
from crag_core.base.errors import DocumentRefused, EmbeddingUnavailable, Stopped, StoreUnavailable
from crag_core.retrieval.chunking.split import Chunks
from crag_core.retrieval.chunking.text_splitter import Cut
from crag_core.retrieval.index.index_writer import version_at
from crag_core.retrieval.index.store import PassageStore, _read_here
from tests.retrieval.fakes import WordEmbedder, write_prose

FILES = [(f"{topic}.txt", write_prose(topic)) for topic in ("seals", "gulls", "buoys")]
SHORT = Recipe("words-64", 60, 10)
OTHER = Recipe("words-32")


class Halves(WordEmbedder):
    """Another model, with vectors of another length."""

    def __init__(self) -> None:
        super().__init__("words-32")

    def embed_question(self, text: str) -> list[float]:
        return super().embed_question(text)[:32]

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        return [vector[:32] for vector in super().embed_texts(texts)]


def open_store(folder: Path, usual: WordEmbedder | None = None) -> PassageStore:
    there = {one.name: one for one in (WordEmbedder(), Halves())}
    return PassageStore(folder, usual or there["words-64"], find_embedder=there.__getitem__)


def names(store: PassageStore) -> list[str]:
    return [document.name for document in store.documents()]


def check_whole(store: PassageStore, files: Sequence[tuple[str, bytes]] = FILES) -> None:
    """Every document is there with all its passages, found by words and by meaning, and its text is complete."""
    assert names(store) == sorted(name for name, _ in files)
    for document in store.documents():
        passages = store.passages_of(document.id)
        assert [one.ordinal for one in passages] == list(range(document.passages)) and passages
        text = store.read_document(document.id) or ""
        assert text.split() == dict(files)[document.name].decode().split()
        topic = document.name.removesuffix(".txt")
        assert store.search_keyword(topic, 1)[0].passage.document_id == document.id
        nearest = store.search_dense(store.embedder.embed_question(passages[0].text), 1)[0]
        assert nearest.score > 0.999 and len(nearest.vector) == len(store.embedder.embed_question(topic))


class Killed(BaseException):
    """Nothing here catches it, and nothing cleans up."""


def building(store: PassageStore) -> IndexVersion | None:
    with store._file.reading() as database:
        assert database
        return version_at(database, Stage.BUILDING)


@pytest.fixture
def filled(tmp_path: Path) -> PassageStore:
    store = open_store(tmp_path)
    store.ingest(FILES)
    return store


@pytest.mark.parametrize("recipe", [SHORT, OTHER], ids=["shorter", "another model"])
def test_all_passages_are_made_anew(filled: PassageStore, tmp_path: Path, recipe: Recipe) -> None:
    before, count = filled.fingerprint(), filled.count()
    told: list[Progress] = []
    done = filled.rebuild(recipe, told.append)
    assert (done.documents, done.passages, done.kept_text) == (3, filled.count(), 0)
    assert filled.index_version.recipe == recipe == open_store(tmp_path).index_version.recipe
    assert (filled.count() > 2 * count) == (recipe == SHORT) and filled.fingerprint() != before
    assert told[-1].position == told[-1].total == 3
    for store in (filled, open_store(tmp_path), open_store(tmp_path, Halves())):
        check_whole(store)
    versions = {document.version for document in filled.documents()}
    assert versions == {1}, "it is the same content"


@pytest.mark.parametrize("fault", [Stopped(), EmbeddingUnavailable("no model"), RuntimeError("a bug")])
def test_what_is_stopped_or_fails_leaves_the_old_ones(filled: PassageStore, fault: Exception) -> None:
    def fail(progress: Progress) -> None:
        if progress.position == 2:
            raise fault

    before = filled.index_version
    with pytest.raises(type(fault)):
        filled.rebuild(OTHER, fail)
    assert filled.index_version == before and building(filled) is None
    check_whole(filled)
    assert filled.rebuild(OTHER).documents == 3, "and it can be tried again"


def test_documents_come_and_go_and_move_meanwhile(filled: PassageStore, tmp_path: Path) -> None:
    other = open_store(tmp_path)
    more = [("ropes.txt", write_prose("ropes")), ("gulls.txt", write_prose("gulls of another kind")), FILES[2]]
    by_name = {document.name: document.id for document in other.documents()}

    def change(progress: Progress) -> None:
        if progress.name == "seals.txt" and progress.passages and "ropes.txt" not in names(other):
            other.ingest(more[:2])
            other.delete_all([by_name["seals.txt"]])
            other.move([by_name["buoys.txt"]], "floating")

    filled.rebuild(SHORT, change)
    check_whole(filled, more)
    assert filled.count("floating") > 0 and len(filled.search_keyword("buoys", 50, "floating")) == filled.count(
        "floating"
    )
    assert not filled.search_keyword("seals", 5)
    held = {row.id: len(filled.passages_of(row.id)) for row in filled.documents()}
    assert held == {row.id: row.passages for row in filled.documents()}


def test_of_a_document_that_cannot_be_read_any_more_the_text_is_taken_from_the_old_chunks(
    filled: PassageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(content: bytes, name: str, cut: Cut, cancel: threading.Event) -> Chunks:
        if name == "gulls.txt":
            raise DocumentRefused(f"{name}: no reader.")
        return _read_here(content, name, cut, cancel)

    monkeypatch.setattr(filled, "_read", read)
    assert filled.rebuild(SHORT).kept_text == 1
    check_whole(filled)


def test_two_are_never_built_at_once(filled: PassageStore, tmp_path: Path) -> None:
    def start_another(progress: Progress) -> None:
        with pytest.raises(StoreUnavailable, match="Another process"):
            open_store(tmp_path).rebuild(SHORT)

    assert filled.rebuild(OTHER, start_another).documents == 3


def test_after_a_kill_the_next_start_drops_what_was_built(filled: PassageStore) -> None:
    def die(progress: Progress) -> None:
        if progress.position == 3:
            raise Killed

    with pytest.raises(Killed):
        filled.rebuild(SHORT, die)
    assert building(filled) is not None and filled.index_version.embedding == "words-64"
    filled.take_over()
    assert building(filled) is None
    check_whole(filled)

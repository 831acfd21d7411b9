"""Documents read again from their overlapping passages, whole and word for word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from crag_core.base.text.words import words
from crag_core.base.types.passages import Origin, Passage
from crag_core.retrieval.hybrid import HybridRetriever
from crag_core.retrieval.index.store import PassageStore
from crag_core.retrieval.readers import read_document
from tests.retrieval.conftest import REPOSITORY
from tests.retrieval.fakes import WordEmbedder, write_prose

SAMPLE = sorted((REPOSITORY / "data" / "sample").iterdir())
LONG = "It is cancelled when the wind at the pier head is above forty knots for longer than ten minutes, {} says, \
whatever the timetable promised and however many people may be waiting on the other side of the water."


def keep(store: PassageStore, content: str, name: str = "one.txt") -> str:
    """Index a document; its id."""
    (done,) = store.ingest([(name, content.encode())])
    assert done.document_id, done.message
    return done.document_id


# --- the sample documents ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenize", [str.split, list], ids=["words", "letters"])
def test_every_sample_document_comes_back_word_for_word(
    tmp_path: Path, embedder: WordEmbedder, tokenize: Callable[[str], Sequence[str]]
) -> None:
    embedder.tokenize = tokenize
    store = PassageStore(tmp_path, embedder)
    done = store.ingest([(path.name, path) for path in SAMPLE])
    assert len(done) >= 20 and store.count() > 2 * len(done), "most of them have several chunks"
    for path, one in zip(SAMPLE, done, strict=True):
        text = store.read_document(one.document_id)
        assert text is not None
        expected = "\n\n".join(page.text for page in read_document(path))
        assert words(text) == words(expected), path.name
        assert "".join(text.split()) == "".join(expected.split()), "nor is a mark between words lost"


# --- texts that repeat themselves -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "The ferry leaves at nine. " * 200,
        "- item\n" * 300,
        (LONG.format("Ada") + " Ask the duty manager. ") * 12,
        "渡船九点开。" * 150,
    ],
    ids=lambda content: content[:12],
)
def test_repeated_sentences_come_back_as_often_as_they_were_there(store: PassageStore, content: str) -> None:
    document_id = keep(store, content)
    assert len(store.passages_of(document_id)) > 2
    text = store.read_document(document_id)
    assert text is not None and words(text) == words(content)


# --- files read whole -------------------------------------------------------------------------------------------------


def test_whole_files_come_as_one_passage_each_in_the_order_asked_for(store: PassageStore) -> None:
    harbour = keep(store, write_prose("the harbour").decode(), "harbour.txt")
    tides = keep(store, "Tides turn.", "tides.txt")
    retriever = HybridRetriever(store)
    first, second = retriever.read_files([tides, harbour, tides])
    assert first == Passage(
        f"file-{tides}", "Tides turn.", "tides.txt", Origin.CORPUS, tides, found_by=("read_file",), scores=()
    )
    assert (second.id, second.source, second.page, second.ordinal) == (f"file-{harbour}", "harbour.txt", None, 0)
    assert second.text == store.read_document(harbour)
    assert words(second.text) == words(write_prose("the harbour").decode())
    assert retriever.read_files([]) == ()

"""The first chunks of a long document are searched while others are embedded, and go again if it does not get in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from crag_core.base.documents import Document, Progress
from crag_core.retrieval.index.ingest import divide
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder, write_prose

LONG = ("long.txt", write_prose("gulls", 150))
CHUNKS = 8


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crag_core.retrieval.index.ingest.PART", 2)


def during(
    store: PassageStore, look: Callable[[Document | None, Progress], None], name: str = "long.txt"
) -> Callable[[Progress], None]:
    """Calls `look` with the row of a document at each progress of it."""

    def tell(progress: Progress) -> None:
        if progress.name == name and progress.passages:
            look(next((row for row in store.listing() if row.name == name), None), progress)

    return tell


def complete(store: PassageStore, name: str = "long.txt") -> bool:
    """Each chunk once."""
    (row,) = (row for row in store.documents() if row.name == name)
    return [one.ordinal for one in store.passages_of(row.id)] == list(range(row.passages)) and row.passages == CHUNKS


def test_first_chunks_are_found_before_the_last_is_embedded(store: PassageStore) -> None:
    seen: list[tuple[int, int, int]] = []
    fingerprints = set()

    def look(row: Document | None, progress: Progress) -> None:
        assert row and (row.is_partial or not row.passages)
        fingerprints.add(store.fingerprint())
        seen.append((progress.embedded, row.passages, len(store.search_keyword("gulls", 20))))
        assert store.count() == row.passages and not store.documents()
        if row.is_partial:
            assert store.read_original(row.id) == LONG[1]

    store.ingest([LONG], during(store, look))
    assert seen == [(0, 0, 0), (2, 2, 2), (4, 4, 4), (CHUNKS, 4, 4)] and len(fingerprints) == 3
    assert complete(store) and store.count() == CHUNKS


def test_no_part_of_a_new_version_is_searched_beside_the_old_one(store: PassageStore) -> None:
    store.ingest([("long.txt", write_prose("ropes"))])
    store.ingest([LONG], during(store, lambda row, _: None if row is None else _assert_not_partial(store)))
    assert [row.version for row in store.documents()] == [2] and complete(store)


def _assert_not_partial(store: PassageStore) -> None:
    assert not any(row.is_partial for row in store.listing())


@pytest.mark.parametrize("finishes", [True, False])
def test_two_who_add_the_same_document_put_each_chunk_in_once(store: PassageStore, finishes: bool) -> None:
    other, outcomes = PassageStore(store.place, WordEmbedder()), list[str]()

    def add_too(row: Document | None, progress: Progress) -> None:
        if progress.embedded != 4 or outcomes:
            return
        assert row and row.passages == 4
        if finishes:
            outcomes.append(other.ingest([LONG])[0].outcome)
        else:
            other._writer.register([(replace(row, owner="another", passages=0), LONG[1])])

    (done,) = store.ingest([LONG], during(store, add_too))
    assert [*outcomes, done.outcome] == (["indexed", "already indexed"] if finishes else ["indexed"])
    assert complete(store)


@pytest.mark.parametrize("passages", [0, 1, 64, 128, 129, 700, 20_000])
def test_parts_follow_each_other_and_are_few(passages: int) -> None:
    parts = list(divide(passages, 64))
    assert [start for start, _ in parts] == [0, *(end for _, end in parts[:-1])] and parts[-1][1] == passages
    assert len(parts) <= 16 and (passages > 128 or len(parts) == 1)
    assert all(end - start >= 64 for start, end in parts[:-1])

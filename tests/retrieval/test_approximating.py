"""When an approximate index is made, how its recall is measured, and that nothing is lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from crag_core.base.documents import Recipe
from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.backends.lance.passages import LancePassages
from crag_core.retrieval.index import ann_index
from crag_core.retrieval.index.ann_index import measure_recalls
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder, embed_words, write_prose

MANY = [
    (f"note-{number}.txt", write_prose(f"harbour {number} and tides {number * 7 % 31}", 40)) for number in range(60)
]


@pytest.fixture
def warranted(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(ann_index, "WARRANTED", 100)
    return 100


@pytest.mark.parametrize(
    ("found", "exact", "shares"),
    [
        ([["b", "a"]], [["a", "b"]], [1.0]),
        ([["b", "x"], ["c", "d"]], [["a", "b"], ["c", "d"]], [0.5, 1.0]),
        ([["x"]], [["a", "b"]], [0.0]),
        ([[]], [[]], [1.0]),
        ([], [], []),
    ],
)
def test_recall_is_the_share_of_the_nearest_that_was_found(
    found: list[list[str]], exact: list[list[str]], shares: list[float]
) -> None:
    assert measure_recalls(found, exact) == shares


def test_a_small_index_is_searched_exactly(tmp_path: Path) -> None:
    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest(MANY[:5])
    version = store.index_version
    assert store.coverage() == (store.count(), 0) and version.effort == 0 and version.recall == 1.0


def test_a_large_one_gets_an_index_whose_recall_is_measured(tmp_path: Path, warranted: int) -> None:
    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest(MANY)
    rows, indexed = store.coverage()
    assert rows == indexed == store.count() > warranted
    made = store.index_version
    assert made.effort in LancePassages.efforts and made.measured == rows and 0.9 < made.recall <= 1.0
    hits = store.search_dense(embed_words("harbour 7 and tides 18"), 5)
    assert hits[0].score >= hits[-1].score and len(hits) == 5


@pytest.mark.exhaustive
def test_what_comes_later_is_found_and_the_index_made_anew_when_there_is_half_as_much_again(
    tmp_path: Path, warranted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    whole = LancePassages.index_vectors

    def index_and_note(self: LancePassages) -> None:
        made.append(self.coverage()[0])
        whole(self)

    monkeypatch.setattr(LancePassages, "index_vectors", index_and_note)
    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest(MANY[:40])
    store.ingest([("whales.txt", write_prose("whales", 30))])
    assert made == [made[0]] and "whales" in store.search_dense(embed_words("about whales"), 1)[0].passage.text
    store.ingest(MANY)
    assert made[1:] == [store.count()] and store.index_version.measured == store.count()


@pytest.mark.exhaustive
def test_new_passages_get_theirs_before_they_are_searched(tmp_path: Path, warranted: int) -> None:
    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest(MANY)
    first = store.index_version
    store.rebuild(Recipe("words-64", 100, 10))
    second = store.index_version
    assert second.id != first.id and second.effort and store.coverage() == (store.count(),) * 2


def test_without_an_index_documents_are_in_all_the_same(
    tmp_path: Path, warranted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: LancePassages) -> None:
        raise StoreUnavailable("no space", hint="")

    monkeypatch.setattr(LancePassages, "index_vectors", fail)
    store = PassageStore(tmp_path, WordEmbedder())
    assert {one.outcome for one in store.ingest(MANY)} == {"indexed"}
    assert store.index_version.effort == 0 and store.search_dense(embed_words("tides"), 3)

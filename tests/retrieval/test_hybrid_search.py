"""Two engines side by side, fused by rank; scores that can be checked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from crag_core.base.errors import WrongUse
from crag_core.base.protocols import RetrievalResult
from crag_core.base.types.passages import Engine
from crag_core.retrieval.hybrid import HybridRetriever
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder, embed_words

HYBRID, DENSE, KEYWORD = Engine

TEXTS = {
    "ferry.txt": "The ferry leaves the harbour at nine o'clock in the morning.",
    "haustiere.txt": "Haustiere dürfen an Bord der Fähre mitgenommen werden; Hunde zahlen zwei Euro.",
    "strasse.txt": "Die Straßenbahn hält an der Haltestelle am Hauptbahnhof.",
    "tokyo.txt": "東京タワーは東京都港区にある電波塔です。毎日多くの人が訪れます。",
    "beijing.txt": "北京是中国的首都,人口超过两千万。",
    "runbook.txt": "If booking fails with error E-4711, restart Skipper and call IT.",
    "bangkok.txt": "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย",
}


@pytest.fixture
def retriever(store: PassageStore, embedder: WordEmbedder) -> HybridRetriever:
    store.ingest([(name, text.encode()) for name, text in TEXTS.items()])
    return HybridRetriever(store)


@pytest.mark.parametrize(
    "question",
    [
        *[
            '"',
            "'",
            "(",
            "AND (",
            'ferry" OR "',
            "((ferry)",
            "ferry*",
            "text:ferry^2",
            "-ferry +harbour ~",
            "\\",
            "/ferry/",
        ],
        *["😀", "\x00ferry", "\ud800 ferry", "?!", "[ferry TO harbour]", "ferry\n\tferry"],
        *["ferry harbour nine " * 550, "x" * 10_000, "港" * 5_000, "'; DROP TABLE chunks; --", "NOT"],
    ],
)
def test_hostile_questions_are_only_words(retriever: HybridRetriever, store: PassageStore, question: str) -> None:
    found = retriever.retrieve(question, 3)
    assert len(found.passages) == 3
    if "ferry" in question:
        assert found.passages[0].source == "ferry.txt" and KEYWORD in found.passages[0].found_by
    assert store.count() == len(TEXTS)


def test_letters_typed_apart_from_their_dots_are_found(retriever: HybridRetriever) -> None:
    best = retriever.retrieve("fa\u0308hre", 1).passages[0]
    assert best.source == "haustiere.txt" and KEYWORD in best.found_by


def test_scores_by_hand(retriever: HybridRetriever, store: PassageStore) -> None:
    question = "When does the ferry leave the harbour?"
    found = retriever.retrieve(question, 4)
    dense = [hit.passage.id for hit in store.search_dense(embed_words(question), 20)]
    words = [hit.passage.id for hit in store.search_keyword(question, 20)]
    assert len(dense) == len(TEXTS) and 0 < len(words) < len(TEXTS)
    for passage in found.passages:
        by_hand = 1 / (60 + dense.index(passage.id) + 1)
        if passage.id in words:
            by_hand += 1 / (60 + words.index(passage.id) + 1)
        assert passage.score("rrf") == pytest.approx(by_hand)
        assert passage.found_by == ((DENSE, KEYWORD) if passage.id in words else (DENSE,))
        assert (passage.score("keyword") is None) == (passage.id not in words)
    fused = [dict(passage.scores)["rrf"] for passage in found.passages]
    assert fused == sorted(fused, reverse=True)


def test_cosine_is_numpy_s_also_for_passages_that_only_words_found(tmp_path: Path) -> None:
    class Compass(WordEmbedder):
        """Vectors of uneven length, all of whose near texts share no word with the question."""

        def embed_question(self, text: str) -> list[float]:
            return [3.0, 1.0, 0.0]

        def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
            return [[-1.0, 0.5, 2.0] if "quokka" in text else [2.0, 1.0, len(text) / 9] for text in texts]

    store = PassageStore(tmp_path, Compass())
    store.ingest([(f"near{n}.txt", b"wave" * n) for n in range(1, 26)] + [("far.txt", b"Here sleeps a quokka.")])
    found = HybridRetriever(store).retrieve("the quokka", 5)
    (only_words,) = [passage for passage in found.passages if passage.found_by == (KEYWORD,)]
    assert only_words.source == "far.txt"
    for passage in found.passages:
        left, right = np.array([3.0, 1.0, 0.0]), np.array(Compass().embed_texts([passage.text])[0])
        expected = left @ right / (np.linalg.norm(left) * np.linalg.norm(right))
        assert passage.score("cosine") == pytest.approx(expected, abs=1e-6)


def test_an_empty_store_is_not_worth_loading_a_model(tmp_path: Path) -> None:
    class Untouchable(WordEmbedder):
        def embed_question(self, text: str) -> list[float]:
            raise AssertionError("asked for a vector")

    assert HybridRetriever(PassageStore(tmp_path, Untouchable())).retrieve("ferry", 5) == RetrievalResult(())


def test_one_engine_alone_keeps_its_own_order(retriever: HybridRetriever, store: PassageStore) -> None:
    question = "Where do ferry and Skipper meet the harbour?"
    dense = [hit.passage.id for hit in store.search_dense(embed_words(question), 3)]
    words = [hit.passage.id for hit in store.search_keyword(question, 3)]
    assert dense != words[:3], "else the engines could not be told apart"
    for engine, expected in ((DENSE, dense), (KEYWORD, words)):
        found = retriever.retrieve(question, 3, engine)
        assert [passage.id for passage in found.passages] == expected
        assert {passage.found_by for passage in found.passages} == {(engine,)}
        assert [passage.score("rrf") for passage in found.passages] == [1 / (61 + n) for n in range(len(expected))]
        assert all(passage.score("cosine") is not None for passage in found.passages)


@pytest.mark.parametrize("engine", [HYBRID, DENSE, KEYWORD])
def test_a_passage_that_holds_the_hidden_text_counts_as_not_indexed(retriever: HybridRetriever, engine: Engine) -> None:
    question, hidden = "When does the ferry leave the harbour?", "leaves the HARBOUR\n at nine"
    assert retriever.retrieve(question, 3, engine).passages[0].source == "ferry.txt"
    found = retriever.hiding(hidden).retrieve(question, 3, engine)
    assert "ferry.txt" not in {passage.source for passage in found.passages}
    every = retriever.hiding("stands in no chunk").retrieve(question, 3, engine)
    assert every == retriever.retrieve(question, 3, engine)


def test_other_texts_or_a_vector_may_stand_for_the_meaning(retriever: HybridRetriever, embedder: WordEmbedder) -> None:
    dreamt, question = "Haustiere zahlen zwei Euro.", "When does the ferry leave?"
    vector = embedder.embed_question(dreamt)
    for asking in (retriever.meaning([dreamt]), retriever.meaning([question], vector)):
        assert asking.retrieve(question, 1, DENSE).passages[0].source == "haustiere.txt"
        assert asking.retrieve(question, 1, KEYWORD).passages[0].source == "ferry.txt", (
            "words are those of the question"
        )
    both = retriever.meaning([dreamt, question]).retrieve(question, 2, DENSE).passages
    assert {one.source for one in both} == {"haustiere.txt", "ferry.txt"}
    assert retriever.retrieve(question, 1, DENSE).passages[0].source == "ferry.txt", "it is another retriever"
    for wrong in ([1.0, 2.0], [float("nan")] * len(vector)):
        with pytest.raises(WrongUse, match=r"Expected a query embedding of \d+ finite numbers, by .*, found \d+"):
            retriever.meaning([], wrong).retrieve(question, 1)


def test_agreement_is_the_mean_of_all_pairs(retriever: HybridRetriever) -> None:
    found = retriever.retrieve("ferry harbour", 3)
    one, two, three = (np.array(embed_words(passage.text)) for passage in found.passages)
    assert found.agreement == pytest.approx((one @ two + one @ three + two @ three) / 3, abs=1e-5)
    assert retriever.retrieve("ferry harbour", 1).agreement is None


def test_a_chunk_that_holds_the_code_is_among_few_however_many_are_alike(
    retriever: HybridRetriever, store: PassageStore
) -> None:
    alike = [(f"{number}.txt", f"What does the part cost: the part {number}.".encode()) for number in range(20)]
    store.ingest(alike)
    store.ingest([("own.txt", b"Listed among others, much further down in the list of spares: KX-9 1.")])
    for code in ("KX-9", "kx9"):
        found = retriever.retrieve(f"What does the part {code} cost?", 2)
        assert "own.txt" in [one.source for one in found.passages]
    store.ingest([("other.txt", b"Listed among others, much further down in the list of spares: ZB-7 1.")])
    found = retriever.retrieve("What does the part cost: the part KX-9, or the part ZB-7?", 2)
    assert {one.source for one in found.passages} == {"own.txt", "other.txt"}

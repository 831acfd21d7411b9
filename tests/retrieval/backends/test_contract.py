"""What `Backend` promises, held against every engine for real; and the store on top of each."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from llama_index.core.schema import TextNode

from crag_core.base.documents import Document, IndexVersion, Recipe, State
from crag_core.base.errors import DocumentMissing
from crag_core.retrieval.backends.backend import Backend, Passages, name_content
from crag_core.retrieval.chunking.split import cut_pages, make_nodes
from crag_core.retrieval.hybrid import HybridRetriever
from crag_core.retrieval.index.store import PassageStore
from crag_core.retrieval.readers import Page
from tests.retrieval.backends.conftest import SLOW_ON_OBJECTS, Open
from tests.retrieval.fakes import DIMENSION, WordEmbedder, embed_words, write_prose

WORDS = IndexVersion(embedding="words-64")
ODD = 'it\'s "50 %" \\ über; DROP TABLE -- 東京'


def nodes_of(text: str, name: str = "a.txt", page: int | None = None) -> list[TextNode]:
    nodes = make_nodes(
        [*cut_pages([Page(text, page)], name)],
        Document(
            name_content(text.encode("utf-8", "replace")),
            name,
            pages=page or 0,
            characters=len(text),
            changed_at="2026-01-02",
        ),
    )
    for node in nodes:
        node.embedding = embed_words(node.text)
    return nodes


def add(backend: Backend, *texts: str, version: IndexVersion = WORDS, collection: str = "main") -> list[str]:
    """Index texts, each as a document; their ids."""
    nodes = [nodes_of(text, f"{text.split()[-1][:9]}.txt") for text in texts]
    ids = [own[0].ref_doc_id or "" for own in nodes]
    with backend.lock():
        backend.passages(version).add([node for own in nodes for node in own], dict.fromkeys(ids, collection))
    return ids


def texts(found: list[object]) -> list[str]:
    return [hit.passage.text for hit in found]


# --- passages ---------------------------------------------------------------------------------------------------------


def test_an_empty_place_holds_nothing_and_does_not_mind(backend: Backend) -> None:
    passages = backend.passages(WORDS)
    assert passages.built_with() is None and passages.coverage() == (0, 0)
    assert passages.documents() == passages.of("0" * 32) == passages.sample(5) == []
    assert passages.search_dense(embed_words("x"), 5) == passages.search_keyword("x", 5) == []
    with backend.lock():
        passages.delete(["0" * 32])
        passages.move(["0" * 32], "x")
        passages.add([], {})
        passages.tidy()
        passages.drop()
    for rows in (backend.documents, backend.index_versions):
        assert not rows.is_there() and rows.rows() == []
    assert backend.originals.sizes(["0" * 32]) == {}


def test_a_passage_comes_back_as_it_was_written(open_backend: Open) -> None:
    text = f"The ferry {ODD} 🛥 carries words."
    (node,) = nodes_of(text, f"{ODD}.pdf", 7)
    node.metadata["section"] = ODD
    one = open_backend()
    with one.lock():
        one.passages(WORDS).add([node], {node.ref_doc_id or "": ODD})
    for backend in (one, open_backend()):
        passages = backend.passages(WORDS)
        (found,) = passages.of(node.ref_doc_id or "")
        assert (found.text, found.source, found.page, found.ordinal, found.section) == (text, f"{ODD}.pdf", 7, 0, ODD)
        assert passages.built_with() == "words-64" and passages.coverage()[0] == 1
        (row,) = passages.documents()
        assert (row.id, row.name, row.collection, row.pages) == (node.ref_doc_id, f"{ODD}.pdf", ODD, 7)
        assert (row.passages, row.characters, row.changed_at, row.state) == (1, len(text), "2026-01-02", State.INDEXED)
        for hits in (
            passages.search_dense(node.get_embedding(), 3),
            passages.search_keyword("ferry", 3, ODD),
            passages.sample(3),
        ):
            assert [hit.passage for hit in hits] == [found]
            assert np.allclose(hits[0].vector, node.get_embedding(), atol=1e-6) and hits[0].vector.dtype == np.float32


def test_what_no_database_can_hold_is_kept_as_far_as_it_can(backend: Backend) -> None:
    (id_,) = add(backend, "Nothing \x00 and half a pair \ud800 are here.")
    (found,) = backend.passages(WORDS).of(id_)
    assert found.text.startswith("Nothing") and found.text.endswith("are here.")
    assert backend.passages(WORDS).search_keyword("nothing", 1)


def test_the_nearest_come_first_with_their_cosine(backend: Backend) -> None:
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(50, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    nodes = [node for number in range(50) for node in nodes_of(f"Chunk number {number}.")]
    for node, vector in zip(nodes, vectors, strict=True):
        node.embedding = vector.tolist()
    with backend.lock():
        backend.passages(WORDS).add(nodes, {node.ref_doc_id or "": "main" for node in nodes})
    asked = rng.normal(size=DIMENSION).astype(np.float32)
    cosines = vectors @ asked / np.linalg.norm(asked)
    for exact in (False, True):
        hits = backend.passages(WORDS).search_dense(asked.tolist(), 10, exact=exact)
        assert [hit.passage.id for hit in hits] == [nodes[at].node_id for at in np.argsort(-cosines)[:10]]
        assert np.allclose([hit.score for hit in hits], np.sort(cosines)[::-1][:10], atol=1e-5)


QUESTIONS = {
    "The engines were overhauled in winter.": "engine overhaul",
    "Die Fähre fährt täglich nach Vennick.": "fähre",
    "东京是日本的首都。": "日本的首都",
    "渡船每天九点开往本岛。": "渡船",
    "เรือข้ามฟากออกเวลาเก้าโมงเช้า": "เรือข้ามฟาก",
    "नाव सुबह नौ बजे निकलती है।": "नाव सुबह",
    "تغادر العبارة في التاسعة صباحا.": "العبارة",
    "Паром отходит в девять утра.": "паром",
}


def test_words_are_found_in_every_script(backend: Backend) -> None:
    add(backend, *QUESTIONS, "Something else entirely stands here.", "And a third text, about bread and butter.")
    found = {text: texts(backend.passages(WORDS).search_keyword(asked, 1)) for text, asked in QUESTIONS.items()}
    assert found == {text: [text] for text in QUESTIONS}


def test_a_question_is_words_and_no_query_language(backend: Backend) -> None:
    add(backend, "It lies in the harbour.")
    for question in ('"harbour"', "harbour AND (", "-harbour*", "harbour & | ! <-> :*", "'harbour' \\"):
        assert len(backend.passages(WORDS).search_keyword(question, 3)) == 1, question


def test_a_question_without_words_finds_nothing_and_is_no_error(backend: Backend) -> None:
    add(backend, "It lies in the harbour.")
    for question in ("", " ", "?!", "the", "\x00", "🛥"):
        assert backend.passages(WORDS).search_keyword(question, 3) == [], question


def test_rare_words_weigh_more_than_common_ones(backend: Backend) -> None:
    common = [f"The ferry sails on day {number} of the month." for number in range(30)]
    add(backend, *common, "A capstan stands on the quay.")
    assert "capstan" in texts(backend.passages(WORDS).search_keyword("the ferry capstan", 1))[0]


def test_collections_are_searched_alone_moved_and_deleted(backend: Backend) -> None:
    one, two = add(backend, "The ferry sails at nine.", "The ferry sails at ten.")
    (three,) = add(backend, "The ferry sails at noon.", collection=ODD)
    passages = backend.passages(WORDS)

    def found(collection: str) -> set[str]:
        dense = passages.search_dense(embed_words("the ferry"), 9, collection)
        words = passages.search_keyword("ferry", 9, collection)
        ids = {hit.passage.document_id for hit in dense}
        assert ids == {hit.passage.document_id for hit in words}
        assert ids == {hit.passage.document_id for hit in passages.sample(9, collection)}
        return ids

    assert found("") == {one, two, three} and found("main") == {one, two} and found(ODD) == {three}
    assert found("nowhere") == set()
    with backend.lock():
        passages.move([one], ODD)
        passages.delete([two])
    assert found("") == {one, three} == found(ODD) and found("main") == set()
    assert {row.id: row.collection for row in passages.documents()} == {one: ODD, three: ODD}
    assert [row.id for row in passages.documents([one, two])] == [one] and passages.documents([]) == []
    assert passages.coverage()[0] == 2


def test_a_sample_is_even(backend: Backend) -> None:
    add(backend, *(f"Chunk number {number}." for number in range(40)))
    assert len(backend.passages(WORDS).sample(10)) == 10
    assert len({hit.passage.id for hit in backend.passages(WORDS).sample(100)}) == 40


def test_generations_lie_beside_each_other(backend: Backend) -> None:
    other = IndexVersion("1", "words-3")
    add(backend, "The ferry sails at nine.")
    (node,) = nodes_of("The ferry sails at nine.")
    node.embedding = [1.0, 0.0, 0.0]
    with backend.lock():
        backend.passages(other).add([node], {node.ref_doc_id or "": "main"})
    assert backend.passages(other).built_with() == "words-3"
    assert backend.passages(other).search_dense([1.0, 0.1, 0.0], 3) and backend.passages(WORDS).search_keyword(
        "ferry", 3
    )
    with backend.lock():
        backend.passages(WORDS).drop()
    assert backend.passages(WORDS).built_with() is None
    assert backend.passages(other).search_keyword("ferry", 3)


@SLOW_ON_OBJECTS
def test_an_approximate_index_finds_nearly_all_and_what_came_after_it(backend: Backend) -> None:
    rng = np.random.default_rng(3)
    middles = rng.normal(size=(35, DIMENSION))
    vectors = (middles[rng.integers(35, size=700)] + 0.5 * rng.normal(size=(700, DIMENSION))).astype(np.float32)
    nodes = [node for number in range(700) for node in nodes_of(f"Chunk number {number}.")]
    for node, vector in zip(nodes, vectors, strict=True):
        node.embedding = (vector / np.linalg.norm(vector)).tolist()
    places = {node.ref_doc_id or "": "main" if number % 2 else "odd" for number, node in enumerate(nodes)}
    passages = backend.passages(WORDS)
    with backend.lock():
        passages.add(nodes[:600], places)
    assert passages.coverage() == (600, 0)
    passages.index_vectors()
    rows, indexed = passages.coverage()
    assert rows == 600 and indexed >= 599
    with backend.lock():
        passages.add(nodes[600:], places)
        passages.delete([nodes[0].ref_doc_id or ""])
    for collection in ("", "odd"):
        shares = []
        for effort in (passages.efforts[0], passages.efforts[-1]):
            quick = backend.passages(replace(WORDS, effort=effort))
            asked = [nodes[at].get_embedding() for at in (*range(1, 600, 60), 650, 699)]
            shares.append(float(np.mean([share(quick, vector, collection) for vector in asked])))
        assert shares[-1] >= 0.95 and shares[0] <= shares[1] + 0.02
    (last,) = backend.passages(replace(WORDS, effort=passages.efforts[0])).search_dense(nodes[699].get_embedding(), 1)
    assert last.passage.id == nodes[699].node_id and last.score > 0.999, "it came after the index"
    with backend.lock():
        passages.tidy()
    assert passages.coverage()[0] == 699


def share(passages: Passages, vector: list[float], collection: str) -> float:
    """Of the exactly nearest 20, those that the approximate search finds."""
    exact = {hit.passage.id for hit in passages.search_dense(vector, 20, collection, exact=True)}
    return len(exact & {hit.passage.id for hit in passages.search_dense(vector, 20, collection)}) / len(exact)


# --- rows -------------------------------------------------------------------------------------------------------------


def test_rows_come_and_go_and_take_each_other_s_place(open_backend: Open) -> None:
    one, other = open_backend(), open_backend()
    first, second = Document("1", ODD, size=2**40), Document("2", "b.txt", message=ODD)
    with one.lock():
        one.documents.put([])
    assert one.documents.is_there() and other.documents.is_there() and other.documents.rows() == []
    with one.lock():
        one.documents.put([first, second])
    assert sorted(other.documents.rows(), key=lambda row: row.id) == [first, second]
    with other.lock():
        other.documents.put([replace(second, name="c.txt")])
        other.documents.drop([first.id, "not there"])
        other.documents.tidy()
    assert one.documents.rows() == [replace(second, name="c.txt")]
    kept = IndexVersion("3", "m", 60, 10, effort=7, recall=0.975, measured=5)
    with one.lock():
        one.index_versions.put([kept])
    assert other.index_versions.rows() == [kept]


# --- originals --------------------------------------------------------------------------------------------------------


def test_files_are_kept_byte_for_byte(open_backend: Open) -> None:
    one, other = open_backend(), open_backend()
    contents = [bytes(range(256)), b"x" * (9 * 2**20)]
    ids = [name_content(content) for content in contents]
    with one.lock():
        for id_, content in zip(ids, contents, strict=True):
            one.originals.keep(id_, content)
            one.originals.keep(id_, content)
    assert [other.originals.read(id_) for id_ in ids] == contents
    assert other.originals.sizes([*ids, "0" * 32]) == {ids[0]: 256, ids[1]: 9 * 2**20}
    with other.lock():
        other.originals.tidy({ids[0]})
    with pytest.raises(DocumentMissing):
        one.originals.read(ids[1])
    with other.lock():
        other.originals.drop([ids[0], "0" * 32])
    with pytest.raises(DocumentMissing) as fault:
        one.originals.read(ids[0])
    assert "again" in fault.value.hint


# --- the lock ---------------------------------------------------------------------------------------------------------


def test_one_writes_at_a_time(open_backend: Open) -> None:
    inside, most = 0, 0
    guard = threading.Lock()

    def write(number: int) -> None:
        nonlocal inside, most
        backend = open_backend()
        for _ in range(3):
            with backend.lock():
                with guard:
                    inside += 1
                    most = max(most, inside)
                threading.Event().wait(0.02)
                with guard:
                    inside -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert most == 1


def test_the_lock_is_free_after_an_error(backend: Backend) -> None:
    with pytest.raises(ZeroDivisionError), backend.lock():
        raise ZeroDivisionError
    with backend.lock():
        pass


# --- the store on top -------------------------------------------------------------------------------------------------


def test_documents_go_in_are_found_replaced_moved_rebuilt_and_deleted(open_backend: Open, tmp_path: Path) -> None:
    store, other = (PassageStore(open_backend(), WordEmbedder()) for _ in range(2))
    done = store.ingest([(f"{topic}.txt", write_prose(topic)) for topic in ("seals", "gulls")])
    assert [one.outcome for one in done] == ["indexed", "indexed"]
    assert [document.name for document in other.documents()] == ["gulls.txt", "seals.txt"]
    assert store.fingerprint() == other.fingerprint() and store.count() == other.count() > 2
    found = HybridRetriever(other).retrieve("something about seals", 3)
    assert found.passages[0].source == "seals.txt" and dict(found.passages[0].scores).keys() == {
        "cosine",
        "keyword",
        "rrf",
    }
    (again,) = other.ingest([("gulls.txt", write_prose("gulls of another kind"))])
    assert again.outcome == "replaced the older version"
    assert {document.name: document.version for document in store.documents()} == {"gulls.txt": 2, "seals.txt": 1}
    store.move([again.document_id], "birds")
    assert other.search_keyword("gulls", 1, "birds") and not other.search_keyword("gulls", 1, "main")
    before = other.count()
    assert store.rebuild(Recipe("words-64", 60, 10)).passages == other.count() > before
    assert other.read_document(again.document_id) and other.read_original(again.document_id)
    assert other.delete_all([again.document_id]) and [document.name for document in store.documents()] == ["seals.txt"]
    assert not store.search_keyword("gulls", 1)
    with pytest.raises(DocumentMissing):
        store.read_original(again.document_id)


@SLOW_ON_OBJECTS
def test_two_add_at_once_and_nothing_is_lost(open_backend: Open) -> None:
    def fill(number: int) -> None:
        store = PassageStore(open_backend(), WordEmbedder())
        for part in range(2):
            store.ingest(
                [(f"note-{number}-{part}.txt", write_prose(f"note {number} {part}", 30)), ("same.txt", b"Same.")]
            )

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(fill, range(3)))
    store = PassageStore(open_backend(), WordEmbedder())
    assert len(store.documents()) == 7
    for document in store.documents():
        assert [one.ordinal for one in store.passages_of(document.id)] == list(range(document.passages))

"""What goes in, what comes out, and what happens to names and versions. A real file, an embedder without a model."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crag_core.base.documents import IngestOutcome, Progress
from crag_core.base.errors import DocumentMissing, EmbeddingUnavailable, StoreUnavailable
from crag_core.base.text.display import counted
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder, embed_words, write_prose

INDEXED, ALREADY, REPLACED, REFUSED, LEFT_OUT = IngestOutcome
HARBOUR, TIDES = write_prose("the harbour"), write_prose("the tides")


def name_all(store: PassageStore) -> list[str]:
    return [document.name for document in store.documents()]


def test_a_store_that_was_never_used_is_empty_and_leaves_no_trace(tmp_path: Path, embedder: WordEmbedder) -> None:
    store = PassageStore(tmp_path / "index", embedder)
    assert (store.count(), store.documents(), store.passages_of("0" * 32)) == (0, (), ())
    assert store.search_dense([0.0] * 64, 5) == store.search_keyword("words", 5) == []
    assert not store.delete_all(["0" * 32])
    assert not (tmp_path / "index").exists()


def test_passages_know_where_they_come_from(store: PassageStore) -> None:
    (one,) = store.ingest([("harbour.txt", HARBOUR)])
    (document,) = store.documents()
    passages = store.passages_of(document.id)
    assert (one.outcome, one.document_id, one.passages) == (INDEXED, document.id, len(passages))
    assert (document.name, document.passages, document.pages) == ("harbour.txt", len(passages), 0)
    assert document.characters == len(HARBOUR) and document.time.tzinfo is not None
    assert len(passages) > 2 and store.count() == len(passages)
    assert [passage.ordinal for passage in passages] == list(range(len(passages)))
    assert {(passage.source, passage.document_id, passage.page) for passage in passages} == {
        ("harbour.txt", document.id, None)
    }
    text = HARBOUR.decode()
    assert all(passage.text in text for passage in passages), "chunks are word for word"
    assert all(line in "\n".join(passage.text for passage in passages) for line in text.split("\n\n")), (
        "nothing is lost"
    )


def test_the_same_again_embeds_nothing(store: PassageStore, embedder: WordEmbedder) -> None:
    store.ingest([("harbour.txt", HARBOUR)])
    count, embedded = store.count(), len(embedder.embedded)
    again, copy = store.ingest([("harbour.txt", HARBOUR), ("copy.txt", HARBOUR)])
    assert (again.outcome, copy.outcome) == (ALREADY, ALREADY)
    assert again.passages == count
    assert copy.message == f"copy.txt: already indexed as harbour.txt, {counted(count, 'chunk')}."
    assert (store.count(), len(embedder.embedded)) == (count, embedded)


def test_a_new_version_takes_the_old_one_s_place(store: PassageStore) -> None:
    store.ingest([("guide.txt", HARBOUR), ("other.txt", write_prose("seals"))])
    before = store.fingerprint()
    (one,) = store.ingest([("guide.txt", TIDES)])
    assert one.outcome == REPLACED and store.fingerprint() != before
    assert name_all(store) == ["guide.txt", "other.txt"]
    (guide,) = (document for document in store.documents() if document.name == "guide.txt")
    assert guide.id == one.document_id
    assert not [hit for hit in store.search_keyword("harbour", 50) if hit.passage.source == "guide.txt"]


def test_a_refused_file_stops_no_other_and_harms_no_older_version(store: PassageStore) -> None:
    store.ingest([("c.pdf.txt", TIDES)])
    outcomes = store.ingest(
        [("a.txt", HARBOUR), ("bad.pdf", b"%PDF-1.4 broken"), ("x.mp3", b"x"), ("c.pdf.txt", b""), ("d.txt", b"Fine.")]
    )
    assert [one.outcome for one in outcomes] == [INDEXED, REFUSED, REFUSED, REFUSED, INDEXED]
    assert all(one.message and one.hint for one in outcomes if one.outcome == REFUSED)
    assert name_all(store) == ["a.txt", "c.pdf.txt", "d.txt"]


@pytest.mark.parametrize(
    "name",
    [
        "it's.txt",
        'say "aye".txt',
        "x' OR '1'='1.txt",
        "'; DROP TABLE chunks; --.txt",
        "back\\slash\\'.txt",
        "%_like.txt",
        "船.txt",
        "a" * 300 + ".txt",
        "🚢 <script>.txt",
        "../../etc/passwd.txt",
    ],
)
def test_any_name_is_only_a_name(store: PassageStore, name: str) -> None:
    near = [("its.txt", b"One."), ("It's.txt", b"Two."), ("it's.TXT", b"Three."), ("it's .txt", b"Four.")]
    store.ingest([*near, (name, HARBOUR)])
    (one,) = store.ingest([(name, TIDES)])
    assert one.outcome == REPLACED
    assert sorted(name_all(store)) == sorted([name, *(other for other, _ in near)])
    assert store.delete_all([one.document_id])
    assert sorted(name_all(store)) == sorted(other for other, _ in near)


def test_deletion_is_complete_and_takes_only_its_own(store: PassageStore) -> None:
    one, _ = store.ingest([("harbour.txt", HARBOUR), ("tides.txt", TIDES)])
    assert store.delete_all([one.document_id]) and not store.delete_all([one.document_id])
    assert name_all(store) == ["tides.txt"] and not store.passages_of(one.document_id)
    assert not store.search_keyword("harbour", 5)
    assert {hit.passage.source for hit in store.search_dense([0.1] * 64, 500)} == {"tides.txt"}
    (again,) = store.ingest([("harbour.txt", HARBOUR)])
    assert again.outcome == INDEXED and store.search_keyword("harbour", 5)


def test_somebody_who_adds_the_same_file_meanwhile_and_stops_takes_nothing_away(store: PassageStore) -> None:
    cancel = threading.Event()

    def add_too(progress: Progress) -> None:
        if progress.embedded:
            (other,) = store.ingest([("again.txt", HARBOUR)], lambda told: cancel.set(), cancel=cancel)
            assert other.outcome == LEFT_OUT

    (one,) = store.ingest([("harbour.txt", HARBOUR)], add_too)
    assert one.outcome == INDEXED and name_all(store) == ["harbour.txt"]


def test_stopping_leaves_the_current_document_and_those_after_it_out(store: PassageStore) -> None:
    cancel = threading.Event()

    def stop(progress: Progress) -> None:
        if progress.name == "tides.txt" and progress.embedded:
            cancel.set()

    files = [("harbour.txt", HARBOUR), ("x.mp3", b"x"), ("tides.txt", write_prose("tides", 900)), ("z.txt", b"Z.")]
    done = store.ingest(files, stop, cancel=cancel)
    assert [one.outcome for one in done] == [INDEXED, REFUSED, LEFT_OUT, LEFT_OUT]
    assert name_all(store) == ["harbour.txt"]
    assert {row.name: row.state for row in store.listing()} == {"harbour.txt": "indexed", "x.mp3": "refused"}
    assert store.finish_interrupted() == (), "what was stopped is not interrupted"
    assert [one.outcome for one in store.ingest(files)] == [ALREADY, REFUSED, INDEXED, INDEXED]


def test_what_a_fault_leaves_out_is_forgotten_and_what_was_done_stays(store: PassageStore) -> None:
    def fail(progress: Progress) -> None:
        if progress.name == "tides.txt" and progress.embedded:
            raise EmbeddingUnavailable("away")

    with pytest.raises(EmbeddingUnavailable):
        store.ingest([("harbour.txt", HARBOUR), ("tides.txt", TIDES)], fail)
    assert [row.name for row in store.listing()] == name_all(store) == ["harbour.txt"]


def test_a_table_made_by_another_embedding_model_is_refused(tmp_path: Path) -> None:
    PassageStore(tmp_path, WordEmbedder("model-a")).ingest([("harbour.txt", HARBOUR)])
    other = PassageStore(tmp_path, WordEmbedder("model-b"))
    assert other.documents() and other.index_version.embedding == "model-a"
    for use in (lambda: other.embedder, lambda: other.ingest([("t.txt", TIDES)])):
        with pytest.raises(StoreUnavailable, match=r"built with the embedding model 'model-a'.*'model-b'"):
            use()


def test_threads_adding_the_same_files_add_each_once(store: PassageStore) -> None:
    files = [(f"{topic}.txt", write_prose(topic, 5)) for topic in ("seals", "gulls", "tides", "ropes")]
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: store.ingest(files), range(4)))
    for one in zip(*runs, strict=True):
        assert sorted(each.outcome for each in one) == [ALREADY] * 3 + [INDEXED]
    ids = [passage.id for document in store.documents() for passage in store.passages_of(document.id)]
    assert len(ids) == len(set(ids)) == store.count()


def test_words_that_stand_everywhere_in_a_large_index_are_left_out_unless_there_are_no_others(
    store: PassageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crag_core.retrieval.index.search._MOST_ROWS", 20)
    store.ingest([(f"{number}.txt", f"A note about berth {number}x.".encode()) for number in range(30)])
    assert [hit.passage.source for hit in store.search_keyword("which note about berth 7x", 9)] == ["7.txt"]
    assert len(store.search_keyword("a note about berths", 9)) == 9
    store.delete_all([row.id for row in store.documents() if row.name != "7.txt"])
    assert len(store.search_keyword("note", 9)) == 1, "it is looked up again once the index has changed"


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("富士山は日本一高い山です。", "日本一の山"),
        ("ผู้โดยสารต้องมาก่อนเวลา", "เวลา"),
        ("첫 번째 배는 여섯 시에 출발합니다.", "배가 출발"),
        ("पहली नाव छह बजे निकलती है", "नाव कब निकलती"),
        ("Die Fähre fährt über den Fjord.", "fahre uber"),
        ("The ferries are running", "ferry runs"),
        ("Who is it?", "who"),
        ("It is.", "is it"),
    ],
)
def test_words_of_many_languages_are_found(store: PassageStore, text: str, question: str) -> None:
    store.ingest([("other.txt", b"Nothing like that stands here, 42."), ("one.txt", text.encode())])
    assert store.search_keyword(question, 5)[0].passage.source == "one.txt"


def test_chunks_that_share_common_words_alone_are_not_found_beside_better_ones(store: PassageStore) -> None:
    files = [(f"{number}.txt", f"Report {number} of the harbour.".encode()) for number in range(9)]
    store.ingest([*files, ("crane.txt", b"The crane of the harbour lifts seven tonnes.")])
    found = store.search_keyword("How many tonnes does the crane at the harbour lift?", 9)
    assert [hit.passage.source for hit in found] == ["crane.txt"]
    assert len(store.search_keyword("harbour", 20)) == 10


def test_a_collection_is_searched_alone_by_either_engine(store: PassageStore) -> None:
    store.ingest([("harbour.txt", HARBOUR)])
    store.ingest([("tides.txt", TIDES)], collection="sea")
    for collection, names in (("sea", {"tides.txt"}), ("main", {"harbour.txt"}), ("none", set())):
        for hits in (
            store.search_dense(embed_words("sentence tells"), 50, collection),
            store.search_keyword("sentence tells", 50, collection),
        ):
            assert {hit.passage.source for hit in hits} == names
    store.move([store.documents()[1].id], "main")
    assert store.count("sea") == 0 and len(store.search_dense(embed_words("tides"), 50, "main")) == store.count()


def test_vectors_in_memory_follow_what_another_process_writes(tmp_path: Path, embedder: WordEmbedder) -> None:
    """Added, replaced, removed, in any order, against a store that reads all of them."""
    one, other = PassageStore(tmp_path, embedder), PassageStore(tmp_path, embedder)
    query = embed_words("sentence about ropes and tides")
    ids: list[str] = []
    for step in range(12):
        if step % 4 == 3:
            one.delete_all([ids.pop(step % len(ids))])
        else:
            one.ingest([(f"file {step % 5}.txt", write_prose(f"ropes {step}", 20 + step))])
            ids = [row.id for row in one.documents()]
        expected = [(hit.passage.id, hit.score) for hit in PassageStore(tmp_path, embedder).search_dense(query, 500)]
        assert [(hit.passage.id, hit.score) for hit in other.search_dense(query, 500)] == expected
        assert len(expected) == other.count()


@pytest.mark.parametrize("odd", [b"\xef\xbb\xbfFirst.\r\nSecond\x0c and \xff last.\r\n", TIDES])
def test_a_file_comes_back_byte_for_byte(store: PassageStore, tmp_path: Path, odd: bytes) -> None:
    (one,) = store.ingest([("../../odd.txt", odd)])
    assert store.read_original(one.document_id) == odd
    store.delete_all([one.document_id])
    for gone in (one.document_id, "", "../guide", "0" * 32):
        with pytest.raises(DocumentMissing, match="not in the index"):
            store.read_original(gone)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_the_end_of_the_program_leaves_the_rest_to_the_next_start(
    store: PassageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel, files = threading.Event(), [("harbour.txt", HARBOUR), ("z.txt", b"Z.")]
    with monkeypatch.context() as ending:
        ending.setattr("crag_core.retrieval.index.ingest.is_ending", cancel.is_set)
        store.ingest(files, lambda progress: cancel.set(), cancel=cancel)
    assert name_all(store) == [] and {row.name for row in store.listing()} == {"harbour.txt", "z.txt"}
    assert [one.outcome for one in store.finish_interrupted()] == [INDEXED, INDEXED]

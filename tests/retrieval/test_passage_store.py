"""What goes in, what comes out, and what happens to names and versions. Real LanceDB, an embedder without a model."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from llama_index.core.schema import TextNode

from crag_core.base.documents import IngestOutcome, Progress
from crag_core.base.errors import EmbeddingUnavailable, StoreUnavailable
from crag_core.retrieval.backends.lance.passages import LancePassages
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
    assert not (tmp_path / "index" / "passages.lance").exists()


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


def test_pages_of_a_pdf_reach_the_passages(store: PassageStore) -> None:
    from fpdf import FPDF

    pdf = FPDF()
    pdf.set_font("helvetica")
    for text in ("The first page.", "The second page."):
        pdf.add_page()
        pdf.cell(text=text)
    store.ingest([("two.pdf", bytes(pdf.output()))])
    (document,) = store.documents()
    assert document.pages == 2
    assert [(passage.page, passage.text) for passage in store.passages_of(document.id)] == [
        (1, "The first page."),
        (2, "The second page."),
    ]


def test_a_table_row_is_never_cut(store: PassageStore) -> None:
    rows = "route,departs,vessel,note\n" + "".join(
        f"R{n},{n % 24:02}:15,Grey Plover,calls at pier {n} if needed\n" for n in range(120)
    )
    store.ingest([("times.csv", rows.encode())])
    (document,) = store.documents()
    lines = [line for passage in store.passages_of(document.id) for line in passage.text.split("\n")]
    assert document.passages > 5
    assert all(line.startswith("route: R") and line.endswith("if needed") for line in lines)


def test_the_same_again_embeds_nothing(store: PassageStore, embedder: WordEmbedder) -> None:
    store.ingest([("harbour.txt", HARBOUR)])
    count, embedded = store.count(), len(embedder.embedded)
    again, copy = store.ingest([("harbour.txt", HARBOUR), ("copy.txt", HARBOUR)])
    assert (again.outcome, copy.outcome) == (ALREADY, ALREADY)
    assert again.passages == count and "as 'harbour.txt'" in copy.message
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


def test_taking_over_another_file_s_content_removes_the_own_old_version(store: PassageStore) -> None:
    store.ingest([("a.txt", HARBOUR), ("b.txt", TIDES)])
    (one,) = store.ingest([("a.txt", TIDES)])
    assert one.outcome == ALREADY and "'b.txt'" in one.message and "older version was removed" in one.message
    assert name_all(store) == ["b.txt"]


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


@pytest.mark.parametrize("bad", ["", "x", "' OR 1=1 --", "0" * 31, "G" * 32, "0" * 32 + "' OR '1'='1"])
def test_ids_that_are_none_touch_nothing(store: PassageStore, bad: str) -> None:
    store.ingest([("harbour.txt", HARBOUR)])
    count = store.count()
    assert not store.delete_all([bad]) and store.passages_of(bad) == () and store.count() == count


def test_progress_tells_file_and_passages(store: PassageStore) -> None:
    seen: list[Progress] = []
    store.ingest([("bad.mp3", b"x"), ("harbour.txt", HARBOUR)], seen.append)
    assert (seen[0].name, seen[0].position, seen[0].total) == ("bad.mp3", 1, 2)
    assert seen[-1].name == "harbour.txt" and seen[-1].embedded == seen[-1].passages == store.count()


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


def test_the_end_of_the_program_leaves_the_rest_to_the_next_start(
    store: PassageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel, files = threading.Event(), [("harbour.txt", HARBOUR), ("z.txt", b"Z.")]
    with monkeypatch.context() as ending:
        ending.setattr("crag_core.retrieval.index.ingest.is_ending", cancel.is_set)
        store.ingest(files, lambda progress: cancel.set(), cancel=cancel)
    assert name_all(store) == [] and {row.name for row in store.listing()} == {"harbour.txt", "z.txt"}
    monkeypatch.setattr("crag_core.retrieval.index.index_writer.is_alive", lambda owner, said_at: False)
    assert [one.outcome for one in store.finish_interrupted()] == [INDEXED, INDEXED]


def test_what_a_fault_leaves_out_is_forgotten_and_what_was_ready_goes_in(store: PassageStore) -> None:
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


def test_another_store_on_the_same_folder_sees_every_change_at_once(tmp_path: Path, embedder: WordEmbedder) -> None:
    one, other = PassageStore(tmp_path, embedder), PassageStore(tmp_path, embedder)
    assert other.count() == 0
    (done,) = one.ingest([("harbour.txt", HARBOUR)])
    assert other.count() == one.count() > 0 and other.search_keyword("harbour", 1)
    other.delete_all([done.document_id])
    assert one.count() == 0


def test_threads_adding_the_same_files_add_each_once(store: PassageStore) -> None:
    files = [(f"{topic}.txt", write_prose(topic, 5)) for topic in ("seals", "gulls", "tides", "ropes")]
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: store.ingest(files), range(4)))
    for one in zip(*runs, strict=True):
        assert sorted(each.outcome for each in one) == [ALREADY] * 3 + [INDEXED]
    ids = [passage.id for document in store.documents() for passage in store.passages_of(document.id)]
    assert len(ids) == len(set(ids)) == store.count()


def test_an_index_that_cannot_be_tidied_still_has_the_document(
    store: PassageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object) -> None:
        raise RuntimeError("no space left on device")

    monkeypatch.setattr("crag_core.retrieval.backends.lance.passages.LancePassages.tidy", fail)
    (one,) = store.ingest([("harbour.txt", HARBOUR)])
    assert one.outcome == INDEXED and store.search_keyword("harbour", 1)


def test_many_documents_are_tidied_on_the_way_so_that_the_last_is_added_as_fast_as_the_first(
    store: PassageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crag_core.retrieval.index.ingest.WRITTEN_AT_ONCE", 1)
    monkeypatch.setattr("crag_core.retrieval.index.ingest._TIDIED_AFTER", 2)
    there: list[int] = []
    tidy = LancePassages.tidy

    def tidy_and_note(self: LancePassages) -> None:
        there.append(store.count())
        tidy(self)

    monkeypatch.setattr(LancePassages, "tidy", tidy_and_note)
    store.ingest([(f"note-{number}.txt", write_prose(f"ferry {number}", 9)) for number in range(5)])
    assert there == [2, 4, 5] and store.count() == 5


def test_many_documents_are_written_with_few_commits(store: PassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = note_writes(monkeypatch)
    monkeypatch.setattr("crag_core.retrieval.index.ingest.WRITTEN_AT_ONCE", 20)
    done = store.ingest([(f"note-{number}.txt", write_prose(f"ferry {number}", 9)) for number in range(50)])
    assert [one.outcome for one in done] == [INDEXED] * 50 and sizes == [20, 20, 10]


@pytest.mark.parametrize(
    "text", ['"harbour"', "“harbour”", '"What is a ""harbour""?"', "'harbour'", "harbour AND (", "-harbour*"]
)
def test_a_question_in_quotes_is_searched_for_by_its_words(store: PassageStore, text: str) -> None:
    store.ingest([("harbour.txt", HARBOUR)])
    assert store.search_keyword(text, 1)


def test_llamaindex_s_own_tools_read_the_index(store: PassageStore) -> None:
    import lancedb
    from llama_index.core.vector_stores import VectorStoreQuery
    from llama_index.vector_stores.lancedb import LanceDBVectorStore

    store.ingest([("harbour.md", b"# Harbour\n\n" + HARBOUR), ("tides.txt", TIDES)])
    wrapper = LanceDBVectorStore.from_table(lancedb.connect(store.place).open_table("passages"))
    found = wrapper.query(VectorStoreQuery(query_embedding=embed_words("the harbour"), similarity_top_k=3))
    assert len(found.nodes) == 3
    known = {passage.id: passage for one in store.documents() for passage in store.passages_of(one.id)}
    for node in found.nodes:
        passage = known[node.node_id]
        assert (node.get_content(), node.metadata["file_name"]) == (passage.text, passage.source)
        assert node.ref_doc_id == passage.document_id


def note_writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many passages each commit brings."""
    sizes: list[int] = []
    add = LancePassages.add

    def add_and_note(self: LancePassages, nodes: list[TextNode], collections: dict[str, str]) -> None:
        sizes.append(len(nodes))
        add(self, nodes, collections)

    monkeypatch.setattr(LancePassages, "add", add_and_note)
    return sizes


def test_a_document_is_written_with_one_commit(store: PassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = note_writes(monkeypatch)
    store.ingest([("long.txt", write_prose("a long story", 900))])
    assert sizes == [store.count()] and sizes[0] > 40


def make_early(folder: Path) -> None:
    """An index as it was before there were catalogue, collections and sections."""
    import lancedb

    connection = lancedb.connect(folder)
    connection.drop_table("documents")
    connection.open_table("passages").drop_columns(["collection", "section"])


def test_an_index_of_earlier_days_is_read_as_it_is_and_brought_up_to_date_by_the_next_document(tmp_path: Path) -> None:
    PassageStore(tmp_path, WordEmbedder()).ingest([("harbour.txt", HARBOUR), ("tides.txt", TIDES)])
    before = PassageStore(tmp_path, WordEmbedder()).documents()
    make_early(tmp_path)
    store = PassageStore(tmp_path, WordEmbedder())
    assert [replace(one, changed_at="") for one in store.documents()] == [replace(one, changed_at="") for one in before]
    assert store.count() == sum(one.passages for one in before) and not (tmp_path / "documents.lance").exists()
    for search in (store.search_keyword, lambda *asked: store.search_dense(embed_words("harbour"), *asked[1:])):
        assert search("harbour", 1) and search("harbour", 1, "main") and not search("harbour", 1, "ships")
    assert store.ingest([("harbour.txt", HARBOUR)])[0].outcome == ALREADY
    assert store.ingest([("ferry.md", b"# Ferry\n\nIt sails.")], collection="ships")[0].outcome == INDEXED
    assert store.search_keyword("harbour", 1, "main") and not store.search_keyword("harbour", 1, "ships")
    assert store.search_keyword("sails", 1, "ships")[0].passage.section == "Ferry"
    assert name_all(store) == ["ferry.md", "harbour.txt", "tides.txt"]

"""An index in a PostgreSQL, against a real server: servers that die, freeze or say no, processes that are killed."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from crag_core.base.documents import Document, IndexVersion, Recipe
from crag_core.base.errors import BadRecord, StoreUnavailable
from crag_core.retrieval.backends.postgres import server as postgres_server
from crag_core.retrieval.backends.postgres import vector_search
from crag_core.retrieval.backends.postgres.backend import PostgresBackend
from crag_core.retrieval.backends.postgres.keyword_search import split_words
from crag_core.retrieval.index.store import PassageStore
from tests.matrix import mostly
from tests.retrieval.backends.postgres_dying import dying_at
from tests.retrieval.backends.test_contract import WORDS, add, nodes_of
from tests.retrieval.conftest import REPOSITORY
from tests.retrieval.dying import BEFORE, FILES, Killed
from tests.retrieval.fakes import DIMENSION, WordEmbedder, embed_words, write_prose
from tests.retrieval.test_kills import finish, whole
from tests.stand_ins.local_server import HOST
from tests.stand_ins.postgres_server import PASSWORD, PostgresServer

pytestmark = pytest.mark.usefixtures("pgvector")

SHORT = Recipe("words-64", 60, 10)


def open_store(url: str, embedder: WordEmbedder | None = None) -> PassageStore:
    return PassageStore(PostgresBackend(url), embedder or WordEmbedder())


def check_statistics(postgres: PostgresServer, url: str, generation: str = "0", schema: str = "public") -> None:
    """The words and lengths that are kept are those that a recount gives."""
    passages, words = f"{schema}.crag_passages_{generation}", f"{schema}.crag_words_{generation}"
    counted = f"SELECT lexeme, count(*) FROM {passages}, unnest(tsv) GROUP BY lexeme"
    assert dict(postgres.execute(f"SELECT lexeme, n FROM {words}", url=url)) == dict(postgres.execute(counted, url=url))
    ((total, length),) = postgres.execute(f"SELECT count(*), coalesce(sum(words), 0) FROM {passages}", url=url)
    told = f"SELECT passages, words FROM {schema}.crag_statistics WHERE generation = %s"
    assert postgres.execute(told, generation, url=url) == [(total, length)]


# --- words ------------------------------------------------------------------------------------------------------------

SPLIT = {
    "The Fähre's e-mail, v1.2!": "the fahre s e mail v1 2",
    "東京タワー and 京": "東京 京タ タワ ワー and 京",
    "เรือข้าม": "เร รื ือ อข ข้ ้า าม",
    "नाव सुबह": "नाव सुबह",
    "Ｆｕｌｌ ﾊﾝ ｶﾞ": "full ハン ガ",
    "한국어 Ёлка": "한국어 елка",
    " _ ?! \x00 \ud800 🛥": "",
}


@pytest.mark.parametrize(("text", "words"), SPLIT.items(), ids=map(ascii, SPLIT))
def test_words_of_any_script(text: str, words: str) -> None:
    assert split_words(text) == words


LONG = {
    "many words": " ".join(f"word{number}" for number in range(20_000)),
    "one word": "ferry " * 20_000,
    "a word without end": "x" * 100_000 + " ferry",
    "Chinese": "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(200_000)),
    "rare signs": "".join(map(chr, np.random.default_rng(1).integers(0x20000, 0x2A000, 200_000))),
}


@pytest.mark.parametrize("name", mostly("one word", *(name for name in LONG if name != "one word")))
def test_a_very_long_text_is_no_fault(postgres: PostgresServer, postgres_url: str, name: str) -> None:
    backend = PostgresBackend(postgres_url)
    (node, *_) = nodes_of("The ferry.")
    node.text = LONG[name]
    with backend.lock():
        backend.passages(WORDS).add([node], {node.ref_doc_id or "": "main"})
    check_statistics(postgres, postgres_url)
    (hit,) = backend.passages(WORDS).search_keyword(LONG[name][:40] + " ferry", 3)
    assert hit.passage.text == LONG[name]
    assert backend.passages(WORDS).search_keyword(LONG[name], 3), "as a question too"
    with backend.lock():
        backend.passages(WORDS).delete([node.ref_doc_id or ""])
    check_statistics(postgres, postgres_url)


def test_word_statistics_stay_exact(postgres: PostgresServer, postgres_url: str) -> None:
    backend = PostgresBackend(postgres_url)
    passages = backend.passages(WORDS)
    ids = add(backend, *(f"The ferry {number} sails to harbour {number % 7}, in winter too." for number in range(600)))
    check_statistics(postgres, postgres_url)
    with backend.lock():
        passages.move(ids[:20], "other")
        passages.delete(ids[10:300])
    check_statistics(postgres, postgres_url)
    (again,) = nodes_of("The ferry 599 sails to harbour 4, in winter too.")
    assert again.ref_doc_id == ids[-1]
    with backend.lock():
        passages.add([again], {ids[-1]: "main"})
    assert passages.coverage() == (310, 0), "what is there already is there once"
    check_statistics(postgres, postgres_url)
    with backend.lock():
        passages.delete(ids)
    check_statistics(postgres, postgres_url)
    assert passages.coverage() == (0, 0) and passages.search_keyword("ferry", 3) == []


def test_common_words_find_as_many_as_are_asked_for(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crag_core.retrieval.backends.postgres.keyword_search._ENOUGH", 3)
    backend = PostgresBackend(postgres_url)
    add(backend, *(f"The ferry sails on day {number}." for number in range(30)), "A capstan.")
    add(backend, "Another ferry.", collection="far")
    found = backend.passages(WORDS).search_keyword("ferry capstan", 20)
    assert len(found) == 20 and found[0].passage.text == "A capstan."
    assert len(backend.passages(WORDS).search_keyword("ferry capstan", 20, "far")) == 1


# --- kills ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def _owners_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who died here is this very process, which is still alive."""
    for module in ("index_writer", "index_versions", "reindex"):
        monkeypatch.setattr(f"crag_core.retrieval.index.{module}.is_alive", lambda owner, said_at: False)


@pytest.fixture
def schemas(postgres: PostgresServer, postgres_url: str) -> Iterator[Callable[[], str]]:
    """URLs of schemas of their own, each an empty index."""
    postgres.execute("CREATE EXTENSION vector", url=postgres_url)
    numbers = count()

    def make() -> str:
        name = f"s{next(numbers)}"
        postgres.execute(f"CREATE SCHEMA {name}", url=postgres_url)
        return f"{postgres_url}?options=-csearch_path%3D{name}%2Cpublic"

    return make


def each_step(
    schemas: Callable[[], str], work: Callable[[PassageStore], object], every: int, at_least: int
) -> Iterator[str]:
    """The URL of an index for every n-th step of `work`, left as dying just before it leaves it."""
    for step in range(0, 200, every):
        url = schemas()
        open_store(url).ingest(BEFORE)
        try:
            with dying_at(step):
                work(open_store(url))
        except Killed:
            yield url
        else:
            assert step > at_least, "there are steps to die at"
            return
    raise AssertionError("more than 200 steps")


def recount(postgres: PostgresServer, url: str) -> None:
    schema = url.rpartition("%3D")[2].partition("%")[0]
    for (generation,) in postgres.execute(f"SELECT generation FROM {schema}.crag_statistics", url=url):
        check_statistics(postgres, url, generation, schema)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("_owners_are_gone")
@pytest.mark.parametrize("every", [3, 1])
def test_dying_at_any_step_of_indexing(postgres: PostgresServer, schemas: Callable[[], str], every: int) -> None:
    old, new = {name for name, _ in BEFORE}, {name for name, _ in FILES}
    seen = set()
    for url in each_step(schemas, lambda store: store.ingest(FILES), every, 10):
        left = set(whole(PostgresBackend(url)))
        assert old <= left <= old | new
        finish(PostgresBackend(url))
        after = set(whole(PostgresBackend(url)))
        seen.add(len(after - old))
        assert left <= after and after in (old, old | new), "once the files are kept all of them come in"
        recount(postgres, url)
    assert seen == {0, len(new)}


@pytest.mark.usefixtures("_owners_are_gone")
@pytest.mark.parametrize("every", mostly(3, 1))
def test_dying_at_any_step_of_replacing(postgres: PostgresServer, schemas: Callable[[], str], every: int) -> None:
    seen = set()
    for url in each_step(schemas, lambda store: store.ingest([("guide.txt", write_prose("winches"))]), every, 10):
        assert "guide.txt" in whole(PostgresBackend(url)), "one of the two contents is there"
        finish(PostgresBackend(url))
        seen.add(whole(PostgresBackend(url))["guide.txt"])
        found = open_store(url).search_keyword("ropes winches", 50)
        assert len({hit.passage.document_id for hit in found}) == 1, "only one content is found"
        recount(postgres, url)
    assert seen == {1, 2}


@pytest.mark.exhaustive
@pytest.mark.usefixtures("_owners_are_gone")
@pytest.mark.parametrize("every", [3, 1])
def test_dying_at_any_step_of_making_anew(postgres: PostgresServer, schemas: Callable[[], str], every: int) -> None:
    finished = 0
    for url in each_step(schemas, lambda store: store.rebuild(SHORT), every, 10):
        store = open_store(url)
        assert set(whole(PostgresBackend(url))) == {name for name, _ in BEFORE}
        before = store.index_version.recipe
        done = store.finish_rebuild()
        finished += done is not None
        assert store.index_version.recipe == (SHORT if done else before) and store.finish_rebuild() is None
        assert set(whole(PostgresBackend(url))) == {name for name, _ in BEFORE}
        assert store.search_keyword("ropes", 1) and store.search_dense(embed_words("ropes"), 1)
        recount(postgres, url)
    assert finished > 5 / every


def start(url: str, step: int, *topics: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.retrieval.backends.postgres_dying", url, str(step), *topics]
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=REPOSITORY, text=True, **piped)


@pytest.mark.parametrize("step", mostly(12, 7, 16))
def test_of_two_processes_one_is_killed_and_the_other_finishes(
    postgres: PostgresServer, postgres_url: str, step: int
) -> None:
    dying, living = start(postgres_url, step, "seals", "gulls"), start(postgres_url, -1, "ropes", "anchors", "buoys")
    for process in (dying, living):
        assert process.stdout and process.stdout.readline() == "ready\n"
    for process in (dying, living):
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    (_, said), (told, problem) = dying.communicate(timeout=60), living.communicate(timeout=60)
    assert dying.returncode == -signal.SIGKILL, said
    assert living.returncode == 0 and told.count("indexed") == 3, problem
    backend = PostgresBackend(postgres_url)
    left = set(whole(backend))
    assert {"ropes.txt", "anchors.txt", "buoys.txt"} <= left
    started = time.monotonic()
    finish(backend)
    assert time.monotonic() - started < 5, "the lock is free"
    assert left <= set(whole(backend)) <= {"ropes.txt", "anchors.txt", "buoys.txt", "seals.txt", "gulls.txt"}
    check_statistics(postgres, postgres_url)


# --- the lock ---------------------------------------------------------------------------------------------------------


def terminate(postgres: PostgresServer, url: str) -> None:
    """Everybody else is thrown out of this database."""
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    postgres.execute(others, url.rpartition("/")[2])


def test_who_loses_the_lock_writes_nothing(postgres: PostgresServer, postgres_url: str) -> None:
    backend, other = PostgresBackend(postgres_url), PostgresBackend(postgres_url)
    with pytest.raises(StoreUnavailable) as fault, backend.lock():
        backend.documents.put([Document("1", "a.txt")])
        terminate(postgres, postgres_url)
        with other.lock():
            other.documents.put([Document("2", "b.txt")])
        backend.documents.put([Document("3", "c.txt")])
    assert "cannot be reached" in fault.value.message
    assert [row.id for row in backend.documents.rows()] == ["2"]
    with pytest.raises(StoreUnavailable), backend.lock():
        backend.documents.put([Document("1", "a.txt")])
        terminate(postgres, postgres_url)
    with backend.lock():
        backend.documents.put([Document("4", "d.txt")])
    assert {row.id for row in other.documents.rows()} == {"2", "4"}


def test_an_error_undoes_all_that_was_written_and_is_not_remembered(postgres_url: str) -> None:
    backend = PostgresBackend(postgres_url)
    with pytest.raises(ZeroDivisionError), backend.lock():
        backend.documents.put([Document("1", "a.txt")])
        assert backend.documents.is_there() and len(backend.documents.rows()) == 1
        raise ZeroDivisionError
    assert not backend.documents.is_there() and backend.documents.rows() == []
    add(backend, "The ferry sails.")
    # Whoever goes on after an error as if nothing had been is told at the end.
    with pytest.raises(StoreUnavailable, match="did not take"), backend.lock(), pytest.raises(StoreUnavailable):
        backend._server.write(lambda connection: connection.execute("SELECT 1 / 0"))
    assert backend.passages(WORDS).coverage() == (1, 0)


def test_writing_without_the_lock_is_a_bug(postgres_url: str) -> None:
    with pytest.raises(AssertionError):
        PostgresBackend(postgres_url).documents.put([])


def test_a_lock_that_stays_taken_is_told(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_server, "LOCK_S", 0.3)
    one, other = PostgresBackend(postgres_url), PostgresBackend(postgres_url)
    with one.lock():
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match="Another process has been writing"), other.lock():
            pass
        with ThreadPoolExecutor(1) as thread, pytest.raises(StoreUnavailable, match="Another process"):
            thread.submit(lambda: one.lock().__enter__()).result()
        assert 0.5 < time.monotonic() - started < 5
    with other.lock():
        pass


def test_reading_needs_no_lock(postgres_url: str) -> None:
    backend, other = PostgresBackend(postgres_url), PostgresBackend(postgres_url)
    add(backend, "The ferry sails at nine.")
    with backend.lock():
        backend.passages(WORDS).drop()
        backend.documents.put([Document("1", "a.txt")])
        assert backend.passages(WORDS).search_keyword("ferry", 1) == [] == other.documents.rows()
    assert [row.id for row in other.documents.rows()] == ["1"]


def test_tables_that_somebody_took_away_are_made_again(postgres: PostgresServer, postgres_url: str) -> None:
    backend = PostgresBackend(postgres_url)
    add(backend, "The ferry sails.")
    postgres.execute("DROP TABLE crag_documents, crag_originals", url=postgres_url)
    with pytest.raises(StoreUnavailable), backend.lock():
        backend.documents.put([Document("1", "a.txt")])
    with backend.lock():
        backend.documents.put([Document("1", "a.txt")])
    assert backend.documents.rows() and backend.passages(WORDS).search_keyword("ferry", 1)


def test_two_first_uses_at_once(postgres_url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: add(PostgresBackend(postgres_url), f"Text {number}."), range(6)))
    assert PostgresBackend(postgres_url).passages(WORDS).coverage() == (6, 0)


# --- what came later, and what costs little ---------------------------------------------------------------------------


def test_lists_are_read_again_only_after_a_change(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend, other = PostgresBackend(postgres_url), PostgresBackend(postgres_url)
    with backend.lock():
        backend.documents.put([Document("1", "a.txt")])
    first = backend.documents.rows()
    with backend.lock():
        backend.documents.put([])
        backend.documents.drop(["2"])
    assert backend.documents.rows()[0] is first[0], "nothing was read"
    with other.lock():
        other.documents.put([Document("1", "b.txt")])
    assert backend.documents.rows() == [Document("1", "b.txt")]


def test_a_list_of_earlier_days_gets_the_fields_that_came_since(postgres: PostgresServer, postgres_url: str) -> None:
    with PostgresBackend(postgres_url).lock():
        pass
    postgres.execute("ALTER TABLE crag_generations DROP COLUMN recall, DROP COLUMN effort", url=postgres_url)
    postgres.execute("INSERT INTO crag_generations (id, embedding) VALUES ('4', 'm')", url=postgres_url)
    postgres.execute("INSERT INTO crag_versions VALUES ('generations', gen_random_uuid())", url=postgres_url)
    backend = PostgresBackend(postgres_url)
    assert backend.index_versions.rows() == [IndexVersion("4", "m")]
    with backend.lock():
        backend.index_versions.put([IndexVersion("5", "m", recall=0.5)])
    assert {row.id: row.recall for row in backend.index_versions.rows()} == {"4": 1.0, "5": 0.5}


# --- the index of vectors ---------------------------------------------------------------------------------------------


def fill(backend: PostgresBackend, rows: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(rows, DIMENSION)).astype(np.float32)
    nodes = [node for number in range(rows) for node in nodes_of(f"Chunk number {number}.")]
    for node, vector in zip(nodes, vectors, strict=True):
        node.embedding = vector.tolist()
    with backend.lock():
        backend.passages(WORDS).add(nodes, {node.ref_doc_id or "": "main" for node in nodes})
    return vectors


def is_used(postgres: PostgresServer, url: str) -> int:
    """How often it was."""
    used = "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes WHERE indexrelname = 'crag_passages_0_vectors'"
    postgres.execute("SELECT pg_stat_force_next_flush()", url=url)
    return int(postgres.execute(used, url=url)[0][0])


def test_the_index_is_used_with_an_effort_and_only_then(postgres: PostgresServer, postgres_url: str) -> None:
    backend = PostgresBackend(postgres_url)
    vectors = fill(backend, 3000)
    backend.passages(WORDS).index_vectors()
    backend.passages(WORDS).tidy()
    quick = replace(WORDS, effort=100)

    def ask(version: IndexVersion, exact: bool = False) -> int:
        one = PostgresBackend(postgres_url)  # what a connection counted is told at its end
        found = one.passages(version).search_dense(vectors[0].tolist(), 10, exact=exact)
        assert len(found) == 10 and found[0].score > 0.999
        one._server._forget()
        time.sleep(0.2)
        return is_used(postgres, postgres_url)

    before = is_used(postgres, postgres_url)
    assert ask(WORDS) == before == ask(quick, exact=True)
    assert ask(quick) == before + 1


def test_a_small_collection_does_not_come_short_through_the_index(postgres_url: str) -> None:
    backend = PostgresBackend(postgres_url)
    vectors = fill(backend, 3000)
    few = [row.id for row in backend.passages(WORDS).documents()][:60]
    with backend.lock():
        backend.passages(WORDS).move(few, "few")
    backend.passages(WORDS).index_vectors()
    # PostgreSQL would look at all of so few.
    planned = "".join(f"-cenable_{way}%3Doff%20" for way in ("seqscan", "bitmapscan", "sort"))
    quick = PostgresBackend(f"{postgres_url}?options={planned}").passages(replace(WORDS, effort=100))
    assert len(quick.search_dense(vectors[5].tolist(), 30, "few")) == 30


def test_an_index_half_made_is_made_anew(postgres: PostgresServer, postgres_url: str) -> None:
    backend = PostgresBackend(postgres_url)
    passages = backend.passages(WORDS)
    passages.index_vectors()
    fill(backend, 300)
    passages.index_vectors()
    assert passages.coverage() == (300, 300)
    half = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'crag_passages_0_vectors'::regclass"
    postgres.execute(half, url=postgres_url)
    assert passages.coverage() == (300, 0)
    passages.index_vectors()
    assert passages.coverage() == (300, 300)


def test_only_one_makes_the_index_and_others_write_meanwhile(
    postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "_LOOKED_AT_EVERY", 0.05)
    backend = PostgresBackend(postgres_url)
    fill(backend, 300)
    import psycopg

    with psycopg.connect(postgres_url) as holding, ThreadPoolExecutor(1) as thread:
        holding.execute("SELECT id FROM crag_passages_0")
        holding.execute("LOCK crag_passages_0 IN ROW EXCLUSIVE MODE")  # until it ends, the index waits
        making = thread.submit(backend.passages(WORDS).index_vectors)
        at_it = "SELECT count(*) FROM pg_stat_progress_create_index"
        while postgres.execute(at_it, url=postgres_url) == [(0,)]:
            time.sleep(0.02)
        PostgresBackend(postgres_url).passages(WORDS).index_vectors()
        add(PostgresBackend(postgres_url), "The ferry sails.")
        assert not making.done() and backend.passages(WORDS).search_keyword("ferry", 1)
        holding.rollback()
        making.result(30)
    assert backend.passages(WORDS).coverage() == (301, 301)


def test_a_generation_goes_although_its_index_is_being_made(postgres: PostgresServer, postgres_url: str) -> None:
    backend = PostgresBackend(postgres_url)
    fill(backend, 300)
    import psycopg

    with psycopg.connect(postgres_url) as holding, ThreadPoolExecutor(1) as thread:
        holding.execute("LOCK crag_words_0 IN ROW EXCLUSIVE MODE")
        holding.execute("LOCK crag_passages_0 IN ROW SHARE MODE")
        holding.execute("LOCK crag_passages_0 IN ROW EXCLUSIVE MODE")
        making = thread.submit(backend.passages(WORDS).index_vectors)
        at_it = "SELECT count(*) FROM pg_stat_progress_create_index"
        while postgres.execute(at_it, url=postgres_url) == [(0,)]:
            time.sleep(0.02)
        threading.Timer(0.5, holding.cancel).start()
        threading.Timer(0.5, holding.rollback).start()
        with backend.lock():
            backend.passages(WORDS).drop()
        with pytest.raises(StoreUnavailable):
            making.result(30)
    assert backend.passages(WORDS).built_with() is None


def test_vectors_that_are_too_long_for_an_index_are_all_looked_at(postgres_url: str) -> None:
    backend = PostgresBackend(postgres_url)
    (node,) = nodes_of("The ferry.")
    node.embedding = [1.0] * 2001
    quick = backend.passages(replace(WORDS, effort=100))
    with backend.lock():
        quick.add([node], {node.ref_doc_id or "": "main"})
    quick.index_vectors()
    assert quick.coverage() == (1, 0) and len(quick.search_dense([1.0] * 2001, 3)) == 1


def test_a_vector_of_nothing_is_no_fault(postgres_url: str) -> None:
    backend = PostgresBackend(postgres_url)
    add(backend, "The ferry.")
    assert [hit.score for hit in backend.passages(WORDS).search_dense([0.0] * DIMENSION, 3)] == [0.0]


# --- servers that do not answer ---------------------------------------------------------------------------------------


def test_a_server_that_is_away_is_told_without_the_password() -> None:
    backend = PostgresBackend(f"postgresql://me:wrong-word@{HOST}:9/crag")
    for use in (backend.documents.rows, lambda: backend.lock().__enter__(), backend.passages(WORDS).index_vectors):
        with pytest.raises(StoreUnavailable) as fault:
            use()
        assert f"postgresql://{HOST}:9/crag cannot be reached" in fault.value.message
        assert "server runs" in fault.value.hint and "CRAG_STORE" in fault.value.hint
        assert "wrong-word" not in "".join(traceback.format_exception(fault.value))


@pytest.mark.exhaustive
def test_a_server_that_freezes_is_not_waited_for_without_end(
    postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = PostgresBackend(postgres_url)
    add(backend, "The ferry sails.")
    for name in ("READ_S", "WRITE_S"):
        monkeypatch.setattr(postgres_server, name, 0.3)
    monkeypatch.setattr("crag_core.retrieval.backends.postgres.server._KEPT", 1)
    with postgres.frozen():
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"no reply within 0\.3 s"):
            backend.passages(WORDS).search_keyword("ferry", 3)
        assert time.monotonic() - started < 2
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            backend.passages(WORDS).search_keyword("ferry", 3)
        assert time.monotonic() - started < 9, "it takes five seconds to see that nobody opens"
    assert backend.passages(WORDS).search_keyword("ferry", 3)
    with pytest.raises(StoreUnavailable), backend.lock(), postgres.frozen():
        backend.documents.put([Document("1", "a.txt")])
    with backend.lock():
        pass
    assert backend.documents.rows() == []


def test_connections_that_the_server_broke_off_are_made_anew(postgres: PostgresServer, postgres_url: str) -> None:
    backend = PostgresBackend(postgres_url)
    add(backend, "The ferry sails.")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: backend.passages(WORDS).search_keyword("ferry", 3), range(20)))
    terminate(postgres, postgres_url)
    assert backend.passages(WORDS).search_keyword("ferry", 3)
    terminate(postgres, postgres_url)
    with backend.lock():
        backend.documents.put([])


@pytest.mark.usefixtures("_owners_are_gone")
def test_a_server_killed_in_mid_ingest_and_started_again_loses_nothing_that_was_in() -> None:
    with PostgresServer() as server:
        batches = count()

        def stop_at_the_second(texts: object) -> None:
            if next(batches) == 1:
                server.stop()

        open_store(server.url).ingest(BEFORE)
        store = open_store(server.url, WordEmbedder(on_batch=stop_at_the_second))
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            store.ingest(FILES)
        with pytest.raises(StoreUnavailable):
            store.documents()
        server.start()
        assert set(whole(PostgresBackend(server.url))) >= {name for name, _ in BEFORE}
        finish(PostgresBackend(server.url))
        assert set(whole(PostgresBackend(server.url))) == {name for name, _ in [*BEFORE, *FILES]}
        check_statistics(server, server.url)


# --- servers that say no ----------------------------------------------------------------------------------------------


@pytest.fixture
def guest(postgres: PostgresServer, postgres_url: str) -> Iterator[str]:
    """The URL with a user who may do nothing but enter."""
    postgres.execute("CREATE ROLE guest LOGIN PASSWORD 'words'")
    yield postgres.url_of(postgres_url.rpartition("/")[2], "guest", "words")
    postgres.execute("DROP OWNED BY guest", url=postgres_url)
    postgres.execute("DROP ROLE guest")


def test_a_user_who_may_not_add_the_extension_is_told_how(
    postgres: PostgresServer, postgres_url: str, guest: str
) -> None:
    postgres.execute("GRANT CREATE ON SCHEMA public TO guest", url=postgres_url)
    with pytest.raises(StoreUnavailable) as fault:
        add(PostgresBackend(guest), "The ferry.")
    assert "lacks the extension vector" in fault.value.message and "CREATE EXTENSION vector" in fault.value.hint
    postgres.execute("CREATE EXTENSION vector", url=postgres_url)
    assert add(PostgresBackend(guest), "The ferry."), "with the extension there it is enough to make tables"


def test_a_user_who_may_not_make_tables_is_told(postgres: PostgresServer, postgres_url: str, guest: str) -> None:
    postgres.execute("CREATE EXTENSION vector", url=postgres_url)
    backend = PostgresBackend(guest)
    assert backend.documents.rows() == [], "nothing is there"
    with pytest.raises(StoreUnavailable) as fault, backend.lock():
        pass
    assert "permission denied" in fault.value.message and "right to make tables" in fault.value.hint


def test_a_time_limit_of_the_server_is_told(postgres: PostgresServer, postgres_url: str) -> None:
    backend = PostgresBackend(f"{postgres_url}?options=-cstatement_timeout%3D50")
    with pytest.raises(StoreUnavailable) as fault:
        backend._server.read(lambda connection: connection.execute("SELECT pg_sleep(5)"), None)
    assert "statement timeout" in fault.value.message and "too long by its settings" in fault.value.hint


@pytest.mark.parametrize("wrong", ["crag:wrong-word@", "admin:wrong-word@", ""])
def test_a_wrong_password_is_told_and_never_shown(
    postgres: PostgresServer, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    backend = PostgresBackend(f"postgresql://{wrong}{HOST}:{postgres.port}/postgres")
    with pytest.raises(StoreUnavailable) as fault:
        backend.documents.rows()
    assert "cannot be reached" in fault.value.message and "password" in fault.value.hint
    shown = "".join([*traceback.format_exception(fault.value), caplog.text, repr(backend), backend.place])
    assert "wrong-word" not in shown


def test_a_database_that_is_not_there_is_told(postgres: PostgresServer) -> None:
    with pytest.raises(StoreUnavailable) as fault:
        PostgresBackend(postgres.url_of("nowhere")).documents.rows()
    assert "nowhere" in fault.value.message and "has this database" in fault.value.hint
    assert PASSWORD not in str(fault.value)


BAD = [
    *("postgresql://me:secret@box:port/crag", "postgresql://me:sec@ret@box/crag", "postgresql://me:12@sec/ret@box"),
    *("postgresql://me:secret@box/crag?colour=red", "postgresql://me:secret\udc80@box/crag"),
]


@pytest.mark.parametrize("url", BAD, ids=ascii)
def test_a_url_that_cannot_be_read_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(BadRecord, match=r"CRAG_STORE: expected postgresql://") as refused:
        PostgresBackend(url)
    assert "sec" not in "".join(traceback.format_exception_only(refused.value)) and refused.value.__suppress_context__


def test_damaged_files_are_kept_anew(postgres: PostgresServer, postgres_url: str) -> None:
    from crag_core.base.errors import DocumentMissing
    from crag_core.retrieval.backends.backend import name_content

    backend, id_ = PostgresBackend(postgres_url), name_content(b"whole")
    with backend.lock():
        backend.originals.keep(id_, b"whole")
    postgres.execute("UPDATE crag_originals SET content = 'half'", url=postgres_url)
    with pytest.raises(DocumentMissing, match="is damaged"):
        backend.originals.read(id_)
    with backend.lock():
        backend.originals.keep(id_, b"whole")
    assert backend.originals.read(id_) == b"whole"

"""A store that is away, dies, is silent, is damaged: a run says where it broke off, and goes on when it is back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from crag_core.app.workbench import Workbench
from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.backends import objects
from crag_core.retrieval.backends.postgres import server as postgres_server
from crag_core.trace.trace import Trace
from tests.faults.conftest import Open
from tests.faults.parts import DOCUMENTS, QUESTION, Wire, at, broken_at, fill, judged, quoting
from tests.judge import ANSWER, heard
from tests.stand_ins.local_server import HOST
from tests.stand_ins.ollama_server import OllamaServer
from tests.stand_ins.postgres_server import PostgresServer
from tests.stand_ins.s3_server import KEYS, S3Server


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of a second or less, in place of those that a busy server needs."""
    monkeypatch.setattr(postgres_server, "CONNECT_S", 1)
    for name in ("READ_S", "WRITE_S"):
        monkeypatch.setattr(postgres_server, name, 0.5)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with S3Server() as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


def whole(trace: Trace) -> bool:
    return broken_at(trace) == "" and trace.answer is not None and "14 pounds" in trace.answer.text


def refused(workbench: Workbench) -> StoreUnavailable:
    """What a user is told who asks while the store is away from the start."""
    with pytest.raises(StoreUnavailable) as fault:
        workbench.engine(quoting(workbench)).run(QUESTION)
    assert fault.value.hint and fault.value.retryable
    return fault.value


# --- a folder of this machine -----------------------------------------------------------------------------------------


def test_a_folder_that_is_taken_away_in_mid_run(open_bench: Open, server: OllamaServer, tmp_path: Path) -> None:
    workbench = open_bench(ollama_host=server.url)
    folder, aside = workbench.config.home / "index", tmp_path / "aside"
    pipeline = workbench.engine(judged(workbench))

    def damage() -> None:
        shutil.copytree(folder, aside)
        for path in (folder / "passages.lance" / "data").iterdir():
            path.unlink()

    broken = pipeline.run(QUESTION, at("retrieve", damage))
    assert broken_at(broken) == "retrieve" and broken.failure is not None and heard(server) == {}
    assert f"The index in {folder} cannot be used" in broken.failure.summary
    assert "if damaged, move it away and index the documents again" in broken.failure.hint
    workbench.history.save(broken)
    assert workbench.history.load(broken.id) == broken, "the history does not stand on the index"
    shutil.rmtree(folder)
    shutil.copytree(aside, folder)
    done = pipeline.resume(broken)
    assert done.answer is not None and done.answer.text == ANSWER and heard(server) == {"judge": 3, "answer": 1}


def test_once_it_was_read_nothing_more_is_asked_of_it(open_bench: Open) -> None:
    workbench = open_bench()
    pipeline = workbench.engine(quoting(workbench))
    trace = pipeline.run(QUESTION, at("grade", lambda: shutil.rmtree(workbench.config.home / "index")))
    assert whole(trace)


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def test_postgresql_away_at_the_start(open_bench: Open) -> None:
    workbench = open_bench(store=f"postgresql://me:wrong-word@{HOST}:9/crag")
    told = refused(workbench)
    assert f"The index in postgresql://{HOST}:9/crag cannot be reached" in told.message
    assert "wrong-word" not in str(told) and "Check that the server runs" in told.hint


@pytest.mark.exhaustive
@pytest.mark.usefixtures("quick")
def test_postgresql_that_accepts_and_is_silent_costs_one_wait_a_question(open_bench: Open) -> None:
    with Wire() as silent:
        workbench = open_bench(store=f"postgresql://me@{HOST}:{silent.port}/crag?connect_timeout=2")
        assert "cannot be reached" in refused(workbench).message
        first = silent.accepted
        assert "cannot be reached" in refused(workbench).message
        assert first <= 2 and silent.accepted <= 2 * first, "a driver may knock twice; nothing of ours tries again"


@pytest.mark.usefixtures("quick", "pgvector")
def test_postgresql_killed_and_frozen_in_mid_run_and_back(open_bench: Open, server: OllamaServer) -> None:
    with PostgresServer() as postgres:
        workbench = open_bench(store=postgres.url, ollama_host=server.url, cache="off")
        fill(workbench)
        pipeline = workbench.engine(judged(workbench))
        broken = pipeline.run(QUESTION, at("retrieve", postgres.stop))
        assert broken_at(broken) == "retrieve" and broken.failure is not None and heard(server) == {}
        assert "cannot be reached" in broken.failure.summary
        postgres.start()
        done = pipeline.resume(broken)
        assert done.answer is not None and heard(server) == {"judge": 3, "answer": 1}

        with ExitStack() as frozen:
            stuck = pipeline.run(QUESTION, at("retrieve", lambda: frozen.enter_context(postgres.frozen())))
        assert broken_at(stuck) == "retrieve" and stuck.failure is not None
        assert "no reply within 0.5 s" in stuck.failure.summary
        assert broken_at(pipeline.resume(stuck)) == "" and heard(server) == {"judge": 6, "answer": 2}


@pytest.mark.usefixtures("quick", "pgvector")
def test_postgresql_killed_while_documents_go_in_leaves_each_whole_or_absent(open_bench: Open) -> None:
    with PostgresServer() as postgres:
        workbench = open_bench(store=postgres.url)
        fill(workbench)
        original = workbench.store._index_writer.write

        def die(*arguments: object) -> object:
            postgres.stop()
            return original(*arguments)  # type: ignore[arg-type]

        workbench.store._index_writer.write = die  # type: ignore[assignment]
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            workbench.store.ingest([("new.txt", b"Harbour lights are lit at eight.")])
        postgres.start()
        again = open_bench(store=postgres.url)
        assert [document.name for document in again.store.documents()] == sorted(DOCUMENTS)
        assert whole(again.engine(quoting(again)).run(QUESTION))
        (outcome,) = again.store.ingest([("new.txt", b"Harbour lights are lit at eight.")])
        assert outcome.outcome == "indexed" and len(again.store.documents()) == 4


# --- an object store --------------------------------------------------------------------------------------------------


def test_an_object_store_away_at_the_start(open_bench: Open, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{s3.make_bucket()}/index"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{HOST}:9")
    told = refused(open_bench(store=place))
    assert told.message == f"The index at {place} cannot be used (it does not answer)."
    assert "AWS_ENDPOINT_URL" in told.hint and KEYS["AWS_SECRET_ACCESS_KEY"] not in str(told)


@pytest.mark.exhaustive
def test_an_object_store_that_refuses_in_mid_run_and_is_back(
    open_bench: Open, s3: S3Server, server: OllamaServer
) -> None:
    workbench = open_bench(store=f"{s3.make_bucket()}/index", ollama_host=server.url)
    fill(workbench)
    pipeline = workbench.engine(judged(workbench))
    refusing = at("retrieve", lambda: setattr(s3, "refusing", True))
    before = len(s3.requests)
    broken = pipeline.run(QUESTION, refusing)
    assert broken_at(broken) == "retrieve" and broken.failure is not None and heard(server) == {}
    assert "cannot be used" in broken.failure.summary and "what was indexed before is safe" in broken.failure.hint
    assert len(s3.requests) - before <= 20, "each request is repeated a few times, and not for ever"
    s3.refusing = False
    done = pipeline.resume(broken)
    assert done.answer is not None and heard(server) == {"judge": 3, "answer": 1}


@pytest.mark.exhaustive
def test_an_object_store_that_is_silent_is_given_up(open_bench: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first request, which asks whether anybody answers: here after a second instead of ten, and once more."""
    monkeypatch.setattr(objects, "_LOOK_TIMEOUT", "1s")
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with Wire() as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", silent.url)
        told = refused(open_bench(store="s3://some-bucket/index"))
        assert "it does not answer" in told.message
        assert silent.accepted == 2

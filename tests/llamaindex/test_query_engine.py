"""CRAG inside LlamaIndex: the postprocessor in a stock query engine, and the project's own query engine."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index_instrumentation import get_dispatcher

from crag_core.base.errors import CragError, ModelMissing, ModelUnavailable, StoreUnavailable
from crag_core.base.protocols import RetrievalResult
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Engine, Origin, Passage
from crag_core.llamaindex.nodes import to_node, to_passage
from crag_core.llamaindex.postprocessor import CRAGPostprocessor
from crag_core.llamaindex.query_engine import CRAGQueryEngine
from crag_core.pipeline.run import WebMode
from crag_core.trace.summary import Summary
from crag_core.trace.trace import Trace
from tests.fakes import ANSWER, QUESTION, USEFUL, USELESS, Bench, FakeModel, changed


def nodes(count: int = 3) -> list[TextNode]:
    return [
        TextNode(
            id_=f"n{n}",
            text=f"{USEFUL} {USELESS} Number {n}.",
            metadata={"file_name": f"file-{n}.pdf", "page_label": str(n), "author": "Ames"},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc-{n}")},
        )
        for n in range(1, count + 1)
    ]


def scored() -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=0.9 - n / 10) for n, node in enumerate(nodes())]


def away(passage: Passage) -> Grade:
    return Grade(passage.id, None, cause="Ollama went away.", retryable=True, error="ModelUnavailable")


def stock_engine(postprocessor: CRAGPostprocessor) -> RetrieverQueryEngine:
    """What a LlamaIndex user has: an index, its retriever and a query engine, none of it ours."""
    index = VectorStoreIndex(nodes(), embed_model=MockEmbedding(embed_dim=8))
    retriever = index.as_retriever(similarity_top_k=3)
    return RetrieverQueryEngine.from_args(retriever, llm=MockLLM(), node_postprocessors=[postprocessor])


# --- the postprocessor ----------------------------------------------------------------------------------------------


def test_stock_query_engine_answers_from_what_is_kept() -> None:
    traces: list[Trace] = []
    bench = Bench(best=0.9)
    response = stock_engine(bench.postprocessor(traces.append)).query(QUESTION)
    assert isinstance(response, Response)
    text = str(response)  # MockLLM gives its prompt back
    assert USEFUL in text and USELESS not in text and QUESTION in text
    assert len(traces) == 1 and traces[0].question == QUESTION
    assert traces[0].decision is not None and traces[0].decision.action is Action.CORRECT
    assert traces[0].answer is None, "the answer is the stock engine's"
    assert bench.retriever.asked == [] and bench.counts["grade"] == 3


def test_web_passages_reach_the_stock_engine_with_source_and_url() -> None:
    response = stock_engine(Bench(best=0.1).postprocessor()).query(QUESTION)
    assert "harbour office" in str(response) and "in the morning" not in str(response)
    (node,) = response.source_nodes  # two results say the same, it is used once
    assert node.metadata["source"] == "web" and node.metadata["url"] == "https://example.org/1"
    assert "https://example.org/1" in str(response), "the model sees where it comes from"


@pytest.mark.parametrize("best", [0.9, 0.5, 0.1])
@pytest.mark.parametrize("policy", ["paper", "worst-chunk", "rank-weighted", "agentic"])
def test_incoming_nodes_are_never_changed(policy: str, best: float) -> None:
    given = scored()
    before = copy.deepcopy(given)
    kept = Bench(policy, best=best).postprocessor().postprocess_nodes(given, query_str=QUESTION)
    assert [node.model_dump() for node in given] == [node.model_dump() for node in before]
    assert [node.node.hash for node in given] == [node.node.hash for node in before]
    originals = {id(node.node) for node in given}
    assert all(id(node.node) not in originals for node in kept)
    for node in kept:
        node.node.metadata["mine"] = True
    assert all("mine" not in node.metadata for node in given)


def test_kept_nodes_carry_grade_action_and_reason_hidden_from_model_and_embedding() -> None:
    kept = Bench(best=0.9).postprocessor().postprocess_nodes(scored(), query_str=QUESTION)
    node = kept[0]
    assert (node.node.node_id, node.score) == ("n1", 0.9)
    assert node.metadata["crag_action"] == "CORRECT"
    assert "best chunk 0.90" in node.metadata["crag_reason"]
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert "crag" not in node.node.get_content(mode)
    assert "file-1.pdf" in node.node.get_content(MetadataMode.LLM)


def test_a_model_reads_where_a_passage_is_from_and_none_of_our_bookkeeping() -> None:
    found = Passage(
        "w", "Text.", "Harbour", Origin.WEB, page=3, url="https://example.org", ordinal=7, section="Fares",
        found_by=("web",), scores=(("provider", 0.5),),
    )  # fmt: skip
    node = to_node(found).node
    head = node.get_content(MetadataMode.LLM).partition("\n\n")[0].splitlines()
    assert sorted(head) == [
        "file_name: Harbour",
        "page_label: 3",
        "section: Fares",
        "source: web",
        "url: https://example.org",
    ]
    assert node.get_content(MetadataMode.EMBED) == "Text."


def test_page_and_document_of_a_node_survive() -> None:
    kept = Bench("worst-chunk", best=0.9).postprocessor().postprocess_nodes(scored(), query_str=QUESTION)
    assert [(node.metadata["page_label"], node.node.ref_doc_id) for node in kept] == [
        ("1", "doc-1"),
        ("2", "doc-2"),
        ("3", "doc-3"),
    ]


@pytest.mark.parametrize("best", [0.9, 0.5, 0.1])
@pytest.mark.parametrize("policy", ["heuristic", "agentic"])
def test_given_nodes_are_all_there_is_also_where_the_policy_would_retrieve_again(policy: str, best: float) -> None:
    traces: list[Trace] = []
    thresholds = {"lower": 0.0, "upper": 1.0} if policy == "heuristic" else {}
    bench = Bench(changed(policy, **thresholds), best=best, model=FakeModel(), web=WebMode.OFF)
    kept = bench.postprocessor(traces.append).postprocess_nodes(scored(), query_str=QUESTION)
    (trace,) = traces
    assert (bench.retriever.ways, bench.retriever.read, trace.rounds) == ([], [], ())
    assert bench.counts["keywords"] == bench.counts["rephrase"] == 0, "no query was written for nothing"
    assert {node.node.node_id for node in kept} <= {"n1", "n2", "n3"} and kept


# --- nodes and passages ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "original",
    [
        Passage("p1", "Text.", "a.txt"),
        Passage("p2", "Text.", "a.pdf", document_id="d1", page=7, ordinal=3, found_by=("dense", "keyword")),
        Passage("p4", "Text.", "a.md", section="Fares › Late tickets"),
        Passage("p3", "Text.", "a.pdf", scores=(("cosine", 0.5), ("rrf", 0.03))),
        Passage("web-1", "Text.", "A page", Origin.WEB, "", url="https://example.org/?a=1", found_by=("web",)),
    ],
    ids=lambda passage: passage.id,
)
def test_passage_survives_the_way_through_a_node(original: Passage) -> None:
    assert to_passage(to_node(original)) == original


@pytest.mark.parametrize(
    ("metadata", "source", "page"),
    [
        ({"file_name": "a.pdf", "page_label": "12"}, "a.pdf", 12),
        ({"file_path": "/x/a.pdf", "page_label": "iv"}, "/x/a.pdf", None),
        ({"title": "T", "page": 3}, "T", 3),
        ({"source": "notes", "page_number": "0"}, "notes", None),
        ({"url": "https://example.org"}, "https://example.org", None),
        ({}, "unnamed source", None),
    ],
)
def test_foreign_node_gives_what_its_loader_wrote(metadata: dict[str, Any], source: str, page: int | None) -> None:
    passage = to_passage(NodeWithScore(node=TextNode(id_="n", text="Text.", metadata=metadata), score=0.7))
    assert (passage.source, passage.page, passage.origin) == (source, page, Origin.CORPUS)
    assert passage.scores == (("retriever", 0.7),)
    assert to_passage(NodeWithScore(node=TextNode(text="x"), score=None)).scores == ()


# --- the query engine -----------------------------------------------------------------------------------------------


def engine(bench: Bench, streaming: bool) -> CRAGQueryEngine:
    return bench.streaming() if streaming else bench.pipeline


def recorded(response: Any) -> Trace:
    return Trace.from_dict(response.metadata["crag"])


def test_query_answers_with_sources_and_the_whole_record() -> None:
    bench = Bench(best=0.5, model=FakeModel())
    response = bench.pipeline.query(QUESTION)
    assert isinstance(response, Response) and str(response) == ANSWER
    assert [node.metadata.get("source", "corpus") for node in response.source_nodes] == ["corpus", "web"]
    trace = recorded(response)
    assert trace.answer is not None and trace.answer.text == ANSWER
    assert (trace.question, trace.settings) == (QUESTION, bench.pipeline.settings)
    assert Trace.from_dict(trace.to_dict()) == trace


def test_async_query_works_inside_a_running_loop_and_lets_it_go_on() -> None:
    bench = Bench(model=FakeModel())
    engine = bench.pipeline
    graded = threading.Event()
    bench.evaluator.before = lambda: assert_set(graded)

    async def ask() -> Any:
        answering = asyncio.create_task(engine.aquery(QUESTION))
        await asyncio.sleep(0.01)
        assert not answering.done()
        graded.set()  # could not be reached if the run blocked this loop
        return await answering

    assert str(asyncio.run(ask())) == ANSWER


def assert_set(event: threading.Event) -> None:
    assert event.wait(5.0), "the loop stood still"


def test_streaming_gives_pieces_and_completes_its_record_at_the_end() -> None:
    response = Bench(best=0.5, model=FakeModel()).streaming().query(QUESTION)
    assert isinstance(response, StreamingResponse)
    assert len(response.source_nodes) == 2, "what the answer will be written from is known before it"
    before = recorded(response)
    assert before.answer is None and before.decision is not None
    pieces = list(response.response_gen)
    assert len(pieces) == len(ANSWER.split()) - 1, "“It” alone may begin a refusal"
    assert "".join(pieces).strip() == ANSWER
    after = recorded(response)
    assert after.answer is not None and after.answer.state is AnswerState.COMPLETE
    assert after.steps[-1].name == "answer" and after.usage.calls == 2


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("model", [None, FakeModel()])
def test_a_doubtful_ending_is_headed_as_no_answer(model: FakeModel | None, streaming: bool) -> None:
    response = engine(Bench(best=0.5, web=WebMode.OFF, model=model), streaming).query(QUESTION)
    text = "".join(response.response_gen) if isinstance(response, StreamingResponse) else str(response)
    answer, metadata = recorded(response).answer, response.metadata
    assert answer is not None and metadata is not None
    title = "Doubtful: fake-model on the nearest sentences" if model else "Nearest sentences"
    assert metadata["crag_doubtful"].startswith("Not certain enough for an answer: best chunk 0.50")
    assert text.rstrip() == f"{title}\n{metadata['crag_doubtful']}\n\n{answer.text}"


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("error", "retryable"), [(StoreUnavailable, True), (ModelUnavailable, True), (ModelMissing, False)]
)
def test_failure_before_the_answer_raises_with_its_own_type(
    error: type[CragError], retryable: bool, streaming: bool
) -> None:
    bench = Bench()

    def fail(question: str, limit: int, engine: Engine = Engine.HYBRID) -> RetrievalResult:
        raise error("It cannot be read.", hint="Check the folder.")

    bench.retriever.retrieve = fail  # type: ignore[method-assign]
    with pytest.raises(error, match=r"'retrieve' failed: It cannot be read\. Check the folder\.") as raised:
        engine(bench, streaming).query(QUESTION)
    assert type(raised.value) is error and raised.value.retryable is retryable


# --- events ---------------------------------------------------------------------------------------------------------


class Listening(BaseEventHandler):
    heard: list[BaseEvent] = []  # noqa: RUF012  pydantic copies it

    @classmethod
    def class_name(cls) -> str:
        return "Listening"

    def handle(self, event: BaseEvent, **_: Any) -> None:
        self.heard.append(event)


@pytest.fixture
def listening() -> Iterator[Listening]:
    dispatcher = get_dispatcher()
    handler = Listening()
    dispatcher.add_event_handler(handler)
    yield handler
    dispatcher.event_handlers.remove(handler)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_query_events_are_emitted(listening: Listening, streaming: bool, is_async: bool) -> None:
    asked = engine(Bench(model=FakeModel()), streaming)
    response = asyncio.run(asked.aquery(QUESTION)) if is_async else asked.query(QUESTION)
    kinds = [event for event in listening.heard if isinstance(event, QueryStartEvent | QueryEndEvent)]
    assert [type(event) for event in kinds] == [QueryStartEvent, QueryEndEvent]
    assert QUESTION in str(kinds[0].model_dump()["query"])
    assert response.metadata is not None


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("best", [0.9, 0.5, 0.1])
def test_summary_has_every_field_and_agrees_with_the_record(best: float, streaming: bool) -> None:
    bench = Bench(best=best, model=FakeModel())
    response = engine(bench, streaming).query(QUESTION)
    str(response)  # reads a stream to its end
    assert response.metadata is not None
    summary, trace = response.metadata["crag_summary"], recorded(response)
    assert list(summary) == [field.name for field in fields(Summary)]
    assert json.loads(json.dumps(summary)) == summary, "plain data"
    assert trace.decision is not None
    assert (summary["action"], summary["score"]) == (trace.decision.action.value, trace.decision.score)
    assert summary["model_calls"] == trace.usage.calls == len(bench.model.asked)  # type: ignore[union-attr]
    assert summary["web_used"] is (best < 0.9) is ("web_search" in summary["strategy"])
    assert summary["original_count"] == 3 and summary["retrieval_ms"] > 0

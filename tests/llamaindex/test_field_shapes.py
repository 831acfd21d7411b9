"""CRAG where LlamaIndex users have their things: stock indexes, retrievers, chat, agents, routers, evaluators."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.evaluation import FaithfulnessEvaluator
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import CustomLLM, MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import LongContextReorder
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool

from crag_core import CRAGPostprocessor, CRAGQueryEngine, CRAGRetriever, RerankerEvaluator, Trace, reroute
from crag_core.base.errors import BadRecord, StoreUnavailable, UnknownName, WrongUse
from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage
from crag_core.base.types.web import WebOutcome
from crag_core.evaluators.policies import find_policy
from tests.fakes import FakeRetriever, passages, web_passage
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.searxng_server import SearXNGServer

QUESTION = "When does the ferry to Vennick leave?"
FERRY = "The ferry to Vennick leaves at nine in the morning."
QUOTED = f"“{FERRY}” [1]"
DOUBTFUL = (
    "Nearest sentences\nNot certain enough for an answer: best chunk 0.57 between "
    f"lower 0.30 and upper 0.60, and web search is off.\n\n{QUOTED}"
)
"""What the evaluator of these tests makes of the question, without a web."""
OTHERS = ("Bread is kneaded for ten minutes.", "The museum of glass is closed on Mondays.")


class Words:
    """A user's evaluator in ten lines: how much of the question stands in the passage."""

    card = EvaluatorCard("words", "Shared words", "0 to 1", 0.3, 0.6, 0.3, calls_model=False, cost="nothing")

    def __init__(self) -> None:
        self.asked = 0

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        self.asked += len(passages)
        asked = set(question.lower().strip("?").split())
        return tuple(Grade(one.id, len(asked & set(one.text.lower().split())) / len(asked)) for one in passages)


class Harbour:
    """A user's web provider."""

    name = "Harbour office"

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        return WebReply(WebOutcome.USED, self.name, (web_passage(1, "Boats leave at noon, says the harbour."),))


class LastWord(BaseNodePostprocessor):
    """A reranker: nodes with the question's last word first."""

    top_n: int = 1

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        assert query_bundle is not None
        word = query_bundle.query_str.strip("?").split()[-1]
        made = [NodeWithScore(node=one.node, score=0.9 if word in one.node.get_content() else 0.1) for one in nodes]
        return sorted(made, key=lambda one: -(one.score or 0.0))[: self.top_n]


class Fixed(BaseRetriever):
    """A retriever of nobody's."""

    def __init__(self, nodes: Sequence[NodeWithScore]) -> None:
        super().__init__()
        self.nodes = list(nodes)
        self.asked: list[str] = []

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle.query_str)
        return self.nodes


def texts(*found: str) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=f"n{n}", text=text), score=0.8) for n, text in enumerate(found)]


def index(**options: Any) -> VectorStoreIndex:
    documents = [Document(text=text) for text in (FERRY, *OTHERS)]
    return VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(embed_dim=8), **options)


def crag(**options: Any) -> CRAGPostprocessor:
    return CRAGPostprocessor("paper", Words(), **options)


# --- one line -------------------------------------------------------------------------------------------------------


def test_the_defaults_work_offline_in_one_line() -> None:
    kept = CRAGPostprocessor().postprocess_nodes(texts(FERRY, *OTHERS), query_str=QUESTION)
    assert kept[0].node.node_id == "n0" and kept[0].metadata["crag_action"] == "CORRECT"


def test_a_users_evaluator_policy_provider_and_llm_are_in_the_record_by_their_own_names(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text((Path("data/policies") / "paper.toml").read_text("utf-8"), "utf-8")
    for policy in (file, str(file), find_policy("paper").with_thresholds(0.95, 0.99)):
        traces: list[Trace] = []
        made = CRAGPostprocessor(policy, Words(), llm=MockLLM(max_tokens=8), web=Harbour(), on_trace=traces.append)
        kept = made.postprocess_nodes(texts(*OTHERS), query_str=QUESTION)
        settings = traces[0].settings
        assert settings.policy.name in ("mine", "paper") and settings.evaluator == Words.card
        assert (settings.writer, settings.web_mode) == ("MockLLM", "auto")
        assert [one.metadata["source"] for one in kept] == ["web"] and "noon" in kept[0].text
        assert traces[0].web is not None and traces[0].web.provider == "Harbour office"
        again = reroute(traces[0], settings.policy.with_thresholds(0.0, 0.0))
        assert again.decision.action is Action.CORRECT, "decided again without a call"
    assert settings.policy.upper == 0.99, "the thresholds of a Policy are its own"


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"policy": "papre"}, UnknownName, "paper"),
        ({"policy": 3}, WrongUse, "the name of a policy, a TOML file, or a Policy, found int"),
        ({"policy": "no/such.toml"}, BadRecord, "no/such.toml"),
        ({"evaluator": "cross"}, UnknownName, "cross-encoder"),
        ({"evaluator": object()}, WrongUse, "`card`, an EvaluatorCard"),
        ({"web": "duck"}, UnknownName, "duckduckgo"),
        ({"web": object()}, WrongUse, "`name` and `search"),
        ({"web": "searxng"}, WrongUse, "CRAG_SEARXNG_URL"),
        ({"llm": "gpt"}, WrongUse, "a LlamaIndex LLM, found str"),
        ({"node_scores": "dot"}, WrongUse, "dot"),
        ({"top_n": 0}, WrongUse, "1 or more"),
    ],
)
def test_what_cannot_work_is_refused_by_name(options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as refused:
        CRAGPostprocessor(**options)
    assert said in f"{refused.value}"


def test_a_provider_by_name_is_asked_as_its_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    with SearXNGServer(
        [WebResult("Ferries", "https://example.org/f", "The ferry to Vennick leaves at ten.")]
    ) as server:
        monkeypatch.setenv("CRAG_SEARXNG_URL", server.url)
        kept = crag(web="searxng").postprocess_nodes(texts(*OTHERS), query_str=QUESTION)
    assert [one.metadata["url"] for one in kept] == ["https://example.org/f"]
    assert CRAGPostprocessor(web="duckduckgo").pipeline.parts.searcher is not None


# --- a good citizen -------------------------------------------------------------------------------------------------


def test_it_is_copied_pickled_and_written_as_a_dictionary_or_says_why_not() -> None:
    made = CRAGPostprocessor("paper", "heuristic", top_n=2, node_scores="cosine")
    for other in (
        CRAGPostprocessor.from_dict(made.to_dict()), pickle.loads(pickle.dumps(made)), copy.deepcopy(made),
    ):  # fmt: skip
        assert (other.policy, other.evaluator, other.top_n, other.node_scores) == ("paper", "heuristic", 2, "cosine")
        assert other.postprocess_nodes(texts(FERRY), query_str=QUESTION)
    own = crag()
    assert copy.deepcopy(own).postprocess_nodes(texts(FERRY), query_str=QUESTION)
    for attempt in (own.to_dict, lambda: pickle.dumps(own)):
        with pytest.raises(WrongUse, match=r"given objects \(evaluator\) cannot be"):
            attempt()


def test_a_reranker_is_an_evaluator() -> None:
    traces: list[Trace] = []
    kept = CRAGPostprocessor("paper", LastWord(), on_trace=traces.append).postprocess_nodes(
        texts("The ferry will leave at nine.", *OTHERS), query_str=QUESTION
    )
    assert [grade.score for grade in traces[0].grades or ()] == [0.9, 0.1, 0.1], "all are scored, whatever its top_n"
    assert traces[0].settings.evaluator == RerankerEvaluator(LastWord()).card
    assert kept[0].node.node_id == "n0"


# --- engines --------------------------------------------------------------------------------------------------------


def test_our_engine_over_a_stock_retriever_is_one_record() -> None:
    engine = CRAGQueryEngine(index().as_retriever(similarity_top_k=3), crag())
    response = engine.query(QUESTION)
    trace = Trace.from_dict((response.metadata or {})["crag"])
    assert str(response) == DOUBTFUL and trace.answer is not None and trace.answer.state is AnswerState.COMPLETE
    assert (trace.settings.embedding, trace.settings.top_k) == ("VectorIndexRetriever", 3)
    assert engine.retrieve(QueryBundle(QUESTION))[0].text == FERRY
    found = asyncio.run(engine.aretrieve(QueryBundle(QUESTION)))
    assert [one.text for one in found] == [FERRY]


def test_a_stock_synthesizer_answers_from_the_corrected_evidence_and_is_in_the_record() -> None:
    synthesizer = get_response_synthesizer(llm=MockLLM())
    response = CRAGQueryEngine(index().as_retriever(similarity_top_k=3), crag(), synthesizer).query(QUESTION)
    assert FERRY in str(response) and OTHERS[0] not in str(response)
    trace = Trace.from_dict((response.metadata or {})["crag"])
    assert trace.answer is not None and trace.answer.text == str(response)


def test_other_postprocessors_stand_before_and_after() -> None:
    engine = CRAGQueryEngine(
        Fixed(texts(*OTHERS, FERRY)), crag(), before=[LastWord(top_n=3)], after=[LongContextReorder()]
    )
    trace = engine.run(QUESTION)
    assert [one.id for one in trace.passages or ()] != ["n0", "n1", "n2"] or trace.grades
    only = CRAGQueryEngine(Fixed(texts(*OTHERS, FERRY.replace("leaves", "does leave"))), crag(), before=[LastWord()])
    trace = only.run(QUESTION)
    assert [one.id for one in trace.passages or ()] == ["n2"], "the record holds what was graded"


def test_a_retriever_that_fails_is_named() -> None:
    class Broken(Fixed):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            raise KeyError("no such collection")

    with pytest.raises(StoreUnavailable, match="Step 'retrieve' failed: The retriever Broken failed: KeyError"):
        CRAGQueryEngine(Broken([]), crag()).query(QUESTION)


def test_our_retriever_in_a_stock_engine() -> None:
    found = tuple(passages(2))
    retriever = CRAGRetriever(FakeRetriever(lambda query, engine: found), top_k=2)
    assert [one.node.node_id for one in retriever.retrieve(QUESTION)] == ["p1", "p2"]
    engine = CitationQueryEngine.from_args(
        index(), llm=MockLLM(), retriever=retriever, node_postprocessors=[crag()], citation_chunk_size=128
    )
    assert "Source 1" in str(engine.query(QUESTION))


class Scripted(CustomLLM):
    """Says these things, one after the other."""

    replies: list[str]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    def complete(self, prompt: str, formatted: bool = False, **named: Any) -> CompletionResponse:
        return CompletionResponse(text=self.replies.pop(0))

    def stream_complete(self, prompt: str, formatted: bool = False, **named: Any) -> CompletionResponseGen:
        text = self.replies.pop(0)
        yield CompletionResponse(text=text, delta=text)


def test_an_agent_asks_it_as_a_tool() -> None:
    engine = CRAGQueryEngine(index().as_retriever(similarity_top_k=3), crag())
    tool = QueryEngineTool.from_defaults(engine, name="documents", description="What the documents say.")
    asks = f'Thought: I look it up.\nAction: documents\nAction Input: {{"input": "{QUESTION}"}}'
    llm = Scripted(replies=[asks, "Thought: I know.\nAnswer: At nine."])

    async def run() -> Any:
        return await ReActAgent(tools=[tool], llm=llm, streaming=False).run(QUESTION)

    done = asyncio.run(run())
    assert str(done) == "At nine." and [call.tool_output.content for call in done.tool_calls] == [DOUBTFUL]


def test_an_ingestion_pipeline_with_a_docstore_and_a_faithfulness_evaluator() -> None:
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=64, chunk_overlap=0)],
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY,
    )
    nodes = pipeline.run(documents=[Document(text=text, id_=text[:5]) for text in (FERRY, *OTHERS)])
    stock = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    engine = CRAGQueryEngine(stock.as_retriever(similarity_top_k=3), crag())
    response = engine.query(QUESTION)
    assert response.source_nodes[0].node.ref_doc_id == FERRY[:5]

    class SaysYes(MockLLM):
        def complete(self, prompt: str, formatted: bool = False, **named: Any) -> Any:
            return CompletionResponse(text="YES" if FERRY in prompt else "NO")

    judged = FaithfulnessEvaluator(llm=SaysYes()).evaluate_response(QUESTION, response)
    assert judged.passing

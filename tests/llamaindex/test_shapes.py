"""LlamaIndex's own shapes, table by table: what goes in, and what comes out or is refused by name."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import LLMRerank, LongContextReorder
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine, TransformQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import MediaResource, Node, NodeWithScore, QueryBundle, TextNode

from crag_core import CRAGPostprocessor, CRAGQueryEngine, RerankerEvaluator, Trace
from crag_core.base.errors import EvaluatorUnavailable, WrongUse
from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.web import WebOutcome
from crag_core.decision.policy import Doubtful
from crag_core.evaluators.policies import find_policy
from crag_core.evaluators.shipped import strip_evaluator
from crag_core.llamaindex.nodes import to_passage
from tests.fakes import FakeModel, web_passage
from tests.llamaindex.test_field_shapes import FERRY, OTHERS, QUESTION, Fixed, Harbour, Scripted, Words, texts

SENTENCES = (FERRY, *OTHERS)


def run_of(policy: Any, nodes: Sequence[NodeWithScore], **options: Any) -> tuple[list[NodeWithScore], Trace]:
    traces: list[Trace] = []
    options = {"evaluator": Words()} | options
    made = CRAGPostprocessor(policy, on_trace=traces.append, **options)
    return made.postprocess_nodes(list(nodes), query_str=QUESTION), traces[0]


def ids(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [one.node.node_id for one in nodes]


# --- rerankers as evaluators ------------------------------------------------------------------------------------------


class Gives(BaseNodePostprocessor):
    """A reranker that gives these scores, in order; what it has no score for it leaves out."""

    scores: list[float | None]

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [NodeWithScore(node=one.node, score=score) for one, score in zip(nodes, self.scores, strict=False)]


def llm_rerank(reply: str) -> LLMRerank:
    return LLMRerank(Scripted(replies=[reply]))


class Identity:
    """As torch names it: the logits as they are."""


class Sigmoid:
    """As torch names it."""


class SentenceTransformerRerank(Gives):
    """By its name and its model all that is looked at."""

    _model: Any = None


def cross_encoder(layer: object, *scores: float) -> SentenceTransformerRerank:
    made = SentenceTransformerRerank(scores=list(scores))
    made._model = type("CrossEncoder", (), {"activation_fn": layer})
    return made


def logistic(score: float) -> float:
    return round(1 / (1 + math.exp(-score)), 6)


@pytest.mark.parametrize(
    ("reranker", "scale", "grades"),
    [
        (Gives(scores=[0.9, 0.1, 0.0]), None, [0.9, 0.1, 0.0]),
        (Gives(scores=[0.9]), None, [0.9, 0.0, 0.0]),
        (Gives(scores=[5.2, 0.1, -4.0]), "logit", [logistic(5.2), logistic(0.1), logistic(-4)]),
        (Gives(scores=[5e4, 0.0, -5e4]), "logit", [1.0, 0.5, 0.0]),
        (Gives(scores=[9.0, 2.0, 5.0]), (0, 10), [0.9, 0.2, 0.5]),
        (Gives(scores=[1.0, 0.0, -1.0]), (-1, 1), [1.0, 0.5, 0.0]),
        (llm_rerank("Doc: 1, Relevance: 9\nDoc: 2, Relevance: 2"), None, [0.9, 0.2, 0.0]),
        (llm_rerank("Doc: 1, Relevance: 9\nDoc: 2, Relevance: 12"), None, [0.9, None, 0.0]),
        (cross_encoder(Identity(), 5.2, 0.1, -4.0), None, [logistic(5.2), logistic(0.1), logistic(-4)]),
        (cross_encoder(Sigmoid(), 0.9, 0.5, 0.1), None, [0.9, 0.5, 0.1]),
    ],
)
def test_the_scores_of_a_reranker_are_brought_into_0_to_1(
    reranker: Any, scale: Any, grades: list[float | None]
) -> None:
    _, trace = run_of("paper", texts(*SENTENCES), evaluator=RerankerEvaluator(reranker, scale=scale))
    found = [None if one.score is None else round(one.score, 6) for one in trace.grades or ()]
    assert found == grades


@pytest.mark.parametrize(
    ("reranker", "scale", "said"),
    [
        (
            Gives(scores=[5.2, 0.1, -4.0]),
            None,
            "gave the score 5.2, expected scores from 0 to 1. Say what its scores are",
        ),
        (Gives(scores=[0.5, float("nan"), 0.1]), None, "gave the score nan"),
        (Gives(scores=[12.0]), (0, 10), "gave the score 12, expected scores from 0 to 10"),
        (Gives(scores=[float("inf")]), "logit", "gave the score inf, expected logits"),
        (LongContextReorder(), None, "LongContextReorder gives an order and no scores"),
    ],
)
def test_scores_of_an_unknown_scale_are_refused_and_no_verdict(reranker: Any, scale: Any, said: str) -> None:
    with pytest.raises(EvaluatorUnavailable) as refused:
        run_of("paper", texts(*SENTENCES), evaluator=RerankerEvaluator(reranker, scale=scale))
    assert said in str(refused.value)


# --- queries that are searched for with more than their text ----------------------------------------------------------


class Bundles(Fixed):
    """Remembers what each query brought."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.brought = [*getattr(self, "brought", []), (query_bundle.custom_embedding_strs, query_bundle.embedding)]
        return super()._retrieve(query_bundle)


@pytest.mark.parametrize(
    ("query", "brought"),
    [
        (QueryBundle(QUESTION), (None, None)),
        (
            QueryBundle(QUESTION, custom_embedding_strs=["It leaves at nine.", QUESTION]),
            (["It leaves at nine.", QUESTION], None),
        ),
        (QueryBundle(QUESTION, embedding=[0.1, 0.2]), (None, [0.1, 0.2])),
    ],
)
def test_the_question_is_searched_for_as_it_is_asked_and_what_later_rounds_ask_is_not(
    query: QueryBundle, brought: Any
) -> None:
    retriever = Bundles(texts(*OTHERS, "A ferry is a boat.", "Vennick is an island."))
    engine = CRAGQueryEngine(retriever, CRAGPostprocessor("agentic", Words()))
    for ask in (engine.query, engine.retrieve):
        retriever.brought, retriever.asked = [], []
        ask(query)
        assert retriever.asked[0] == QUESTION and len(retriever.asked) == 3, "two more rounds"
        assert retriever.brought == [brought, (None, None), (None, None)]


class Subjects(BaseEmbedding):
    """One direction a subject."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [0.1 + text.lower().count(word) for word in ("ferry", "bread", "museum")]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def test_hyde_retrieves_what_its_document_is_close_to_and_the_record_says_so() -> None:
    index = VectorStoreIndex(
        [TextNode(id_=f"n{n}", text=text) for n, text in enumerate(SENTENCES)], embed_model=Subjects()
    )
    engine = CRAGQueryEngine(index.as_retriever(similarity_top_k=1), CRAGPostprocessor("worst-chunk", Words()))

    class Dreams(MockLLM):
        def predict(self, *arguments: Any, **named: Any) -> str:
            return "Bread, bread and bread."

    dreaming = TransformQueryEngine(engine, HyDEQueryTransform(llm=Dreams(max_tokens=None)))
    found = [Trace.from_dict((one.query(QUESTION).metadata or {})["crag"]) for one in (engine, dreaming)]
    assert [[one.id for one in trace.passages or ()] for trace in found] == [["n0"], ["n1"]]
    assert [trace.question for trace in found] == [QUESTION, QUESTION]
    assert found[1].steps[0].summary == "1 chunk from 1 document, asked with the texts that came with the query"


# --- the postprocessor in an engine of others -------------------------------------------------------------------------

CHUNKS = ["n0", "n1", "n2"]
EMPTY = "Empty Response"
INSUFFICIENT = '{"explanation": "No price.", "verdict": "insufficient"}'


@pytest.mark.parametrize(
    ("of", "options", "nodes", "handed_on"),
    [
        ("sufficient-context", {"llm": FakeModel()}, SENTENCES, CHUNKS),
        ("sufficient-context", {"llm": FakeModel(sufficient=INSUFFICIENT)}, SENTENCES, []),
        ("paper, abstaining", {}, SENTENCES, []),
        ("paper, abstaining", {"web": Harbour()}, SENTENCES, ["n0", "web-1"]),
        ("self-route", {"llm": FakeModel(answer="At nine [1].")}, SENTENCES, CHUNKS),
        ("self-route", {"llm": FakeModel(answer="CANNOT ANSWER")}, SENTENCES, []),
        ("astute-rag", {}, SENTENCES, CHUNKS),
        ("agentic", {"web": Harbour(), "llm": FakeModel()}, (*OTHERS, "It snows."), ["web-1"]),
        ("agentic", {"llm": FakeModel()}, (*OTHERS, "It snows."), CHUNKS),  # "even if low-scored"
        ("agentic", {"web": Harbour()}, SENTENCES, ["n0"]),
        ("adaptive-rag", {"llm": FakeModel(classify='{"verdict": "A"}')}, SENTENCES, CHUNKS),
        ("heuristic", {}, SENTENCES, CHUNKS),
    ],
)
def test_each_policy_in_a_stock_engine_hands_on_what_it_lets_answer(
    of: str, options: dict[str, Any], nodes: Sequence[str], handed_on: list[str]
) -> None:
    name, _, abstains = of.partition(", ")
    chosen = find_policy(name).with_thresholds_for(Words.card, strip_evaluator().card)
    made = CRAGPostprocessor(chosen.with_doubtful(Doubtful.ABSTAIN) if abstains else chosen, Words(), **options)
    stock = RetrieverQueryEngine.from_args(Fixed(texts(*nodes)), llm=MockLLM(), node_postprocessors=[made])
    response = stock.query(QUESTION)
    assert ids(response.source_nodes) == handed_on
    assert (str(response) == EMPTY) is (handed_on == [])


class NeverAsked(MockLLM):
    def predict(self, *arguments: Any, **named: Any) -> str:
        raise AssertionError("there is nothing to write an answer from")


@pytest.mark.parametrize(
    ("of", "model", "nodes", "said"),
    [
        ("sufficient-context", FakeModel(sufficient=INSUFFICIENT), SENTENCES, "Not certain enough for an answer"),
        ("self-route", FakeModel(answer="CANNOT ANSWER"), SENTENCES, "fake-model found no answer in the 3 excerpts"),
        ("adaptive-rag", FakeModel(classify='{"verdict": "A"}'), SENTENCES, "No document was read"),
        ("paper", None, OTHERS, "This cannot be answered from the evidence"),
    ],
)
def test_a_stock_synthesizer_in_our_engine_is_not_taken_for_an_answer_where_nothing_was_handed_on(
    of: str, model: FakeModel | None, nodes: Sequence[str], said: str
) -> None:
    corrects = CRAGPostprocessor(of, Words(), llm=model)
    response = CRAGQueryEngine(
        Fixed(texts(*nodes)), corrects, get_response_synthesizer(llm=NeverAsked(max_tokens=None))
    ).query(QUESTION)
    trace = Trace.from_dict((response.metadata or {})["crag"])
    assert said in str(response) and trace.answer is not None and trace.answer.writer != "CompactAndRefine"
    assert (trace.answer.state is AnswerState.COMPLETE) is (of == "adaptive-rag")


def test_an_answer_that_no_other_synthesizer_can_write_is_refused_before_any_call() -> None:
    corrects = CRAGPostprocessor("astute-rag", Words(), llm=(model := FakeModel()))
    with pytest.raises(WrongUse, match=r"Its synthesizer would not see that\. Use CRAGQueryEngine"):
        corrects.postprocess_nodes(texts(*SENTENCES), query_str=QUESTION)
    with pytest.raises(WrongUse, match="CompactAndRefine would not see that"):
        CRAGQueryEngine(Fixed([]), corrects, get_response_synthesizer(llm=MockLLM()))
    assert model.asked == [] and str(CRAGQueryEngine(Fixed(texts(*SENTENCES)), corrects).query(QUESTION))


# --- nodes ------------------------------------------------------------------------------------------------------------

PICTURE = MediaResource(url="https://example.org/a.png")  # type: ignore[arg-type]  # as text
WITHOUT_TEXT = {"image_resource": PICTURE, "audio_resource": PICTURE, "video_resource": PICTURE, "text_resource": None}


def empty_of_text(resource: str) -> NodeWithScore:
    return NodeWithScore(node=Node(id_="image", **{resource: WITHOUT_TEXT[resource]}), score=0.9)


@pytest.mark.parametrize("of", ["paper", "worst-chunk", "rank-weighted"])
@pytest.mark.parametrize("resource", ["image_resource", "audio_resource", "video_resource"])
def test_a_picture_a_sound_or_a_film_without_text_passes_by_and_does_not_decide(of: str, resource: str) -> None:
    (_, alone), (kept, trace) = (run_of(of, [*more, *texts(FERRY)]) for more in ([], [empty_of_text(resource)]))
    assert ids(kept) == ["n0", "image"] and kept[-1].score == 0.9
    assert trace.decision == alone.decision and trace.passages == alone.passages
    described = Node(id_="n0", text_resource=MediaResource(text=FERRY), **{resource: PICTURE})  # type: ignore[arg-type]
    assert run_of(of, [NodeWithScore(node=described)])[1].decision == alone.decision, "what has text is judged by it"


@pytest.mark.parametrize(
    ("declared", "scores", "found_by", "rule"),
    [
        ("cosine", (0.8, 0.9, 0.8), None, "high_vector_score"),
        ("cosine", (0.8, 0.79, 0.8), None, None),
        ("cosine", (0.8, 0.9, 0.8), ["bm25"], None),  # it says itself what found it
        ("retriever", (0.8, 0.9, 0.8), None, None),
    ],
)
def test_what_a_retriever_gives_cosines_of_is_of_vector_search_as_the_rule_wants_it(
    declared: str, scores: tuple[float, ...], found_by: list[str] | None, rule: str | None
) -> None:
    nodes = texts(*SENTENCES)
    for node, node.score in zip(nodes, scores, strict=True):
        node.node.metadata |= {"found_by": found_by} if found_by else {}
    kept, trace = run_of("agentic", nodes, node_scores=declared)
    assert trace.decision is not None and trace.decision.rule == rule
    assert not rule or [one.score for one in kept] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"found_by": 3}, {"found_by": ()}),
        ({"found_by": "dense"}, {"found_by": ()}),
        ({"found_by": ["dense", 3, None]}, {"found_by": ("dense",)}),
        ({"crag_scores": None}, {"scores": (("retriever", 0.8),)}),
        ({"crag_scores": [1, 2]}, {"scores": (("retriever", 0.8),)}),
        (
            {"crag_scores": {"cosine": "high", "rrf": True, "bm25": float("nan"), "k": 10**400}},
            {"scores": (("retriever", 0.8),)},
        ),
        ({"crag_scores": {"cosine": 0.5, "rrf": None}}, {"scores": (("cosine", 0.5),)}),
        ({"ordinal": "7"}, {"ordinal": 0}),
        ({"ordinal": True}, {"ordinal": 0}),
        ({"ordinal": -1}, {"ordinal": 0}),
        ({"page_label": "9" * 5000}, {"page": None}),
        ({"page": 3.5}, {"page": None}),
        ({"section": ["a"]}, {"section": "['a']"}),
        ({"url": 7, "file_name": 8}, {"url": "7", "source": "8"}),
    ],
)
def test_metadata_of_others_are_taken_where_they_have_our_shape_and_never_break_a_run(
    metadata: dict[str, Any], found: dict[str, Any]
) -> None:
    node = NodeWithScore(node=TextNode(id_="n0", text=FERRY, metadata=metadata), score=0.8)
    passage = to_passage(node)
    assert {name: getattr(passage, name) for name in found} == found
    assert ids(run_of("worst-chunk", [node])[0]) == ["n0"]


# --- signals of given nodes -------------------------------------------------------------------------------------------


def embedded(*vectors: list[float] | None) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(id_=f"n{n}", text=f"{FERRY} {n}", embedding=vector))
        for n, vector in enumerate(vectors)
    ]


@pytest.mark.parametrize(
    ("nodes", "agreement"),
    [
        (embedded([1.0, 0.0], [1.0, 0.0]), 1.0),
        (embedded([1.0, 0.0], [0.0, 1.0], [1.0, 0.0]), pytest.approx(1 / 3)),
        (embedded([1.0, 0.0], [-1.0, 0.0]), 0.0),
        (embedded([1.0, 0.0], None), None),
        (embedded([1.0, 0.0], [1.0, 0.0, 0.0]), None),
        (embedded([1.0, 0.0], [math.nan, 0.0]), None),
        (embedded(None, None), None),
        (embedded([1.0, 0.0]), None),
    ],
)
def test_agreement_of_given_nodes_is_measured_where_all_have_vectors(
    nodes: list[NodeWithScore], agreement: Any
) -> None:
    assert dict(run_of("signals", nodes)[1].signals).get("agreement") == agreement
    engine = CRAGQueryEngine(Fixed(nodes), CRAGPostprocessor("signals", Words()))
    assert dict(engine.run(QUESTION).signals).get("agreement") == agreement


# --- copies -----------------------------------------------------------------------------------------------------------


def hear(trace: Trace) -> None:
    HEARD.append(trace.question)


HEARD: list[str] = []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"on_trace": hear}, "on_trace"),
        ({"observers": (object(),)}, "observers"),
        ({"evaluator": Words()}, "evaluator"),
        ({"web": Harbour(), "llm": MockLLM()}, "web, llm"),
        ({"settings": {"support": "none"}}, "settings"),
    ],
)
def test_what_would_be_lost_by_pickling_is_named(options: dict[str, Any], named: str) -> None:
    made = CRAGPostprocessor("paper", **options)
    for write in (lambda: pickle.dumps(made), made.to_dict):
        with pytest.raises(WrongUse, match=rf"given objects \({named}\) cannot be"):
            write()


@pytest.mark.parametrize("field", ["policy", "evaluator", "web", "node_scores"])
def test_what_is_settled_when_it_is_made_cannot_be_assigned(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field}\n  Field is frozen"):
        setattr(CRAGPostprocessor("paper", Words()), field, "heuristic")


def test_an_engine_is_copied_with_its_parts_shared_and_says_that_it_cannot_be_pickled() -> None:
    engine = CRAGQueryEngine(Fixed(texts(FERRY)), CRAGPostprocessor("paper", Words(), on_trace=hear))
    HEARD.clear()
    for other in (copy.copy(engine), copy.deepcopy(engine)):
        assert str(other.query(QUESTION)) == str(engine.query(QUESTION)) and other.parts is engine.parts
    assert len(HEARD) == 4
    with pytest.raises(WrongUse, match=r"cannot be pickled: .* Pickle the CRAGPostprocessor"):
        pickle.dumps(engine)


# --- a web of one's own -----------------------------------------------------------------------------------------------


class Office(Harbour):
    """A provider that answers by this function."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        reply: WebReply = self.answer()
        return reply


def burst() -> WebReply:
    raise KeyError("boats")


TWICE = WebReply(WebOutcome.USED, "Harbour office", (web_passage(1, "It leaves at noon."), web_passage(1, "Again.")))


@pytest.mark.parametrize(
    ("answer", "outcome", "message", "handed_on"),
    [
        (burst, WebOutcome.FAILED, "Harbour office failed: KeyError: 'boats'", []),
        (lambda: None, WebOutcome.FAILED, "Harbour office failed: TypeError: expected a WebReply, found NoneType", []),
        (lambda: TWICE, WebOutcome.USED, "", ["web-1"]),
    ],
)
def test_a_provider_that_breaks_ends_the_search_and_not_the_query(
    answer: Callable[[], Any], outcome: WebOutcome, message: str, handed_on: list[str]
) -> None:
    kept, trace = run_of("worst-chunk", texts(*OTHERS), web=Office(answer))
    assert trace.web is not None and (trace.web.outcome, trace.web.message) == (outcome, message)
    assert ids(kept) == handed_on and trace.failure is None

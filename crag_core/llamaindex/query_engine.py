"""The query engine that the application runs, composed of LlamaIndex parts: retriever, postprocessors, synthesizer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle

from crag_core.base.errors import WrongUse
from crag_core.base.types.passages import Logged, Passage
from crag_core.base.types.questions import FollowUp
from crag_core.decision.policy import Policy
from crag_core.evaluators.policies import plain_rag
from crag_core.llamaindex.nodes import is_text, to_node
from crag_core.llamaindex.own_retriever import kind_of
from crag_core.llamaindex.postprocessor import CRAGPostprocessor
from crag_core.llamaindex.retriever import CRAGRetriever, NodeRetriever, RecordedRetriever
from crag_core.llamaindex.run_query import RunQuery
from crag_core.llamaindex.synthesizer import CRAGSynthesizer, as_async, metadata_of, shown
from crag_core.pipeline.pipeline import OpenRun, Pipeline, raise_failure
from crag_core.pipeline.run import Parts, Run, WebMode
from crag_core.trace.standalone import follow
from crag_core.trace.trace import RunSettings, Trace


class CRAGQueryEngine(RetrieverQueryEngine):
    """Retriever, `CRAGPostprocessor` and answer, recorded as one run.

    `postprocessor` None: one with its defaults, which work offline. Other postprocessors stand `before` it, or `after`
    it, between correction and answer. Rounds of retrieval use the retriever that is given here, whichever it is.

    A `Response` has the kept passages as `source_nodes` and the record of the run, as plain data, in
    `metadata["crag"]` (`Trace.from_dict` rebuilds it) and in short in `metadata["crag_summary"]` (see `Summary`).
    A doubtful ending has a heading above its text, and the reason in `metadata["crag_doubtful"]`, else "". With
    `streaming=True` a `StreamingResponse` comes back at once; its `metadata["crag"]` holds the answer too when the
    stream has ended. `query` raises `CragError` when a step fails; `run`, `resume`, `correct` and `grade`, which take
    and give records, tell a failure by the record's last step.

    `engine.without_correction().query(...)` asks one question as plain RAG; `metadata["crag_summary"]` has no action
    then.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        postprocessor: CRAGPostprocessor | None = None,
        response_synthesizer: BaseSynthesizer | None = None,
        *,
        before: Sequence[BaseNodePostprocessor] = (),
        after: Sequence[BaseNodePostprocessor] = (),
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self._corrects = postprocessor or CRAGPostprocessor()
        writes = response_synthesizer or CRAGSynthesizer(streaming, callback_manager)
        if not isinstance(writes, CRAGSynthesizer):
            self._corrects.refuse_other_writers(type(writes).__name__)
        super().__init__(retriever, writes, [*before, self._corrects, *after], callback_manager)
        self._pipeline = self._pipeline_over(retriever)

    @classmethod
    def from_args(  # type: ignore[override]  # what else LlamaIndex takes there is for its own synthesizers
        cls,
        retriever: BaseRetriever,
        llm: LLM | None = None,
        response_synthesizer: BaseSynthesizer | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
        streaming: bool = False,
    ) -> Self:
        """As of a `RetrieverQueryEngine`; a `CRAGPostprocessor` with `llm` stands last where the list has none."""
        before, after = list(node_postprocessors or ()), []
        corrects = next((one for one in before if isinstance(one, CRAGPostprocessor)), None)
        if corrects:
            place = before.index(corrects)
            before, after = before[:place], before[place + 1 :]
        return cls(
            retriever, corrects or CRAGPostprocessor(llm=llm), response_synthesizer, before=before, after=after,
            streaming=streaming, callback_manager=callback_manager,
        )  # fmt: skip

    def with_retriever(self, retriever: BaseRetriever) -> Self:
        other = self._with(self._pipeline_over(retriever))
        other._retriever = retriever
        return other

    def _pipeline_over(self, retriever: BaseRetriever) -> Pipeline:
        stages = self._corrects.pipeline
        settings = stages.settings
        if not settings.embedding:
            settings = replace(settings, **_said_by(retriever))
        made = stages.with_parts(retriever=NodeRetriever(retriever, self._corrects.node_scores))
        return replace(made, settings=settings)

    # As LlamaIndex asks

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        if isinstance(query_bundle, RunQuery):
            response = super()._query(query_bundle)
            if not isinstance(self._response_synthesizer, CRAGSynthesizer):
                _note_answer(query_bundle.open_run, response, type(self._response_synthesizer).__name__)
            return response
        with self._open(self.begin(query_bundle.query_str), asked=query_bundle) as query:
            response = self._query(query)
        raise_failure(query.open_run.trace)
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        # A run waits in its own thread, so the caller's event loop goes on.
        return as_async(await asyncio.to_thread(self._query, query_bundle))

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if isinstance(query_bundle, RunQuery):
            open_run = query_bundle.open_run
            open_run.retrieve()
            if not isinstance(self._retriever, CRAGRetriever):
                open_run.raise_token_budget()
            given = {one.node.node_id: one for one in reversed(query_bundle.given)}
            nodes = [given.get(one.id) or to_node(one) for one in open_run.trace.passages or ()]
            nodes += [one for one in given.values() if not is_text(one)]
            return self._apply_node_postprocessors(nodes if open_run.can_continue else [], query_bundle)
        with self._open(self.begin(query_bundle.query_str), asked=query_bundle) as query:
            nodes = self.retrieve(query)
        raise_failure(query.open_run.trace)
        return nodes

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self.retrieve, query_bundle)

    # As an application asks: with a record to go on from, a listener, and a flag that stops

    @property
    def settings(self) -> RunSettings:
        return self._pipeline.settings

    @property
    def policy(self) -> Policy:
        """As `settings` have it; another one is another engine's."""
        return self.settings.policy

    @property
    def parts(self) -> Parts:
        return self._pipeline.parts

    def begin(
        self, question: str, passages: tuple[Passage, ...] | None = None, follow_up: FollowUp | None = None
    ) -> Trace:
        """As `Pipeline.begin`."""
        return self._pipeline.begin(question, passages, follow_up)

    def run(self, question: str, run: Run | None = None, *, after: Trace | None = None) -> Trace:
        """The whole way from question to answer; a failure is in the trace's last step.

        `after`: the run that this question follows in a conversation; it is understood from that one and those before
        it, or asked back (`Trace.asks_back`). Raises a `CragError` only for a question that is too long, of which there
        is no trace.
        """
        return self.resume(self.begin(question, follow_up=follow(question, after) if after else None), run)

    def resume(self, trace: Trace, run: Run | None = None) -> Trace:
        """Do what is still missing, up to the answer."""
        with self._open(trace, run) as query:
            self.query(query)
        return query.open_run.trace

    def correct(self, trace: Trace, run: Run | None = None) -> Trace:
        """Do what is still missing, up to the assembled context; no answer is written."""
        with self._open(trace, run) as query:
            self.retrieve(query)
        return query.open_run.trace

    def grade(self, question: str, run: Run | None = None) -> Trace:
        """The first retrieval and the grades of all its passages, whatever the policy makes of them."""
        with self._open(self._pipeline.begin_grading(question), run, only_grades=True) as query:
            self.retrieve(query)
        return query.open_run.trace

    def score_strips(self, trace: Trace, passages: tuple[Passage, ...], run: Run | None = None) -> Trace:
        """As `Pipeline.score_strips`."""
        return self._pipeline.score_strips(trace, passages, run)

    def second_opinion(self, trace: Trace, run: Run | None = None) -> Trace:
        """As `Pipeline.second_opinion`."""
        return self._pipeline.second_opinion(trace, run)

    def adopt(self, trace: Trace, as_new: bool = False) -> Trace:
        """As `Pipeline.adopt`."""
        return self._pipeline.adopt(trace, as_new)

    def hiding(self, text: str) -> Self:
        """The same for questions that are asked as if no passage with this text were indexed; "": all are."""
        return self._with(self._pipeline.hiding(text))

    def over(self, passages: tuple[Passage, ...], logged: Logged | None = None) -> Self:
        """The same for a question that these chunks were retrieved for elsewhere: they take the place of the index.

        Nothing else is retrieved, in no round. `logged` is what the log of that system says besides, for the record.
        """
        return self._with(self._pipeline.over(RecordedRetriever(passages), passages, logged or Logged()))

    def without_correction(self) -> Self:
        """The same as plain RAG (`use_crag=False`): what is retrieved goes to the answer as it is, ungraded."""
        plain = replace(self.settings, policy=plain_rag(), web_mode=WebMode.OFF.value)
        return self._with(replace(self._pipeline, settings=plain))

    def with_parts(self, **changes: Any) -> Self:
        return self._with(self._pipeline.with_parts(**changes))

    def _with(self, pipeline: Pipeline) -> Self:
        other = copy(self)
        other._pipeline = pipeline
        return other

    @contextmanager
    def _open(
        self, trace: Trace, run: Run | None = None, *, asked: QueryBundle | None = None, only_grades: bool = False
    ) -> Iterator[RunQuery]:
        """One attempt at a run, as the query that goes from component to component."""
        retriever, pipeline = self.parts.retriever, self._pipeline
        given: list[NodeWithScore] = []
        if isinstance(retriever, NodeRetriever):
            of_run = retriever.asking(asked)
            pipeline, given = pipeline.with_parts(retriever=of_run), of_run.given
        with pipeline.open(trace, run) as open_run:
            yield RunQuery(open_run, asked, given, only_grades=only_grades)

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The parts are shared: they hold no state of a run."""
        other = copy(self)
        other._node_postprocessors = list(self._node_postprocessors)
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        raise WrongUse(
            "A CRAGQueryEngine cannot be pickled: its retriever and its parts are open files and models.",
            hint="Pickle the CRAGPostprocessor, and make CRAGQueryEngine(retriever, postprocessor) of it again.",
        )


def _note_answer(open_run: OpenRun, response: RESPONSE_TYPE, writer: str) -> None:
    """What a synthesizer of others wrote goes into the record, and the record into its response.

    Where nothing was handed on, it had nothing to write from: what the record says stands.
    """
    if isinstance(response, Response) and not response.source_nodes:
        open_run.write()
        response.response = shown(open_run.trace)
    elif isinstance(response, Response) and response.response:
        open_run.answered(response.response, writer)
    response.metadata = {**(response.metadata or {}), **metadata_of(open_run.trace)}


def _said_by(retriever: BaseRetriever) -> dict[str, Any]:
    """What the record says of a retriever: of one that is not ours its class, and how many nodes it was made for."""
    if isinstance(retriever, CRAGRetriever):
        return {
            "embedding": retriever.embedding or "unknown",
            "top_k": retriever.top_k,
            "collection": retriever.collection,
        }
    top_k = getattr(retriever, "similarity_top_k", None) or getattr(retriever, "_similarity_top_k", None)
    return {"embedding": kind_of(retriever), "top_k": top_k if isinstance(top_k, int) else 20}

"""The answer of a run as a LlamaIndex response synthesizer: quotations, or written by the run's language model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any

from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index.core.types import RESPONSE_TEXT_TYPE
from llama_index_instrumentation import get_dispatcher

from crag_core.base.serialization import to_plain
from crag_core.llamaindex.run_query import RunQuery
from crag_core.pipeline.pipeline import OpenRun, raise_failure
from crag_core.trace.reroute import caution, reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace

dispatcher = get_dispatcher(__name__)


class CRAGSynthesizer(BaseSynthesizer):
    """Writes the answer of the run that `RunQuery` carries; the record of the run goes into the response's metadata.

    Without a run there is no record to quote from: `CRAGQueryEngine` makes one for every query.
    """

    def __init__(self, streaming: bool = False, callback_manager: CallbackManager | None = None) -> None:
        super().__init__(llm=MockLLM(), callback_manager=callback_manager or CallbackManager([]), streaming=streaming)

    def synthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        if not isinstance(query, RunQuery):
            raise NotImplementedError("CRAGSynthesizer answers inside a CRAGQueryEngine, which keeps the run's record.")
        dispatcher.event(SynthesizeStartEvent(query=QueryBundle(query.query_str)))
        asked: dict[str, Any] = {EventPayload.QUERY_STR: query.query_str}
        with self._callback_manager.event(CBEventType.SYNTHESIZE, payload=asked) as event:
            response = self._response(query.open_run, [*nodes, *(additional_source_nodes or ())])
            event.on_end(payload={EventPayload.RESPONSE: response})
        dispatcher.event(SynthesizeEndEvent(query=QueryBundle(query.query_str), response=response))
        return response

    async def asynthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        response = await asyncio.to_thread(self.synthesize, query, nodes, additional_source_nodes)
        return as_async(response)

    def get_response(self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any) -> RESPONSE_TEXT_TYPE:
        raise NotImplementedError("CRAGSynthesizer answers from the record of a run, not from texts.")

    async def aget_response(
        self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any
    ) -> RESPONSE_TEXT_TYPE:
        return self.get_response(query_str, text_chunks)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        pass

    def _response(self, open_run: OpenRun, nodes: list[NodeWithScore]) -> RESPONSE_TYPE:
        if self._streaming and open_run.can_continue:
            metadata = metadata_of(open_run.trace)
            return StreamingResponse(_pieces(open_run, metadata), source_nodes=nodes, metadata=metadata)
        open_run.write()
        trace = open_run.trace
        return Response(shown(trace), source_nodes=nodes, metadata=metadata_of(trace))


def _pieces(open_run: OpenRun, metadata: dict[str, Any]) -> Generator[str, None, None]:
    """The attempt that corrected the evidence is over when these are taken, and the answer is one of its own."""
    written, above = False, heading(open_run.trace)
    for piece in open_run.pipeline.stream_answer(open_run.trace):
        if isinstance(piece, str):
            yield piece if written else above + piece
            written = True
            continue
        metadata |= metadata_of(piece)
        raise_failure(piece)
        if not written:
            yield shown(piece)


def as_async(response: RESPONSE_TYPE) -> RESPONSE_TYPE:
    """A stream for whoever awaits its pieces; each is waited for in a thread."""
    if not isinstance(response, StreamingResponse):
        return response
    pieces = iter(response.response_gen)

    async def awaited() -> AsyncGenerator[str, None]:
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece

    return AsyncStreamingResponse(awaited(), source_nodes=response.source_nodes, metadata=response.metadata)


def metadata_of(trace: Trace) -> dict[str, Any]:
    """The record of the run as plain data, and in short; `crag_doubtful` says why nothing of it is called an answer.

    `crag_consolidation` is what the answer was written from where evidence and the model's own knowledge were put
    together, else None.
    """
    routed = reroute(trace, trace.settings.policy)
    doubtful = caution(trace, routed)[1] if routed.is_doubtful else ""
    return {
        "crag": trace.to_dict(),
        "crag_summary": to_plain(summarize(trace)),
        "crag_doubtful": doubtful,
        "crag_consolidation": to_plain(routed.knowledge.consolidation),
    }


def shown(trace: Trace) -> str:
    """The text of the answer, or why there is none; of a question that was not understood, what is asked back."""
    answer = trace.answer
    if answer is None:
        return trace.asks_back
    return heading(trace) + answer.shown if answer.shown == answer.text else answer.message


def heading(trace: Trace) -> str:
    """What stands above a text that is no answer of the evidence; "" above one that is."""
    said = "\n".join(filter(None, caution(trace, reroute(trace, trace.settings.policy))))
    return f"{said}\n\n" if said else ""

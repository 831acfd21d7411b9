"""CRAG as a LlamaIndex query engine over the project's index: sync, async and streaming."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response, StreamingResponse
from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle

from crag_core.base.serialization import to_plain
from crag_core.base.types import Answer
from crag_core.llamaindex.nodes import kept_nodes
from crag_core.pipeline.pipeline import Pipeline, raise_failure
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace


class CRAGQueryEngine(BaseQueryEngine):
    """Answers through the whole pipeline.

    A `Response` has the kept passages as `source_nodes` and the record of the run, as plain data, in
    `metadata["crag"]` (`Trace.from_dict` rebuilds it) and in short in
    `metadata["crag_summary"]` (see `Summary`). With `streaming=True` a `StreamingResponse` comes back at once;
    its `metadata["crag"]` holds the answer too when the stream has ended. Raises `CragError` when a step fails.
    """

    def __init__(
        self, pipeline: Pipeline, streaming: bool = False, callback_manager: CallbackManager | None = None
    ) -> None:
        super().__init__(callback_manager)
        self._pipeline = pipeline
        self._streaming = streaming

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        if self._streaming:
            return self._stream(query_bundle.query_str)
        trace = self._pipeline.run(query_bundle.query_str)
        raise_failure(trace)
        return Response(_shown(trace.answer), source_nodes=kept_nodes(trace), metadata=_metadata(trace))

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        # The pipeline waits in its own thread, so the caller's event loop goes on.
        return await asyncio.to_thread(self._query, query_bundle)

    def _stream(self, question: str) -> StreamingResponse:
        trace = self._pipeline.correct(self._pipeline.begin(question))
        raise_failure(trace)
        metadata = _metadata(trace)
        nodes: list[NodeWithScore] = kept_nodes(trace)
        return StreamingResponse(self._pieces(trace, metadata), source_nodes=nodes, metadata=metadata)

    def _pieces(self, trace: Trace, metadata: dict[str, Any]) -> Generator[str, None, None]:
        written = False
        for piece in self._pipeline.stream_answer(trace):
            if isinstance(piece, str):
                written = True
                yield piece
                continue
            metadata |= _metadata(piece)
            raise_failure(piece)
            if not written:
                yield _shown(piece.answer)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


def _metadata(trace: Trace) -> dict[str, Any]:
    return {"crag": trace.to_dict(), "crag_summary": to_plain(summarize(trace))}


def _shown(answer: Answer | None) -> str:
    """The text of the answer, or why there is none."""
    return (answer.text or answer.message) if answer else ""

"""CRAG as a LlamaIndex node postprocessor, for any query engine."""

from __future__ import annotations

from collections.abc import Callable

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from crag_core.llamaindex.nodes import kept_nodes, to_passage
from crag_core.pipeline.pipeline import Pipeline, raise_failure
from crag_core.trace.trace import Trace


class CRAGPostprocessor(BaseNodePostprocessor):
    """Grades the retrieved nodes, routes the question, and hands on what the policy keeps.

    Incoming nodes are never changed: refined passages and web results leave as new nodes (web results with
    `source="web"` and `url` in their metadata). Each carries `crag_action` and `crag_reason`, hidden from model and
    embedding. `on_trace` receives the whole record of each run, from the thread that made it. Raises `CragError` when a
    step fails, so that a broken grader is never mistaken for "nothing relevant".
    """

    on_trace: Callable[[Trace], None] | None = Field(default=None, exclude=True)
    _pipeline: Pipeline = PrivateAttr()

    def __init__(self, pipeline: Pipeline, on_trace: Callable[[Trace], None] | None = None) -> None:
        super().__init__(on_trace=on_trace)  # type: ignore[call-arg]
        self._pipeline = pipeline

    @classmethod
    def class_name(cls) -> str:
        return "CRAGPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise ValueError("CRAGPostprocessor needs the query: pass query_bundle or query_str.")
        passages = tuple(to_passage(node) for node in nodes)
        trace = self._pipeline.correct(self._pipeline.begin(query_bundle.query_str, passages))
        if self.on_trace:
            self.on_trace(trace)
        raise_failure(trace)
        return kept_nodes(trace)

"""LlamaIndex's model calls as OpenTelemetry spans below the steps of a run.

Names of classes and methods, the model's name and the type of an error go into them. Arguments and results are never
looked at: they hold prompts, documents and replies.
"""

from __future__ import annotations

import os
from typing import Any

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span.base import BaseSpan
from llama_index_instrumentation.span_handlers.base import BaseSpanHandler
from opentelemetry.trace import Span, Tracer, set_span_in_context
from pydantic import PrivateAttr

from crag_core.observability.spans import PLACE, fail


class LlamaSpans(BaseSpanHandler[BaseSpan]):
    """Only what is called in a run: documents on their way into the index would be thousands of spans."""

    _tracer: Tracer = PrivateAttr()
    _open: dict[str, Span] = PrivateAttr(default_factory=dict)

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer
        self._open = {}

    def span_enter(
        self, id_: str, bound_args: Any, instance: Any = None, parent_id: str | None = None, tags: Any = None, **_: Any
    ) -> None:
        place = PLACE.get()
        if place is None:
            return
        parent = self._open.get(parent_id or "", place.innermost)
        span = self._tracer.start_span(id_.partition("-")[0], context=set_span_in_context(parent))
        model = getattr(instance, "model", None) or getattr(instance, "model_name", None)
        if isinstance(model, str) and not os.path.isabs(model):  # a path says something of the machine
            span.set_attribute("gen_ai.request.model", model)
        self._open[id_] = span

    def span_exit(self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **_: Any) -> None:
        if span := self._open.pop(id_, None):
            span.end()

    def span_drop(
        self, id_: str, bound_args: Any, instance: Any = None, err: BaseException | None = None, **_: Any
    ) -> None:
        if span := self._open.pop(id_, None):
            fail(span, type(err).__name__)
            span.end()

    def new_span(self, *arguments: Any, **named: Any) -> None:
        """The three methods above do it all."""

    prepare_to_exit_span = prepare_to_drop_span = new_span


def follow_llama_index(tracer: Tracer) -> None:
    """From now on, for all of the process."""
    get_dispatcher().add_span_handler(LlamaSpans(tracer))

"""OpenTelemetry spans: one trace a run, its steps, and LlamaIndex's own calls of models below them.

No text of a question, a document, a prompt or a reply is in them: a span has names of classes and methods, the model's
name, numbers, states, and the type of an error. To be imported only where spans are asked for.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span.base import BaseSpan
from llama_index_instrumentation.span_handlers.base import BaseSpanHandler
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context
from pydantic import PrivateAttr

from crag_core.base.concurrency.shutdown import at_end
from crag_core.base.types.steps import Step, StepState
from crag_core.llms.servers import shown
from crag_core.observability.logs import redact, settings_of
from crag_core.pipeline.run import Attempt, Listener
from crag_core.trace.summary import Ending, answer_kind, measure
from crag_core.trace.trace import Trace

_LOG = logging.getLogger("crag.telemetry")
_LAST_CHANCE_S = 2.0
"""How long the end of the process waits for what is not sent yet."""


@dataclass(frozen=True)
class Place:
    """Where a thread or task is: in which run, and in which step of it, if in one."""

    run: Span
    before: Place | None
    step: str = ""
    span: Span | None = None


PLACE: ContextVar[Place | None] = ContextVar("crag_place", default=None)


class Spans(Listener):
    """Safe to share between sessions: what belongs to a run is kept in the context that it runs in."""

    def __init__(self, provider: TracerProvider, version: str = "") -> None:
        self._tracer = provider.get_tracer("crag_core", version)

    def opened(self, trace: Trace) -> None:
        told = {"run": trace.id, **settings_of(trace)}
        span = self._tracer.start_span("crag.run", attributes={f"crag.{name}": one for name, one in told.items()})
        PLACE.set(Place(span, PLACE.get()))

    def started(self, name: str) -> None:
        if place := PLACE.get():
            # The span of a step that had nothing to do is never ended, and so never sent.
            span = self._tracer.start_span(f"crag.step.{name}", context=set_span_in_context(place.run))
            PLACE.set(replace(place, step=name, span=span))

    def finished(self, step: Step, trace: Trace) -> None:
        place = PLACE.get()
        if place is None or place.span is None or place.step != step.name:
            return
        _set(
            place.span,
            step=step.name,
            state=step.state.value,
            seconds=step.seconds,
            model_calls=step.usage.calls,
            prompt_tokens=step.usage.prompt_tokens,
            completion_tokens=step.usage.completion_tokens,
        )
        if step.state is StepState.FAILED:
            fail(place.span, step.error or "CragError", redact(step.summary, trace))
        place.span.end()
        PLACE.set(Place(place.run, place.before))

    def ended(self, attempt: Attempt) -> None:
        place, trace = PLACE.get(), attempt.trace
        if place is None:
            return
        _set(place.run, ending=attempt.ending.value)
        if not attempt.bug:  # what is left then need not make sense
            run = measure(trace, 0.0)
            _set(
                place.run,
                action=run.action.value if run.action else None,
                score=run.score,
                correction=run.strategy or None,
                searched=run.searched,
                improved=run.improved,
                passages=len(trace.passages or ()),
                grades=run.graded + run.ungraded,
                ungraded=run.ungraded,
                cached=run.cached,
                model_calls=run.calls,
                prompt_tokens=run.prompt_tokens,
                completion_tokens=run.completion_tokens,
                answer=answer_kind(trace) or None,
            )
        if attempt.ending is Ending.FAILED:
            fail(place.run, attempt.bug or (trace.failure.error if trace.failure else "") or "CragError")
        place.run.end()
        PLACE.set(place.before)


def _set(span: Span, **attributes: str | float | bool | None) -> None:
    span.set_attributes({f"crag.{name}": value for name, value in attributes.items() if value is not None})


def fail(span: Span, kind: str, message: str = "") -> None:
    """Mark a span as failed by an error of this type; `message` must hold no text of the run."""
    span.set_status(Status(StatusCode.ERROR, kind))
    text = {"exception.message": message} if message else {}
    span.add_event("exception", {"exception.type": kind} | text)


class LlamaSpans(BaseSpanHandler[BaseSpan]):
    """Only what is called in a run: documents on their way into the index would be thousands of spans."""

    _tracer: Tracer = PrivateAttr()
    _open: dict[str, tuple[Span, Span | None]] = PrivateAttr(default_factory=dict)
    """With the span of the step in which each began."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer

    def span_enter(
        self, id_: str, bound_args: Any, instance: Any = None, parent_id: str | None = None, tags: Any = None, **_: Any
    ) -> None:
        place = PLACE.get()
        if place is None:
            return
        innermost = place.span or place.run
        parent, step = self._open.get(parent_id or "", (innermost, place.span))
        if step is not place.span:  # a step has begun since: the call is its own
            parent = innermost
        span = self._tracer.start_span(id_.partition("-")[0], context=set_span_in_context(parent))
        model = getattr(instance, "model", None) or getattr(instance, "model_name", None)
        if isinstance(model, str) and not os.path.isabs(model):  # a path says something of the machine
            span.set_attribute("gen_ai.request.model", model)
        self._open[id_] = (span, place.span)

    def span_exit(self, id_: str, *arguments: Any, **_: Any) -> None:
        if found := self._open.pop(id_, None):
            found[0].end()

    def span_drop(self, id_: str, *arguments: Any, err: BaseException | None = None, **_: Any) -> None:
        if found := self._open.pop(id_, None):
            fail(found[0], type(err).__name__)
            found[0].end()

    def new_span(self, *arguments: Any, **named: Any) -> None:
        """The three methods above do it all."""

    prepare_to_exit_span = prepare_to_drop_span = new_span


class _Exporter(OTLPSpanExporter):
    """Logs once when spans do not arrive at `place`, and once when they do again."""

    place = ""
    _is_away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = super().export(spans)
        except Exception:  # whatever a network can do must not end the thread that sends
            result = SpanExportResult.FAILURE
        is_away = result is SpanExportResult.FAILURE
        if is_away and not self._is_away:
            _LOG.warning("Spans do not arrive at %s; those that cannot wait are dropped.", self.place)
        elif self._is_away and not is_away:
            _LOG.info("Spans arrive at %s again.", self.place)
        self._is_away = is_away
        return result


def open_spans(endpoint: str, version: str) -> Listener:
    """A listener that makes spans of every run and of LlamaIndex's calls in it.

    `endpoint` is the base URL of a collector (OTLP over HTTP). Everything else is as the SDK's OTEL_ variables say:
    headers, time-out, certificates, resource, sampler, batches. Call it once a process.
    """
    provider = _provider(endpoint, version)
    get_dispatcher().add_span_handler(LlamaSpans(provider.get_tracer("llama_index")))
    return Spans(provider, version)


def _provider(endpoint: str, version: str) -> TracerProvider:
    resource = Resource.create({"service.version": version})
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):  # no OTEL_ variable names it
        resource = resource.merge(Resource({SERVICE_NAME: "crag-explorer"}))
    # The SDK's own variable wins; the setting may have come from a file .env, which the SDK does not read.
    own = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    exporter = _Exporter(None if own else f"{endpoint.rstrip('/')}/v1/traces")
    exporter.place = shown(own or endpoint)
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _close_at_exit(provider)
    # It would log every batch that does not arrive, and every span that has no room in the queue.
    noisy = logging.getLogger("opentelemetry")
    noisy.addHandler(logging.NullHandler())
    noisy.propagate = False
    return provider


def _close_at_exit(provider: TracerProvider) -> None:
    """The SDK would wait half a minute for a collector that is away. At exit no thread can be started any more."""
    closing, closed = threading.Event(), threading.Event()

    def close() -> None:
        closing.wait()
        provider.shutdown()
        closed.set()

    threading.Thread(target=close, name="spans-closing", daemon=True).start()
    # After the runs whose spans these are.
    at_end(closing.set, lambda seconds: closed.wait(min(seconds, _LAST_CHANCE_S)), is_last=True)

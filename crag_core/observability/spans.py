"""OpenTelemetry spans: one trace a run, with its steps.

No text of a question, a document, a prompt or a reply is in them: a span has names, numbers, states, and the type of an
error. To be imported only where spans are asked for.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import cast

from opentelemetry.context import Context, attach, create_key, get_current, get_value, set_value
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Span, Status, StatusCode, get_current_span, set_span_in_context

from crag_core.base.concurrency.shutdown import at_end
from crag_core.base.types.steps import Step, StepState
from crag_core.llms.servers import shown
from crag_core.observability.logs import settings_of
from crag_core.pipeline.run import Attempt, Listener
from crag_core.trace.summary import Ending, answer_kind, measure
from crag_core.trace.trace import Trace

_LOG = logging.getLogger("crag.telemetry")


_RUN = create_key("crag-run")


def run_span() -> tuple[Span, Context] | None:
    """The span of the run that this thread or task is in, and the context that the run began in."""
    return cast("tuple[Span, Context] | None", get_value(_RUN))


class Spans(Listener):
    """Safe to share between sessions: what belongs to a run is kept in the context that it runs in.

    Spans that others begin, such as those of an instrumented HTTP client, stand below that of the run or the step.
    """

    def __init__(self, provider: TracerProvider, version: str = "") -> None:
        self._tracer = provider.get_tracer("crag_core", version)

    def opened(self, trace: Trace) -> None:
        told = {"run": trace.id, **settings_of(trace)}
        span = self._tracer.start_span("crag.run", attributes={f"crag.{name}": one for name, one in told.items()})
        attach(set_span_in_context(span, set_value(_RUN, (span, get_current()))))

    def started(self, name: str) -> None:
        if found := run_span():
            # The span of a step that had nothing to do is never ended, and so never sent.
            span = self._tracer.start_span(f"crag.step.{name}", context=set_span_in_context(found[0]))
            attach(set_span_in_context(span))

    def finished(self, step: Step, trace: Trace) -> None:
        found, span = run_span(), get_current_span()
        if found is None or getattr(span, "name", "") != f"crag.step.{step.name}":
            return
        _set(
            span,
            step=step.name,
            state=step.state.value,
            seconds=step.seconds,
            model_calls=step.usage.calls,
            prompt_tokens=step.usage.prompt_tokens,
            completion_tokens=step.usage.completion_tokens,
        )
        if step.state is StepState.FAILED:
            _fail(span, step.error or "CragError")
        span.end()
        attach(set_span_in_context(found[0]))

    def ended(self, attempt: Attempt) -> None:
        found, trace = run_span(), attempt.trace
        if found is None:
            return
        span, outer = found
        _set(span, ending=attempt.ending.value)
        if not attempt.bug:  # what is left then need not make sense
            run = measure(trace, 0.0)
            _set(
                span,
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
            _fail(span, attempt.bug or (trace.failure.error if trace.failure else "") or "CragError")
        span.end()
        attach(outer)


def _set(span: Span, **attributes: str | float | bool | None) -> None:
    span.set_attributes({f"crag.{name}": value for name, value in attributes.items() if value is not None})


def _fail(span: Span, kind: str) -> None:
    span.set_status(Status(StatusCode.ERROR, kind))
    span.add_event("exception", {"exception.type": kind})


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
    """A listener that makes spans of every run and its steps.

    `endpoint` is the base URL of a collector (OTLP over HTTP). Everything else is as the SDK's OTEL_ variables say:
    headers, time-out, certificates, resource, sampler, batches. Call it once a process.
    """
    return Spans(_provider(endpoint, version), version)


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
    # After the runs whose spans these are. The end of the process waits no longer than it does for others.
    at_end(lambda: None, lambda seconds: provider.shutdown(), is_last=True)
    # It would log every batch that does not arrive, and every span that has no room in the queue.
    noisy = logging.getLogger("opentelemetry")
    noisy.addHandler(logging.NullHandler())
    noisy.propagate = False
    return provider

"""OpenTelemetry spans: one trace a run, its steps, and LlamaIndex's own calls of models below them.

No text of a question, a document, a prompt or a reply is in them: a span has names, numbers and states. Nothing of
OpenTelemetry is imported until spans are asked for.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crag_core.base.concurrency.shutdown import at_end
from crag_core.llms.servers import shown
from crag_core.pipeline.run import Listener

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExportResult

_LOG = logging.getLogger("crag.telemetry")
_LAST_CHANCE_S = 2.0
"""How long the end of the process waits for what is not sent yet."""


def open_spans(endpoint: str, version: str) -> Listener | None:
    """Who makes spans of every run it hears of and of LlamaIndex's calls in it; None without an endpoint.

    `endpoint` is the base URL of a collector (OTLP over HTTP). Everything else is as the SDK's OTEL_ variables say:
    headers, time-out, certificates, resource, sampler, batches. Call it once a process.
    """
    if not endpoint:
        return None
    from crag_core.observability.llamaindex_spans import follow_llama_index
    from crag_core.observability.spans import Spans

    provider = _provider(endpoint, version)
    follow_llama_index(provider.get_tracer("llama_index"))
    return Spans(provider, version)


def _provider(endpoint: str, version: str) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.version": version})
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):  # no OTEL_ variable names it
        resource = resource.merge(Resource({SERVICE_NAME: "crag-explorer"}))
    # The SDK's own variable wins; the setting may have come from a file .env, which the SDK does not read.
    own = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    exporter = OTLPSpanExporter(None if own else f"{endpoint.rstrip('/')}/v1/traces")
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_log_changes(exporter, shown(own or endpoint))))
    _close_at_exit(provider)
    # It would log every batch that does not arrive, and every span that has no room in the queue.
    noisy = logging.getLogger("opentelemetry")
    noisy.addHandler(logging.NullHandler())
    noisy.propagate = False
    return provider


def _log_changes(exporter: Any, place: str) -> Any:
    """The exporter, logging once when spans do not arrive, and once when they do again."""
    export, is_away = exporter.export, False

    def export_and_log(spans: Sequence[ReadableSpan]) -> SpanExportResult:
        from opentelemetry.sdk.trace.export import SpanExportResult

        nonlocal is_away
        try:
            result: SpanExportResult = export(spans)
        except Exception:  # whatever a network can do must not end the thread that sends
            result = SpanExportResult.FAILURE
        if (result is SpanExportResult.FAILURE) != is_away:
            is_away = not is_away
            if is_away:
                _LOG.warning("Spans do not arrive at %s; those that cannot wait are dropped.", place)
            else:
                _LOG.info("Spans arrive at %s again.", place)
        return result

    exporter.export = export_and_log
    return exporter


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

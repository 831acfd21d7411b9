"""Prometheus metrics and the log line of description 000, one observation for every run that assembled its context."""

from __future__ import annotations

import logging

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from crag_core.errors import PortUnavailable
from crag_core.run import Listener
from crag_core.summary import Summary, summarize
from crag_core.trace import Trace
from crag_core.types import Step, StepState

LOG = logging.getLogger("crag.metrics")
# Seconds; 0.07 and 0.45 are the targets of the fast and of the corrected path.
_BUCKETS = (0.01, 0.025, 0.05, 0.07, 0.1, 0.2, 0.45, 0.7, 1, 2, 5, 10, 30, 60, 120)


class Metrics(Listener):
    """Counts runs in a registry of its own; safe to share between sessions."""

    def __init__(self) -> None:
        self.problem = ""
        """Why the metrics cannot be served, if so."""
        self.registry = CollectorRegistry()
        self._decisions = Counter("crag_decisions", "Decisions by category", ["category"], registry=self.registry)
        self._corrections = Counter("crag_corrections", "Corrections by strategy", ["strategy"], registry=self.registry)
        self._latency = Histogram(
            "crag_retrieval_latency_seconds",
            "From the question to the assembled context",
            ["decision", "correction_strategy"],
            registry=self.registry,
            buckets=_BUCKETS,
        )
        self._score = Gauge("crag_relevance_score", "Overall score of the last run", registry=self.registry)

    def finished(self, step: Step, trace: Trace) -> None:
        if step.name == "assemble" and step.state is StepState.DONE:
            self.observe(summarize(trace), trace.id)

    def observe(self, summary: Summary, run: str) -> None:
        self._decisions.labels(summary.decision).inc()
        for strategy in summary.strategy.split("+") if summary.correction_applied else ():
            self._corrections.labels(strategy).inc()
        self._latency.labels(summary.decision, summary.strategy).observe(summary.retrieval_ms / 1000)
        if summary.score is not None:
            self._score.set(summary.score)
        score = "none" if summary.score is None else f"{summary.score:.2f}"
        LOG.info(
            "[CRAG_METRICS] decision=%s score=%s correction=%s latency_ms=%.1f artifacts=%d",
            summary.decision,
            score,
            summary.strategy,
            summary.retrieval_ms,
            summary.final_count,
            extra={"crag": {"run": run, **_told(summary)}},
        )

    def serve(self, port: int, address: str = "127.0.0.1") -> None:
        """Answer Prometheus at `port` for the rest of the process; raises `PortUnavailable`."""
        try:
            start_http_server(port, address, self.registry)
        except OSError as error:
            raise PortUnavailable(
                f"Metrics cannot be served at port {port}: {error.strerror or error}.",
                hint="Set CRAG_METRICS_PORT to a free port.",
            ) from error


def _told(summary: Summary) -> dict[str, object]:
    """The numbers of a log record; no text of the question or of a document is among them."""
    topical = {} if summary.topical is None else {"topical": summary.topical}
    return {
        "decision": summary.decision,
        "score": summary.score,
        **topical,
        "correction": summary.strategy,
        "latency_ms": round(summary.retrieval_ms, 1),
        "artifacts": summary.final_count,
        "tokens": summary.tokens_used,
        "model_calls": summary.model_calls,
        "cache_hit": summary.cache_hit,
    }

"""Prometheus metrics of runs, and the log line of description 000: one observation for every assembled context."""

from __future__ import annotations

import errno
import logging
import socket

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    start_http_server,
)

from crag_core.base.errors import PortUnavailable
from crag_core.base.types import Action, Step, StepName, StepState
from crag_core.observability.gauges import Gauges, Read
from crag_core.observability.run_counters import BUCKETS, RunCounts
from crag_core.observability.trends import own_retrieval_ms
from crag_core.pipeline.run import Attempt, Listener
from crag_core.trace.run_stats import Measured, measure
from crag_core.trace.summary import Summary, summarize
from crag_core.trace.trace import Trace

LOG = logging.getLogger("crag.metrics")
_CATEGORIES = 50
"""A policy names its actions itself; names beyond so many are counted as "other"."""


class Metrics(Listener):
    """Counts runs in a registry of its own; safe to share between sessions."""

    def __init__(self, version: str = "") -> None:
        self.problem = ""
        """Why the metrics cannot be served, if so."""
        self.registry = CollectorRegistry()
        self._gauges = Gauges(self.registry)
        self._categories: set[str] = set()
        self._decisions = self._counter("decisions", "Decisions by category", "category")
        self._actions = self._counter("actions", "Decisions by action", "action")
        self._corrections = self._counter("corrections", "Corrections by strategy", "strategy")
        self._improved = self._counter(
            "corrections_measured", "Corrected runs, by whether the evidence is graded higher afterwards", "outcome"
        )
        self._searched = self._counter("runs_searched", "Decided runs for which the web was asked")
        self._latency = self._histogram(
            "retrieval_latency_seconds",
            "From the question to the assembled context",
            *("decision", "correction_strategy"),
        )
        self._path = self._histogram(
            "path_seconds",
            "To the decision on the fast path, to the context on the corrected one, without the web provider",
            "path",
        )
        self._score = Gauge("crag_relevance_score", "Overall score of the last run", registry=self.registry)
        self._under_way = Gauge("crag_runs_under_way", "Runs under way in this process", registry=self.registry)
        self._counts = RunCounts(self.registry)
        Info("crag_build", "This version", registry=self.registry).info({"version": version})
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._start_at_zero()

    def watch(self, name: str, read: Read, *, is_slow: bool = False) -> None:
        """Ask `read` for a gauge at every scrape, see `gauges.Gauges`."""
        self._gauges.watch(name, read, is_slow=is_slow)

    def opened(self, trace: Trace) -> None:
        self._under_way.inc()

    def finished(self, step: Step, trace: Trace) -> None:
        if step.name == StepName.ASSEMBLE and step.state is StepState.DONE:
            self.observe(summarize(trace), trace.id)
            self._observe_path(measure(trace, 0.0))

    def ended(self, go: Attempt) -> None:
        self._under_way.dec()
        self._counts.count(go)

    def observe(self, summary: Summary, run: str) -> None:
        decision = self._bounded(summary.decision)
        self._decisions.labels(decision).inc()
        for strategy in summary.strategy.split("+") if summary.correction_applied else ():
            self._corrections.labels(strategy).inc()
        self._latency.labels(decision, summary.strategy).observe(summary.retrieval_ms / 1000)
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
            extra={"crag": {"run": run, **_describe(summary)}},
        )

    def serve(self, port: int, address: str = "127.0.0.1") -> None:
        """Answer Prometheus at `port` for the rest of the process; raises `PortUnavailable`."""
        serve(self.registry, port, address)

    def _observe_path(self, run: Measured) -> None:
        if run.action is None:
            return
        self._actions.labels(run.action.value).inc()
        self._searched.inc(run.searched)
        if run.improved is not None:
            self._improved.labels("improved" if run.improved else "not_improved").inc()
        is_fast = run.action is Action.CORRECT
        milliseconds = run.decided_ms if is_fast else own_retrieval_ms(run)
        if milliseconds is not None:
            self._path.labels("fast" if is_fast else "corrected").observe(max(milliseconds, 0.0) / 1000)

    def _bounded(self, category: str) -> str:
        if category not in self._categories and len(self._categories) >= _CATEGORIES:
            return "other"
        self._categories.add(category)
        return category

    def _start_at_zero(self) -> None:
        """What every installation meets: a rate is seen from the first one on, and no panel is empty for want of it."""
        for action in Action:
            self._actions.labels(action.value)
        for path in ("fast", "corrected"):
            self._path.labels(path)
        for outcome in ("improved", "not_improved"):
            self._improved.labels(outcome)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"crag_{name}", meaning, labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str, *labels: str) -> Histogram:
        return Histogram(f"crag_{name}", meaning, labels, registry=self.registry, buckets=BUCKETS)


def serve(registry: CollectorRegistry, port: int, address: str) -> None:
    """Answer Prometheus at `port` for the rest of the process; raises `PortUnavailable`."""
    try:
        start_http_server(port, address, registry)
    except OSError as error:
        is_address = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        raise PortUnavailable(
            f"Metrics cannot be served at port {port}: {error.strerror or error}.",
            hint="Set CRAG_METRICS_ADDRESS to an address of this machine, such as 127.0.0.1 or 0.0.0.0."
            if is_address
            else "Set CRAG_METRICS_PORT to a free port.",
        ) from error


def _describe(summary: Summary) -> dict[str, object]:
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

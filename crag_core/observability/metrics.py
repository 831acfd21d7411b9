"""Prometheus metrics of runs, gauges that are read at every scrape, and the log line of description 000.

Steps, calls, tokens and grades are counted when a run ends, as the difference between the record that it began with and
the one that it left: a run that is resumed pays only for what is new.
"""

from __future__ import annotations

import errno
import logging
import socket
from collections import Counter as Count
from collections.abc import Callable, Iterable, Iterator, Mapping

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
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from crag_core.base.errors import PortUnavailable
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.steps import Step, StepName, StepState, Usage
from crag_core.base.types.web import WebSearch
from crag_core.pipeline.run import Attempt, Listener
from crag_core.trace.summary import DOUBTFUL, FROM_MEMORY, Ending, Measured, Summary, answer_kind, measure, summarize
from crag_core.trace.trace import Trace

# --- gauges -----------------------------------------------------------------------------------------------------------


Read = Callable[[], float | Mapping[str, float]]
"""One number, or one for each value of the gauge's label."""

_LOG = logging.getLogger("crag.metrics")
KNOWN: dict[str, tuple[str, str]] = {
    "crag_runs_waiting": ("Runs that wait in line", ""),
    "crag_index_documents": ("Documents in the index", ""),
    "crag_index_passages": ("Chunks in the index", ""),
    "crag_model_server_busy": ("Calls under way at each model server", "server"),
    "crag_part_works": ("0: the last use of this part (history, cache, audit) failed", "part"),
}
"""Meaning and label of each gauge that can be watched; "": it has none."""


class Gauges(Collector):
    """Those of `KNOWN` that have a source; one that raises is left out of that scrape, and logged."""

    def __init__(self) -> None:
        self.sources: dict[str, Read] = {}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, read in tuple(self.sources.items()):
            meaning, label = KNOWN[name]
            family = GaugeMetricFamily(name, meaning, labels=[label] if label else [])
            try:
                found = read()
            except Exception as error:  # whatever a source meets must not cost the other figures
                _LOG.warning("%s cannot be read: %s", name, type(error).__name__)
                continue
            for value, number in (found if isinstance(found, Mapping) else {"": found}).items():
                family.add_metric([value] if label else [], float(number))
            yield family


# --- metrics of runs --------------------------------------------------------------------------------------------------


CORRECT_TARGET, CORRECTED_TARGET, SEARCHED_TARGET, IMPROVED_TARGET = 0.70, 0.30, 0.10, 0.80
FAST_TARGET, SLOW_TARGET = 70.0, 450.0
"""The targets of description 000: a share of at least, below, below and above; milliseconds of the median below. They
are for questions that the documents are there to answer, so that only the dashboard for such an operation has them."""
BUCKETS = (0.01, 0.025, 0.05, 0.07, 0.1, 0.2, 0.45, 0.7, 1, 2, 5, 10, 30, 60, 120)
"""Seconds; 0.07 and 0.45 are the targets of the fast and of the corrected path."""


class Metrics(Listener):
    """Counts runs in a registry of its own; safe to share between sessions.

    The values of every label come from our own code, the category of a decision from the operator's policies.
    """

    def __init__(self, version: str = "") -> None:
        self.problem = ""
        """Why the metrics cannot be served, if so."""
        self.registry = CollectorRegistry()
        """With the version, and the metrics of the process."""
        Info("crag_build", "This version", registry=self.registry).info({"version": version})
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._gauges = Gauges()
        self.registry.register(self._gauges)
        counter, seconds = self._counter, self._seconds
        self._decisions = counter("decisions", "Decisions by category", "category")
        self._actions = counter("actions", "Decisions by action", "action")
        self._corrections = counter("corrections", "Corrections by strategy", "strategy")
        self._improved = counter(
            "corrections_measured", "Corrected runs, by whether the best score is higher afterwards", "outcome"
        )
        self._searched = counter("runs_searched", "Decided runs for which the web was asked")
        self._latency = seconds(
            "retrieval_latency", "From the question to the assembled context", "decision", "correction_strategy"
        )
        self._path = seconds(
            "path",
            "To the decision on the fast path, to the context on the corrected one, without the web provider",
            "path",
        )
        self._score = Gauge("crag_relevance_score", "Overall score of the last run", registry=self.registry)
        self._under_way = Gauge("crag_runs_under_way", "Runs under way in this process", registry=self.registry)
        self._runs = counter("runs", "Runs, by how their first attempt ended", "ending")
        self._carried_on = counter("runs_carried_on", "Attempts that continued a run, by ending", "ending")
        self._bugs = counter("bugs", "Runs broken by an error that is none of the expected ones")
        self._run_seconds = seconds("run", "All steps of an attempt that was completed")
        self._step_seconds = seconds("step", "One step in one attempt", "step")
        self._steps = counter("steps", "Steps by how they ended", "step", "state")
        self._failures = counter("step_failures", "Steps that failed, by type of error", "step", "error")
        self._calls = counter("model_calls", "Calls of language models", "step")
        self._tokens = counter("model_tokens", "Tokens of language models, prompt or completion", "step", "kind")
        self._grades = counter("grades", "Chunks graded or tried to")
        self._ungraded = counter("grades_ungraded", "Grades that could not be made or read")
        self._cached = counter("grades_from_cache", "Grades that an earlier run had paid for")
        self._searches = counter("web_searches", "Web searches by provider and outcome", "provider", "outcome")
        self._answers = counter("answers", "Answers by state", "state")
        self._start_at_zero()

    def watch(self, name: str, read: Read) -> None:
        """Ask `read` for a gauge of `KNOWN` at every scrape."""
        self._gauges.sources[name] = read

    def opened(self, trace: Trace) -> None:
        self._under_way.inc()

    def finished(self, step: Step, trace: Trace) -> None:
        if step.name == StepName.ASSEMBLE and step.state is StepState.DONE:
            self._observe(summarize(trace), trace.id)
            self._observe_path(measure(trace, 0.0))

    def ended(self, attempt: Attempt) -> None:
        self._under_way.dec()
        (self._runs if attempt.is_first else self._carried_on).labels(attempt.ending.value).inc()
        self._bugs.inc(bool(attempt.bug))
        if attempt.ending is Ending.DONE:
            self._run_seconds.observe(max(attempt.trace.seconds - attempt.since.seconds, 0.0))
        self._count_steps(attempt)
        made = Count(_grades(attempt.trace)) - Count(_grades(attempt.since))
        self._grades.inc(made.total())
        self._ungraded.inc(sum(count for grade, count in made.items() if grade.score is None))
        self._cached.inc(sum(count for grade, count in made.items() if grade.from_cache))
        self._count_web(attempt.since.web, attempt.trace.web)
        if attempt.trace.answer is not None and attempt.trace.answer is not attempt.since.answer:
            self._answers.labels(_answer_label(answer_kind(attempt.trace))).inc()

    def _observe(self, summary: Summary, run: str) -> None:
        self._decisions.labels(summary.decision).inc()
        for strategy in summary.strategy.split("+") if summary.correction_applied else ():
            self._corrections.labels(strategy).inc()
        self._latency.labels(summary.decision, summary.strategy).observe(summary.retrieval_ms / 1000)
        if summary.score is not None:
            self._score.set(summary.score)
        score = "none" if summary.score is None else f"{summary.score:.2f}"
        _LOG.info(
            "[CRAG_METRICS] decision=%s score=%s correction=%s latency_ms=%.1f artifacts=%d",
            summary.decision,
            score,
            summary.strategy,
            summary.retrieval_ms,
            summary.final_count,
            extra={"crag": {"run": run, **_describe(summary)}},
        )

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

    def _count_steps(self, attempt: Attempt) -> None:
        made = Count(attempt.trace.steps) - Count(attempt.since.steps)
        for step in made.elements():
            self._steps.labels(step.name, step.state.value).inc()
            if step.state is StepState.FAILED:
                self._failures.labels(step.name, step.error or "CragError").inc()
        before, after = _spent(attempt.since.steps), _spent(attempt.trace.steps)
        for name in {step.name for step in made}:
            (seconds, usage), (old_seconds, old) = after[name], before.get(name, (0.0, Usage()))
            self._step_seconds.labels(name).observe(max(seconds - old_seconds, 0.0))
            self._calls.labels(name).inc(max(usage.calls - old.calls, 0))
            self._tokens.labels(name, "prompt").inc(max(usage.prompt_tokens - old.prompt_tokens, 0))
            self._tokens.labels(name, "completion").inc(max(usage.completion_tokens - old.completion_tokens, 0))

    def _count_web(self, before: WebSearch | None, web: WebSearch | None) -> None:
        if web is None or not web.outcome.was_asked or (before is not None and before.outcome.was_asked):
            return
        asked = [(one.provider, one.outcome.value) for one in web.attempts] or [(web.provider, web.outcome.value)]
        for provider, outcome in [(web.provider, "from_cache")] if web.from_cache else asked:
            self._searches.labels(provider or "unknown", _label(outcome)).inc()

    def _start_at_zero(self) -> None:
        """What every installation meets: Prometheus sees no increase in what begins with its first count."""
        for action in Action:
            self._actions.labels(action.value)
        for path in ("fast", "corrected"):
            self._path.labels(path)
        for outcome in ("improved", "not_improved"):
            self._improved.labels(outcome)
        for ending in Ending:
            self._runs.labels(ending.value)
            self._carried_on.labels(ending.value)
        for kind in (*AnswerState, DOUBTFUL, FROM_MEMORY):
            self._answers.labels(_answer_label(kind))
        for step in StepName:
            self._calls.labels(step)
            for kind in ("prompt", "completion"):
                self._tokens.labels(step, kind)
            for ended in StepState:
                self._steps.labels(step, ended.value)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"crag_{name}", meaning, labels, registry=self.registry)

    def _seconds(self, name: str, meaning: str, *labels: str) -> Histogram:
        return Histogram(f"crag_{name}_seconds", meaning, labels, registry=self.registry, buckets=BUCKETS)


def own_retrieval_ms(run: Measured) -> float | None:
    """Without what the web provider took."""
    return None if run.retrieval_ms is None else run.retrieval_ms - (run.provider_ms or 0.0)


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


def _spent(steps: Iterable[Step]) -> dict[str, tuple[float, Usage]]:
    """Seconds and usage of all steps of a name together."""
    spent: dict[str, tuple[float, Usage]] = {}
    for step in steps:
        seconds, usage = spent.get(step.name, (0.0, Usage()))
        spent[step.name] = (seconds + step.seconds, usage + step.usage)
    return spent


def _grades(trace: Trace) -> tuple[Grade, ...]:
    """Of corpus and web, and those of other evaluators."""
    return tuple(grade for opinion in trace.opinions for grade in opinion.grades)


def _answer_label(kind: str) -> str:
    return kind if kind == FROM_MEMORY else _label(kind)


def _label(text: str) -> str:
    """The value of a label as it is usual: cannot_answer."""
    return text.replace(" ", "_").replace("-", "_")

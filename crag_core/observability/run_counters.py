"""Prometheus counters of runs, counted once when a run ends.

Steps, calls, tokens and grades are the difference between the record that the go began with and the one that it left:
a run that is resumed pays only for what is new.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram

from crag_core.base.types import AnswerState, Grade, Step, StepName, StepState, Usage, WebOutcome, WebSearch
from crag_core.pipeline.run import Attempt
from crag_core.trace.run_stats import Ending
from crag_core.trace.trace import Trace

BUCKETS = (0.01, 0.025, 0.05, 0.07, 0.1, 0.2, 0.45, 0.7, 1, 2, 5, 10, 30, 60, 120)
"""Seconds; 0.07 and 0.45 are the targets of the fast and of the corrected path."""
_ANSWERED = (WebOutcome.USED, WebOutcome.EMPTY, WebOutcome.FAILED, WebOutcome.RATE_LIMITED, WebOutcome.TIMED_OUT)


class RunCounts:
    """Counters in `registry`; safe to share between threads. The values of every label come from our own code."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"crag_{name}", meaning, labels, registry=registry)

        def seconds(name: str, meaning: str, *labels: str) -> Histogram:
            return Histogram(f"crag_{name}_seconds", meaning, labels, registry=registry, buckets=BUCKETS)

        self._runs = counter("runs", "Runs, by how their first go ended", "ending")
        self._carried_on = counter("runs_carried_on", "Goes that went on with a run, by ending", "ending")
        self._bugs = counter("bugs", "Runs broken by an error that is none of the expected ones")
        self._run_seconds = seconds("run", "All steps of a go that came to its end")
        self._step_seconds = seconds("step", "One step in one go", "step")
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

    def count(self, go: Attempt) -> None:
        (self._runs if go.is_first else self._carried_on).labels(go.ending.value).inc()
        self._bugs.inc(bool(go.bug))
        if go.ending is Ending.DONE:
            self._run_seconds.observe(max(go.trace.seconds - go.since.seconds, 0.0))
        self._count_steps(go)
        self._count_grades(Count(_grades(go.trace)) - Count(_grades(go.since)))
        self._count_web(go.since.web, go.trace.web)
        if go.trace.answer is not None and go.trace.answer is not go.since.answer:
            self._answers.labels(_word(go.trace.answer.state.value)).inc()

    def _start_at_zero(self) -> None:
        """What every installation meets: Prometheus sees no increase in what begins with its first count."""
        for ending in Ending:
            self._runs.labels(ending.value)
            self._carried_on.labels(ending.value)
        for state in AnswerState:
            self._answers.labels(_word(state.value))
        for step in StepName:
            self._calls.labels(step)
            for kind in ("prompt", "completion"):
                self._tokens.labels(step, kind)
            for ended in StepState:
                self._steps.labels(step, ended.value)

    def _count_steps(self, go: Attempt) -> None:
        made = Count(go.trace.steps) - Count(go.since.steps)
        for step in made.elements():
            self._steps.labels(step.name, step.state.value).inc()
            if step.state is StepState.FAILED:
                self._failures.labels(step.name, step.error or "CragError").inc()
        before, after = _spent(go.since.steps), _spent(go.trace.steps)
        for name in {step.name for step in made}:
            (seconds, usage), (old_seconds, old) = after[name], before.get(name, (0.0, Usage()))
            self._step_seconds.labels(name).observe(max(seconds - old_seconds, 0.0))
            self._calls.labels(name).inc(max(usage.calls - old.calls, 0))
            self._tokens.labels(name, "prompt").inc(max(usage.prompt_tokens - old.prompt_tokens, 0))
            self._tokens.labels(name, "completion").inc(max(usage.completion_tokens - old.completion_tokens, 0))

    def _count_grades(self, made: Mapping[Grade, int]) -> None:
        self._grades.inc(sum(made.values()))
        self._ungraded.inc(sum(count for grade, count in made.items() if grade.score is None))
        self._cached.inc(sum(count for grade, count in made.items() if grade.from_cache))

    def _count_web(self, before: WebSearch | None, web: WebSearch | None) -> None:
        if web is None or web.outcome not in _ANSWERED or (before is not None and before.outcome in _ANSWERED):
            return
        asked = [(one.provider, one.outcome.value) for one in web.attempts] or [(web.provider, web.outcome.value)]
        for provider, outcome in [(web.provider, "from_cache")] if web.from_cache else asked:
            self._searches.labels(provider or "unknown", _word(outcome)).inc()


def _spent(steps: Iterable[Step]) -> dict[str, tuple[float, Usage]]:
    """Seconds and usage of all steps of a name together."""
    spent: dict[str, tuple[float, Usage]] = {}
    for step in steps:
        seconds, usage = spent.get(step.name, (0.0, Usage()))
        spent[step.name] = (seconds + step.seconds, usage + step.usage)
    return spent


def _grades(trace: Trace) -> tuple[Grade, ...]:
    """Of corpus and web, and those of other evaluators."""
    web = (trace.web.grades if trace.web else None) or ()
    return (*(trace.grades or ()), *web, *(grade for opinion in trace.opinions for grade in opinion.grades))


def _word(text: str) -> str:
    """The value of a label as it is usual: cannot_answer."""
    return text.replace(" ", "_").replace("-", "_")

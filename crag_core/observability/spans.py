"""A run and its steps as OpenTelemetry spans: names, numbers and states."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from opentelemetry.trace import Span, Status, StatusCode, TracerProvider, set_span_in_context

from crag_core.base.types import Step, StepState
from crag_core.observability.redaction import redact
from crag_core.pipeline.run import Attempt, Listener
from crag_core.trace.summary import Ending, measure
from crag_core.trace.trace import Trace


@dataclass(frozen=True)
class Place:
    """Where a thread or task is: in which run, and in which step of it, if in one."""

    run: Span
    before: Place | None
    step: str = ""
    span: Span | None = None

    @property
    def innermost(self) -> Span:
        return self.span or self.run


PLACE: ContextVar[Place | None] = ContextVar("crag_place", default=None)


class Spans(Listener):
    """Safe to share between sessions: what belongs to a run is kept in the context that it runs in."""

    def __init__(self, provider: TracerProvider, version: str = "") -> None:
        self._tracer = provider.get_tracer("crag_core", version)

    def opened(self, trace: Trace) -> None:
        made = trace.settings
        span = self._tracer.start_span(
            "crag.run",
            attributes={
                "crag.run": trace.id,
                "crag.policy": made.policy.name,
                "crag.evaluator": made.evaluator.name,
                "crag.model": made.writer,
                "crag.web": made.web_mode,
                "crag.settings": trace.fingerprint,
                "crag.carried_on": bool(trace.steps),
            },
        )
        PLACE.set(Place(span, PLACE.get()))

    def started(self, name: str) -> None:
        place = PLACE.get()
        if place is not None:
            # The span of a step that had nothing to do is never ended, and so never sent.
            span = self._tracer.start_span(f"crag.step.{name}", context=set_span_in_context(place.run))
            PLACE.set(Place(place.run, place.before, name, span))

    def finished(self, step: Step, trace: Trace) -> None:
        place = PLACE.get()
        if place is None or place.span is None or place.step != step.name:
            return
        place.span.set_attributes(
            {
                "crag.step": step.name,
                "crag.state": step.state.value,
                "crag.seconds": step.seconds,
                "crag.model_calls": step.usage.calls,
                "crag.prompt_tokens": step.usage.prompt_tokens,
                "crag.completion_tokens": step.usage.completion_tokens,
            }
        )
        if step.state is StepState.FAILED:
            fail(place.span, step.error or "CragError", redact(step.summary, trace))
        place.span.end()
        PLACE.set(Place(place.run, place.before))

    def ended(self, go: Attempt) -> None:
        place = PLACE.get()
        if place is None:
            return
        place.run.set_attribute("crag.ending", go.ending.value)
        if not go.bug:  # what is left then need not make sense
            place.run.set_attributes(_figures(go.trace))
        failure = go.trace.failure
        if go.ending is Ending.FAILED:
            fail(place.run, go.bug or (failure.error if failure else "") or "CragError")
        place.run.end()
        PLACE.set(place.before)


def fail(span: Span, kind: str, message: str = "") -> None:
    """Mark a span as failed by an error of this type; `message` must hold no text of the run."""
    span.set_status(Status(StatusCode.ERROR, kind))
    text = {"exception.message": message} if message else {}
    span.add_event("exception", {"exception.type": kind} | text)


def _figures(trace: Trace) -> dict[str, str | float | int | bool]:
    run = measure(trace, 0.0)
    found = {
        "crag.action": run.action.value if run.action else None,
        "crag.score": run.score,
        "crag.correction": run.strategy or None,
        "crag.searched": run.searched,
        "crag.improved": run.improved,
        "crag.passages": len(trace.passages or ()),
        "crag.grades": run.graded + run.ungraded,
        "crag.ungraded": run.ungraded,
        "crag.cached": run.cached,
        "crag.model_calls": run.calls,
        "crag.prompt_tokens": run.prompt_tokens,
        "crag.completion_tokens": run.completion_tokens,
        "crag.answer": trace.answer.state.value if trace.answer else None,
    }
    return {name: value for name, value in found.items() if value is not None}

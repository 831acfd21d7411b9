"""Logs start, steps and end of a run; no text of question, document or reply."""

from __future__ import annotations

import logging

from crag_core.base.types import Step, StepState, Usage
from crag_core.observability.redaction import redact
from crag_core.pipeline.run import Attempt, Listener
from crag_core.trace.trace import Trace

LOG = logging.getLogger("crag.run")
LOG.addHandler(logging.NullHandler())  # without a handler of the user nothing is shown, not even a failure


class RunLog(Listener):
    """Safe to share between sessions."""

    def opened(self, trace: Trace) -> None:
        made = trace.settings
        _log(
            logging.INFO,
            "begun",
            trace,
            policy=made.policy.name,
            evaluator=made.evaluator.name,
            model=made.writer,
            web=made.web_mode,
            settings=trace.fingerprint,
            carried_on=bool(trace.steps),
        )

    def finished(self, step: Step, trace: Trace) -> None:
        is_failed = step.state is StepState.FAILED
        error = {"error": step.error, "told": redact(step.summary, trace)} if is_failed else {}
        costs = _costs(step.seconds, step.usage)
        level = logging.WARNING if is_failed else logging.INFO
        _log(level, "step", trace, step=step.name, state=step.state.value, **costs, **error)

    def ended(self, go: Attempt) -> None:
        trace = go.trace
        _log(
            logging.ERROR if go.bug else logging.INFO,
            "ended",
            trace,
            ending=go.ending.value,
            action=trace.decision.action.value if trace.decision else None,
            answer=trace.answer.state.value if trace.answer else None,
            **_costs(trace.seconds, trace.usage),
            **({"bug": go.bug} if go.bug else {}),
        )


def _costs(seconds: float, usage: Usage) -> dict[str, object]:
    tokens = usage.prompt_tokens + usage.completion_tokens
    return {"ms": round(1000 * seconds, 1), "calls": usage.calls, "tokens": tokens}


def _log(level: int, event: str, trace: Trace, **fields: object) -> None:
    line = " ".join(f"{name}={value}" for name, value in fields.items())
    LOG.log(level, "[CRAG_RUN] %s %s", event, line, extra={"crag": {"run": trace.id, "event": event, **fields}})

"""Logs begin, steps and end of a run; no text of question, document or reply."""

from __future__ import annotations

import logging

from crag_core.base.types import Step, StepState
from crag_core.observability.redaction import redact
from crag_core.pipeline.run import Attempt, Listener
from crag_core.trace.trace import Trace

LOG = logging.getLogger("crag.run")
LOG.addHandler(logging.NullHandler())  # who has asked for no log gets none, not even of a failure


class RunLog(Listener):
    """Safe to share between sessions. Where nobody reads, nothing is put together."""

    def opened(self, trace: Trace) -> None:
        if not LOG.isEnabledFor(logging.INFO):
            return
        made = trace.settings
        _tell(
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
        level = logging.WARNING if step.state is StepState.FAILED else logging.INFO
        if not LOG.isEnabledFor(level):
            return
        usage = step.usage
        broken = {"error": step.error, "told": redact(step.summary, trace)} if step.state is StepState.FAILED else {}
        _tell(
            level,
            "step",
            trace,
            step=step.name,
            state=step.state.value,
            ms=round(1000 * step.seconds, 1),
            calls=usage.calls,
            tokens=usage.prompt_tokens + usage.completion_tokens,
            **broken,
        )

    def ended(self, go: Attempt) -> None:
        level = logging.ERROR if go.bug else logging.INFO
        if not LOG.isEnabledFor(level):
            return
        trace = go.trace
        usage = trace.usage
        _tell(
            level,
            "ended",
            trace,
            ending=go.ending.value,
            action=trace.decision.action.value if trace.decision else None,
            answer=trace.answer.state.value if trace.answer else None,
            ms=round(1000 * trace.seconds, 1),
            calls=usage.calls,
            tokens=usage.prompt_tokens + usage.completion_tokens,
            **({"bug": go.bug} if go.bug else {}),
        )


def _tell(level: int, event: str, trace: Trace, **message: object) -> None:
    line = " ".join(f"{name}={value}" for name, value in message.items())
    LOG.log(level, "[CRAG_RUN] %s %s", event, line, extra={"crag": {"run": trace.id, "event": event, **message}})

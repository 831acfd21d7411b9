"""Log records: their form on standard error, and the records of start, steps and end of a run.

No text of a question, a document or a reply is in them, so no message of an error either, which may repeat some.
"""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime

from crag_core.base.types.steps import Step, StepName, StepState, Usage
from crag_core.pipeline.run import RUN_ID, Attempt, Listener
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import answer_kind
from crag_core.trace.trace import Trace

_OURS = ("crag", "crag_core")
"""Loggers with a name of their own, and those with the name of their module."""


def show_logs(form: str) -> None:
    """Show records from level INFO: "text", "json" (one object a line), or "off". Calling it again changes the form."""
    for name in _OURS:
        logger = logging.getLogger(name)
        for handler in [one for one in logger.handlers if isinstance(one, Lines)]:
            logger.removeHandler(handler)
        if form != "off":
            lines = Lines()
            lines.setFormatter(JsonLines() if form == "json" else TextLines())
            logger.addHandler(lines)
            logger.setLevel(logging.INFO)


class Lines(logging.StreamHandler):  # type: ignore[type-arg]  # of standard error as it is now
    """Records as lines on standard error; one that cannot be written is lost, and costs a run nothing."""

    def handleError(self, record: logging.LogRecord) -> None:
        """The usual one reports it on standard error, which is what could not be written to."""


class TextLines(logging.Formatter):
    """Time (UTC), level, the run if there is one, the message."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(crag_run)s%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        run = _run_of(record)
        record.crag_run = f"run={run} " if run else ""
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """On one line, so that no text can pass for a record."""
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")


class JsonLines(logging.Formatter):
    """A record as one JSON object; what a caller gave as `extra={"crag": …}` stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        run = _run_of(record)
        message = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **({"run": run} if run else {}),
            **getattr(record, "crag", {}),
        }
        if record.exc_info:
            message["exception"] = self.formatException(record.exc_info)
        return json.dumps(message, ensure_ascii=False, default=str)


def _run_of(record: logging.LogRecord) -> str:
    """The run that a record names itself, else the one that is under way where it was made."""
    return str(getattr(record, "crag", {}).get("run") or RUN_ID.get())


# --- records of runs --------------------------------------------------------------------------------------------------


LOG = logging.getLogger("crag.run")
LOG.addHandler(logging.NullHandler())  # without a handler of the user nothing is shown, not even a failure


class RunLog(Listener):
    """Safe to share between sessions."""

    def opened(self, trace: Trace) -> None:
        _log(logging.INFO, "begun", trace, **settings_of(trace))

    def finished(self, step: Step, trace: Trace) -> None:
        is_failed = step.state is StepState.FAILED
        error = {"error": step.error, "told": step.hint} if is_failed else {}
        if step.name == StepName.ASSEMBLE and reroute(trace, trace.settings.policy).uses_irrelevant:
            error["told"] = "chunks graded as irrelevant are used, since nothing better was found"
        costs = _costs(step.seconds, step.usage)
        level = logging.WARNING if error else logging.INFO
        _log(level, "step", trace, step=step.name, state=step.state.value, **costs, **error)

    def ended(self, attempt: Attempt) -> None:
        trace, bug = attempt.trace, attempt.bug
        verdict = trace.decision.verdict if trace.decision else None
        told: dict[str, object] = {"ending": attempt.ending.value, "action": verdict and verdict.value}
        told |= {"answer": answer_kind(trace) or None, **_costs(trace.seconds, trace.usage)}
        _log(logging.ERROR if bug else logging.INFO, "ended", trace, **told, **({"bug": bug} if bug else {}))


def settings_of(trace: Trace) -> dict[str, str | bool]:
    """Under what a run is made, for logs and spans."""
    made = trace.settings
    return {
        "policy": made.policy.name,
        "evaluator": made.evaluator.name,
        "model": made.writer,
        "web": made.web_mode,
        "settings": trace.fingerprint,
        "carried_on": bool(trace.steps),
    }


def _costs(seconds: float, usage: Usage) -> dict[str, object]:
    tokens = usage.prompt_tokens + usage.completion_tokens
    return {"ms": round(1000 * seconds, 1), "calls": usage.calls, "tokens": tokens}


def _log(level: int, event: str, trace: Trace, **fields: object) -> None:
    line = " ".join(f"{name}={value}" for name, value in fields.items())
    LOG.log(level, "[CRAG_RUN] %s %s", event, line, extra={"crag": {"run": trace.id, "event": event, **fields}})

"""Log records: their form on standard error, what is redacted, and the records of start, steps and end of a run.

No text of a question, a document or a reply is in them.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator
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


# --- redaction --------------------------------------------------------------------------------------------------------


LONGEST = 300
WITHHELD = "(withheld: it repeats text of the run, whose record has it)"
_SECRET = re.compile(r"(?<=://)[^\s/@]+@")
_QUERY = re.compile(r"(https?://[^\s?#]+)[?#]\S*")
_WORD = re.compile(r"\w+")
_FROM_QUERY, _FROM_TEXT = 3, 5
"""So many words in a row are a quotation: a query is short, while in a long text a few words meet by chance."""


def redact(message: str, trace: Trace) -> str:
    """On one line, cut short, no user, password or query in a URL; withheld where it quotes question, text or reply."""
    words = _words(message)
    if any(_has(words, _words(text), _FROM_QUERY) for text in _queries(trace)) or any(
        _has(words, _words(text), _FROM_TEXT) for text in _texts(trace)
    ):
        return WITHHELD
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in message).split())
    line = _QUERY.sub(r"\1", _SECRET.sub("…@", line))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _has(words: list[str], text: list[str], count: int) -> bool:
    """Whether so many words of `text` stand in `words`, or all of them where it has fewer."""
    count = min(count, len(text))
    if not count:
        return False
    known = {tuple(text[place : place + count]) for place in range(len(text) - count + 1)}
    return any(tuple(words[place : place + count]) in known for place in range(len(words) - count + 1))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _queries(trace: Trace) -> Iterator[str]:
    yield trace.question
    yield trace.web.query if trace.web else ""
    yield from (retrieval.query for found in trace.rounds for retrieval in found.retrievals)


def _texts(trace: Trace) -> Iterator[str]:
    for passage in trace.every_passage:
        yield passage.text
    for grade in trace.all_grades:
        yield from (grade.raw or "", grade.reason)
    yield from (extraction.raw or "" for extraction in trace.extractions or ())
    yield trace.answer.text if trace.answer else ""


# --- records of runs --------------------------------------------------------------------------------------------------


LOG = logging.getLogger("crag.run")
LOG.addHandler(logging.NullHandler())  # without a handler of the user nothing is shown, not even a failure


class RunLog(Listener):
    """Safe to share between sessions."""

    def opened(self, trace: Trace) -> None:
        _log(logging.INFO, "begun", trace, **settings_of(trace))

    def finished(self, step: Step, trace: Trace) -> None:
        is_failed = step.state is StepState.FAILED
        error = {"error": step.error, "told": redact(step.summary, trace)} if is_failed else {}
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

"""Log records as JSON or text lines on standard error, each with its run id."""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime

from crag_core.pipeline.run import RUN_ID

_OURS = ("crag", "crag_core")
"""Loggers with a name of their own, and those with the name of their module."""


def show_logs(form: str) -> None:
    """Show records from level INFO: "text", "json" (one object a line), or "off". Calling it again changes the form."""
    for name in _OURS:
        logger = logging.getLogger(name)
        for handler in [one for one in logger.handlers if isinstance(one, Lines)]:
            logger.removeHandler(handler)
        if form != "off":
            logger.addHandler(Lines(form))
            logger.setLevel(logging.INFO)


class Lines(logging.StreamHandler):  # type: ignore[type-arg]  # of standard error as it is now
    """Records as lines on standard error; one that cannot be written is lost, and costs a run nothing."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.setFormatter(JsonLines() if form == "json" else TextLines())

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

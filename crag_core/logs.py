"""Log records of the project as lines of JSON or of text on standard error."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

_MARK = "_crag_handler"


def show_logs(form: str) -> None:
    """Show records from level INFO: "text", "json" (one object a line), or "off". Calling it again changes the form."""
    logger = logging.getLogger("crag")
    for handler in [one for one in logger.handlers if hasattr(one, _MARK)]:
        logger.removeHandler(handler)
    if form == "off":
        return
    handler = logging.StreamHandler()
    setattr(handler, _MARK, True)
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


class JsonLines(logging.Formatter):
    """A record as one JSON object; what a caller gave as `extra={"crag": …}` stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "crag", {}),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)

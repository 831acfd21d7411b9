"""Reading what language models really reply when asked for a score; pure, apart from its callers."""

from __future__ import annotations

import ast
import json
import math
import re
from dataclasses import dataclass
from typing import Any

_LONGEST = 20_000
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_UNOPENED_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_NUMBER = r"[-+]?(?:\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d+)?|nan|[-+]?inf(?:inity)?"
_UNIT = r"%|/\s*\d+|\(?out of \d+\)?"
# Possessive throughout ("*+"): without it, a reply with long runs of spaces would take quadratic time.
_LABELLED = re.compile(
    rf"""\b(?:score|relevance|rating|grade)\b[\s"'*]*+(?:is|of|[:=])?+[\s"'*]*+((?>{_NUMBER}))\s*+({_UNIT})?+""",
    re.IGNORECASE,
)
_RANGE = re.compile(r"[ \t]*(?:-|–|—|to|and)[ \t]*\.?\d", re.IGNORECASE)
_ALONE = re.compile(rf"^[^\w.+-]*+((?>{_NUMBER}))\s*+({_UNIT})?+[\s.*`\"']*+$", re.IGNORECASE)
_YES_NO = re.compile(r"^\W*(yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True)
class ScoreReply:
    """`score` in 0..1, or None with the `cause`."""

    score: float | None
    reason: str = ""
    cause: str = ""


def parse_score(text: str, scale: float = 1.0) -> ScoreReply:
    """Read a score given on 0..`scale`, in JSON or around it; anything unclear is None with its cause."""
    reply = without_thoughts(text)
    if not reply:
        return ScoreReply(None, cause="the reply was empty")
    for record in _objects(reply):
        if "score" in record:
            reason = record.get("reasoning", record.get("reason", ""))
            return _from_value(record["score"], scale, str(reason).strip())
    if alone := _ALONE.match(reply):
        return _in_range(alone.group(1), alone.group(2), scale, "")
    labelled = [
        match for match in _LABELLED.finditer(reply) if not _RANGE.match(reply, max(match.end(1), match.end(2)))
    ]
    if any(reply.count("{") > reply.count("}") and not reply[match.end(1) :].strip(". ") for match in labelled):
        return ScoreReply(None, cause="the reply was cut off in the middle of the score")
    found = [_in_range(match.group(1), match.group(2), scale, reply) for match in labelled]
    if len({one.score for one in found}) > 1:
        return ScoreReply(None, cause="the reply holds more than one score")
    if found:
        return found[0]
    if _YES_NO.match(reply):
        return ScoreReply(None, cause="the reply was a yes or no, not a score")
    return ScoreReply(None, cause="the reply holds no score")


def without_thoughts(text: str) -> str:
    """A reply without what the model thought aloud; some chat templates leave out the tag that opens the thought."""
    return _UNOPENED_THOUGHT.sub("", _THOUGHT.sub("", text[:_LONGEST])).strip()


def _from_value(value: Any, scale: float, reason: str) -> ScoreReply:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match = _ALONE.match(str(value)[:400]) if is_number or isinstance(value, str) else None
    if not match:
        return ScoreReply(None, cause=f"the score {str(value)[:40]!r} is not a number")
    return _in_range(match.group(1), match.group(2), scale, reason)


def _in_range(digits: str, unit: str | None, scale: float, reason: str) -> ScoreReply:
    """`digits` out of `scale`, or out of what its unit says ("%", "/10", "out of 10")."""
    number = float(digits.replace(",", "."))
    full = scale if not unit else 100.0 if unit == "%" else float(re.sub(r"\D", "", unit))
    if not math.isfinite(number) or full <= 0:
        return ScoreReply(None, cause="the score is not a finite number")
    if not 0.0 <= number <= full:
        return ScoreReply(None, cause=f"the score {number:g} lies outside 0 to {full:g}")
    return ScoreReply(number / full, reason)


def _objects(reply: str) -> list[dict[str, Any]]:
    """The JSON objects in a reply, and Python dicts, which small models like to write."""
    found = []
    decoder = json.JSONDecoder()
    for match in list(re.finditer(r"\{", reply))[:20]:
        try:
            value, _ = decoder.raw_decode(reply, match.start())
        except (ValueError, RecursionError):
            value = _python_dict(reply[match.start() :])
        if isinstance(value, dict):
            found.append(value)
    return found


def _python_dict(text: str) -> Any:
    end = text.find("}")
    try:
        return ast.literal_eval(text[: end + 1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None

"""Removes secrets and texts of a run from error messages before they are logged or traced."""

from __future__ import annotations

import re
from collections.abc import Iterator

from crag_core.trace.trace import Trace

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

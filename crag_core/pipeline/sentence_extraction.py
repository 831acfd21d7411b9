"""Verifies sentences that a language model extracted: only verbatim ones are kept."""

from __future__ import annotations

import json
import re

from crag_core.base.reply_parsing import without_thoughts
from crag_core.base.types import Strip

_SHORTEST = 3  # characters; less than this is found in any passage and proves nothing


def parse_sentences(reply: str) -> tuple[str, ...] | None:
    """The sentences in a reply: the JSON that was asked for, or plain lines; None when it is unreadable.

    An empty list, or words such as "no sentences", mean that nothing is relevant: ().
    """
    text = without_thoughts(reply)
    match = re.search(r'\{(?=\s*["}]).*\}|\[(?=\s*["\]]).*\]', text, re.DOTALL)  # "[1]" in a line of prose is no list
    if match:
        try:
            data = json.loads(match.group())
        except (ValueError, RecursionError):
            return None
        found = data.get("sentences") if isinstance(data, dict) else data
        if not isinstance(found, list):
            return None
        sentences = tuple(item.strip() for item in found if isinstance(item, str))
        return tuple(filter(None, sentences)) if sentences or not found else None
    if not text or text.startswith(("{", "[")):
        return None
    if re.search(r"\bno (?:relevant )?sentences?\b|^none\b", text, re.IGNORECASE):
        return ()
    return tuple(line for raw in text.splitlines() if (line := raw.strip().lstrip("-*• ").strip('"“”')))


def locate(sentences: tuple[str, ...], text: str, strips: tuple[Strip, ...]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """(indexes of the strips in which the sentences stand, sentences that do not stand in `text`).

    Only white space may differ. `strips` are those of the passage `text`.
    """
    indexes: set[int] = set()
    refused = []
    for sentence in sentences:
        words = sentence.split()
        pattern = r"\s+".join(re.escape(word) for word in words)
        match = re.search(pattern, text) if len(" ".join(words)) >= _SHORTEST else None
        if match is None:
            refused.append(sentence)
            continue
        indexes |= {strip.index for strip in strips if strip.start < match.end() and match.start() < strip.end}
    return tuple(sorted(indexes)), tuple(refused)

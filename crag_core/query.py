"""The web query: what a model wrote, cleaned, or the question's own keywords when no model is there."""

from __future__ import annotations

import re
from collections.abc import Callable

_LONGEST = 200


def clean_query(reply: str, word_limit: int) -> str:
    """The query in a model's reply: its first line that says something, bare, at most `word_limit` words; maybe ''."""
    text = re.sub(r"<think>.*?(?:</think>|\Z)", "", reply, flags=re.DOTALL | re.IGNORECASE)
    for line in text.splitlines():
        bare = re.sub(r"^\W*(?:(?:web |search )*query|rewritten|keywords?)\s*:", "", line, flags=re.IGNORECASE)
        words = bare.strip(" \t\"'`*“”„«».-").split()
        if words:
            return " ".join(words[:word_limit])[:_LONGEST]
    return ""


def keyword_query(question: str, keywords: Callable[[str], list[str]], word_limit: int) -> str:
    """The question's own words that `keywords` finds in it, in order, at most `word_limit`; else the question itself."""
    kept = [word.strip(".,;:!?\"'()[]“”„¿¡") for word in question.split() if keywords(word)]
    return (" ".join(kept[:word_limit]) or question)[:_LONGEST]

"""Years that a question is about, and those that a text names."""

from __future__ import annotations

import re
from functools import lru_cache

_YEAR = r"((?:19|20)\d\d)(?!\d|[.,]\d)(?:[/-](\d\d)(?!\d))?"
_NAMED = re.compile(rf"(?<!\d){_YEAR}")
_AFTER = "in|of|for|during|years?|season|on|to|and|the"
_ASKED = re.compile(rf"\b(?:{_AFTER}) {_YEAR}(?! (?:[a-z]+s|percent|%|[€£$])\b)", re.IGNORECASE)
"""Not "of 2000 pounds"."""
_OPEN = re.compile(
    rf"\b(?:since|from|until|till|by|before|after|between|than|(?:up|prior) to) (?:the )?(?:years? |seasons? )?{_YEAR}",
    re.IGNORECASE,
)


@lru_cache(maxsize=512)
def years_asked(question: str) -> frozenset[int]:
    """{2023} of "What was the fare in 2023?", none of "What came after 2023?", of which others tell; English only."""
    return frozenset() if _OPEN.search(question) else _years(_ASKED, question)


def years_named(text: str) -> frozenset[int]:
    """Also in a file's name; two of "2021/22" and "2021-22"."""
    return _years(_NAMED, text)


def _years(pattern: re.Pattern[str], text: str) -> frozenset[int]:
    found = set()
    for match in pattern.finditer(text):
        year = int(match[1])
        found.add(year)
        if match[2] and int(match[2]) == (year + 1) % 100:
            found.add(year + 1)
    return frozenset(found)

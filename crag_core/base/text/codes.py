"""Codes that a question names, such as "7-0064-18", "E-207" or "KX9": which texts have them, and which have others."""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(r"(?<![\w-])(?=[\w./-]*\d)[A-Za-z0-9]+(?:[-./_][A-Za-z0-9]+)*(?![\w-])")
_GROUP = re.compile(r"[A-Za-z]+|\d+")
_DATE = re.compile(r"(?:1[89]|20)\d\d[-/](?:\d{4}|\d\d(?:[-/]\d\d)?)|\d\d?[-/.]\d\d?[-/.]\d{2,4}")
_LEAST_DIGITS = 5  # of a code without letters, which has a hyphen: "10-20" is a range
_LONGEST_WORD = 3  # letters in lower case that may stand in a code: "50-year-old" is none
_UNITS = frozenset(
    re.findall(
        "[a-z]+",
        "st nd rd th s m km cm mm kg g mg l ml kwh kw w v a h hr hrs min mins sec pm am gb mb tb px k x d c f p eur "
        "usd gbp mph kmh",
    )
)


@lru_cache(maxsize=512)
def codes_of(text: str) -> tuple[str, ...]:
    """Each once, in order; no dates, times, amounts, or numbers with a unit."""
    return tuple(dict.fromkeys(found[0] for found in _TOKEN.finditer(text) if _is_code(found[0])))


def _is_code(token: str) -> bool:
    groups = _GROUP.findall(token)
    letters = [group for group in groups if group.isalpha()]
    if not letters:
        digits = sum(len(group) for group in groups)
        return "-" in token and digits >= _LEAST_DIGITS and not _DATE.fullmatch(token)
    if groups[0].isdigit() and len(groups) == 2 and (letters[0].lower() in _UNITS or "-" in token):
        return False
    return not any(group.islower() and len(group) > _LONGEST_WORD for group in letters)


def spellings(code: str) -> tuple[str, str]:
    """In lower case: its parts apart, and as one word."""
    parts = [part.lower() for part in _GROUP.findall(code)]
    return " ".join(parts), "".join(parts)


def has_code(text: str, code: str) -> bool:
    """Whatever stands between its parts, in any case: "E-207" is in "error e207"."""
    return bool(_pattern(code).search(text))


def with_code_as(word: str, code: str, text: str) -> str:
    """The text with `word` wherever it holds the code."""
    return _pattern(code).sub(word, text)


def other_code(text: str, code: str) -> str:
    """The first code in the text that is made as `code` is, and is another; "" where there is none."""
    shape = [group.isdigit() for group in _GROUP.findall(code)]
    alike = (one for one in codes_of(text) if [group.isdigit() for group in _GROUP.findall(one)] == shape)
    return next((one for one in alike if not has_code(one, code)), "")


@lru_cache(maxsize=512)
def _pattern(code: str) -> re.Pattern[str]:
    parts = r"[\s\-./_]?".join(_GROUP.findall(code))
    return re.compile(rf"(?<![A-Za-z0-9]){parts}(?![A-Za-z0-9])", re.IGNORECASE)

"""Search words for a sentence that states a fact, in any language: what people type where they write no question."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache

from crag_core.base.data_files import DATA
from crag_core.base.text.words import COMMON_WORDS, script_of, words

FEWEST, MOST = 3, 5
"""Words of a query."""

_NUMBER = r"(?:\d{1,3}(?:[ \u00a0\u202f]\d{3})+|\d+)(?:[.,:]\d+)*"
_FACTS = tuple(
    re.compile(rf"(?<![\w.,:-])(?<![×x]\s)(?:{pattern})(?![\w%])")
    for pattern in (
        r"\d{1,2}\.?\s(?:de\s)?[^\W\d_]{3,}\s(?:de\s)?(?:1[5-9]|20)\d\d",  # a date
        r"\d{1,2}[:.]\d{2}\s(?:Uhr|uur)|\d{1,2}:\d{2}",
        rf"[£$€¥]\s?{_NUMBER}|{_NUMBER}\s?[%€£$¥]|{_NUMBER}\s(?:°C|mm|cm|km|kg|kW|kWh|MW|bar|ml|m²|m|g|l|t|h)",
        r"(?:1[5-9]|20)\d\d",
        rf"{_NUMBER}\s(?P<unit>[^\W\d_]{{3,}})",
    )
)
_UNSPACED_FACT = re.compile(rf"(?:{_NUMBER}\s?[年月日時分秒円元人名個个位米度歳岁%％公][里斤尺間间]?)+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_UNSPACED_WORD = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff々]{2,12}|[\u30a0-\u30ff]{2,12}|[A-Za-z]{3,12}")
_CHINESE_PARTICLES = re.compile(r"[的了是在和与與及有为為到从從被将將也就都而或但这這那其于於以對对可能会會要不]")
_TIME_UNITS = frozenset(words("days hours minutes months nights seconds weeks years mois ans ore uur dage dni zile"))
_SPACED_LENGTH, _UNSPACED_LENGTH = range(5, 45), range(10, 200)  # words, characters
_LONGEST_WORD = 30


@cache
def little_words() -> frozenset[str]:
    """Words that do not tell what a text is about."""
    return COMMON_WORDS | frozenset((DATA / "little-words.txt").read_text("utf-8").split())


def search_words(sentence: str, rarity: Callable[[str], int]) -> tuple[str, str] | None:
    """The content words of `sentence` without the fact that they lead to, and that fact, white space aside; None where
    it states none, or says little.

    `rarity` counts how often a lower-case word occurs in the collection: names and rare words say most.
    """
    text = " ".join(sentence.split())
    if _UNSPACED.search(text):
        found = _UNSPACED_FACT.search(text) if len(text) in _UNSPACED_LENGTH else None
    elif len(text.split()) not in _SPACED_LENGTH or re.search(r"[|`<>{}=\\@]|https?:", text):
        found = None
    else:
        found = next((match for fact in _FACTS for match in fact.finditer(text) if _is_fact(match)), None)
    if found is None:
        return None
    unit = found.groupdict().get("unit") or ""
    around = f"{text[: found.start()]} {unit} {text[found.end() :]}"
    said = list(dict.fromkeys(_unspaced_words(around) if _UNSPACED.search(text) else _spaced_words(around)))
    ranked = sorted(said, key=lambda word: (word != unit, not word[0].isupper(), rarity(word.lower()), -len(word)))
    query = " ".join(word for word in said if word in ranked[:MOST])
    is_sound = len(said) >= FEWEST and found.group().casefold() not in query.casefold()
    return (query, found.group()) if is_sound else None


def _is_fact(match: re.Match[str]) -> bool:
    """A number with a unit is one where the unit is a noun, as far as that can be seen, or a time."""
    unit = match.groupdict().get("unit")
    if unit is None or unit in _TIME_UNITS:
        return True
    return unit.lower() not in little_words() and (len(unit) > 4 or unit[0].isupper())


def _unspaced_words(text: str) -> list[str]:
    return _UNSPACED_WORD.findall(text if _KANA.search(text) else _CHINESE_PARTICLES.sub(" ", text))


def _spaced_words(text: str) -> list[str]:
    shortest = 4 if script_of(text) in {"LATIN", "CYRILLIC", "GREEK"} else 2
    return [
        word
        for word in map(_bare, text.split())
        if shortest <= len(word) <= _LONGEST_WORD
        and word.lower() not in little_words()
        and not any(map(str.isdigit, word))
    ]


def _bare(word: str) -> str:
    """A word without the signs around it; vowel signs, which are no letters, belong to it."""
    signs = [at for at, sign in enumerate(word) if unicodedata.category(sign)[0] not in "PSZC"]
    return word[signs[0] : signs[-1] + 1] if signs else ""

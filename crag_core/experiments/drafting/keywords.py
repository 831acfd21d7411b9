"""Search words for a sentence that states a fact, in any language: what people type where they write no question."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from crag_core.base.text.words import COMMON_WORDS, script_of, words


@dataclass(frozen=True)
class Asked:
    """`answer` stands in the sentence, white space aside, and answers `question`."""

    question: str
    answer: str


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
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_UNSPACED_WORD = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff々]{2,}|[\u30a0-\u30ff]{2,}|[A-Za-z]{3,}")
_CHINESE_PARTICLES = re.compile(r"[的了是在和与與及有为為到从從被将將也就都而或但这這那其于於以对對可能会會要不]")
_LONGEST_UNSPACED, _LONGEST_WORD = 12, 30  # characters
_SPACED_LENGTH, _UNSPACED_LENGTH = range(5, 45), range(10, 200)  # words, characters
_SHORT_UNITS = frozenset(
    words(
        """days hours minutes months nights seconds weeks years
        euro mois ans ore anni mesi días años dias anos jaar uur dage år dni lat dní gün yıl saat zile ani лет
        года дней"""
    )
)
"""What is counted in words that tell little, or so short that others of their length are seldom nouns."""

LITTLE_WORDS = COMMON_WORDS | frozenset(
    words(
        """a about above across after again against all almost along already also although always among an another any
        around at away because been before being below between both cannot could did does down during each either
        even every few first former further had he her here hers him himself his however if in inside instead into it
        itself just last later latter least less like long longer many me might mine more most much must my near
        nearly neither never next nobody none nor nothing now off often on once one only others otherwise our ours out
        outside over own past per please same several shall she should since so some still such than then these
        therefore those though through throughout today together too toward towards under unless until up upon us
        usually via we what when where whether which while who whom whose why will within without working yes yet yours
        two three four five six seven eight nine ten eleven twelve twenty thirty hundred thousand million
        date day days hours minutes month months night percentage second seconds time week weeks year years
        agli alle allem allen aller beim bitte circa dalla darf degli delle dello desde deux deze diesem diesen donc
        donde dort dürfen efter ella elles esta esto estos etwa från hade hanno hasta höchstens ihrem ihren ihrer
        leurs lors meer mehr mindestens muss müssen nelle också onder pela porque prin quando questa questo rund sans
        sein según seine seit sobre sollen sollte sous sowie spätestens stata stato sulla también tiene unas unos vers
        werd wurden över"""
    )
)
"""Words that do not tell what a text is about."""


def search_words(sentence: str, rarity: Callable[[str], int]) -> Asked | None:
    """The content words of `sentence` without the fact that they lead to; None where it states none, or says little.

    `rarity` counts how often a lower-case word occurs in the collection: names and rare words say most.
    """
    text = " ".join(sentence.split())
    if re.search(rf"[{_UNSPACED}]", text):
        return _unspaced(text, rarity) if len(text) in _UNSPACED_LENGTH else None
    if len(text.split()) not in _SPACED_LENGTH or re.search(r"[|`<>{}=\\@]|https?:", text):
        return None
    found = next((match for fact in _FACTS for match in fact.finditer(text) if _is_fact(match)), None)
    if found is None:
        return None
    unit = found.groupdict().get("unit") or ""
    shortest = 4 if script_of(text) in {"LATIN", "CYRILLIC", "GREEK"} else 2
    around = f"{text[: found.start()]} {unit} {text[found.end() :]}"
    said = [word for piece in around.split() if _says_much(word := _bare(piece), shortest)]
    return _query(said, found.group(), rarity, {unit} & set(said))


def _is_fact(match: re.Match[str]) -> bool:
    unit = match.groupdict().get("unit")
    is_noun = unit is not None and unit.lower() not in LITTLE_WORDS and (len(unit) > 4 or unit[0].isupper())
    return unit is None or unit in _SHORT_UNITS or is_noun


def _unspaced(text: str, rarity: Callable[[str], int]) -> Asked | None:
    found = _UNSPACED_FACT.search(text)
    if found is None:
        return None
    around = f"{text[: found.start()]} {text[found.end() :]}"
    if not re.search(r"[\u3040-\u30ff]", text):  # in Japanese the kana part the words
        around = _CHINESE_PARTICLES.sub(" ", around)
    said = [word for word in _UNSPACED_WORD.findall(around) if len(word) <= _LONGEST_UNSPACED]
    return _query(said, found.group(), rarity, set())


def _query(said: list[str], answer: str, rarity: Callable[[str], int], kept: set[str]) -> Asked | None:
    words = list(dict.fromkeys(said))
    by_rarity = sorted(
        words, key=lambda word: (word not in kept, not word[0].isupper(), rarity(word.lower()), -len(word))
    )
    chosen = set(by_rarity[:MOST])
    query = " ".join(word for word in words if word in chosen)
    is_sound = len(chosen) >= FEWEST and answer.casefold() not in query.casefold()
    return Asked(query, answer) if is_sound else None


def _bare(word: str) -> str:
    """A word without the signs around it; vowel signs, which are no letters, belong to it."""
    signs = [at for at, sign in enumerate(word) if unicodedata.category(sign)[0] not in "PSZC"]
    return word[signs[0] : signs[-1] + 1] if signs else ""


def _says_much(word: str, shortest: int) -> bool:
    is_plain = shortest <= len(word) <= _LONGEST_WORD and not any(sign.isdigit() for sign in word)
    return is_plain and word.lower() not in LITTLE_WORDS

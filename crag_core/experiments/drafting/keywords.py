"""Search words for a sentence that states a fact, in any language: what people type where they write no question."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from crag_core.base.text.language import script_of
from crag_core.base.text.words import words
from crag_core.experiments.drafting.cloze import Asked

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
        """euro mois ans ore anni mesi días años dias anos jaar uur dage år dni lat dní gün yıl saat zile ani лет
        года дней"""
    )
)
"""What is counted in words so short that others of their length are seldom nouns."""

_LITTLE = frozenset(
    words(
        """höchstens mindestens spätestens darf dürfen soll sollen sollte bitte etwa circa aber alle allem allen
        aller auch auf aus bei beim bis dann das dass dem den der des die dies diese diesem diesen dieser dort
        durch ein eine einem einen einer eines für hat ihr ihre ihrem ihren ihrer ist kann können mehr mit muss
        müssen nach nicht nur oder ohne rund seit sein seine sich sie sind sowie über und unter vom von vor war
        waren wenn werden wie wir wird wurde wurden zum zur au aux avec ces cette dans deux donc est elle elles
        entre été être ils leur leurs les lors mais nous ont par pas plus pour que qui sans ses son sont sous
        sur une vers vous como con del desde donde ella era esta este esto estos fue han hasta las los más muy
        para pero por porque según ser sin sobre sus también tiene una unas unos agli alla anche che dal dalla
        degli dei della delle dello gli hanno nel nella nelle non per più quando questa questo sono stata stato
        sul sulla suo uno aos com dos ela ele foi mas nas nos não pela pelo sua são uma aan als bij dat deze dit
        een het hun maar meer met naar niet ook onder over tot uit van voor werd wordt zijn att blev det eller
        efter från för har hade ikke inte kan med men mot och också om som till til ved var över ale dla jak
        jest nie oraz pod przez się tym był była było bez bir bu çok daha için ile olan olarak sonra ve din fost
        prin sau"""
    )
)


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
    return (
        unit is None or unit in _SHORT_UNITS or (unit.lower() not in _LITTLE and (len(unit) > 4 or unit[0].isupper()))
    )


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
    return is_plain and word.lower() not in _LITTLE

"""Numbers of a text, in digits or in words of English, German, French and Spanish. Pure."""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

# From two on; "one" is an article in three of the four languages, and Spanish "once" means something else in English.
_COUNTED = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty",
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn "
    "neunzehn zwanzig",
    "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf "
    "vingt",
    "dos tres cuatro cinco seis siete ocho nueve diez - doce trece catorce quince dieciséis diecisiete dieciocho "
    "diecinueve veinte",
    "second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
)
_TENS = (
    "twenty thirty forty fifty sixty seventy eighty ninety",
    "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "vingt trente quarante cinquante soixante",
    "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
)
_TEN = {word: 10 * tens for line in _TENS for tens, word in enumerate(line.split(), 2)}
_NUMBERS = {word: number for line in _COUNTED for number, word in enumerate(line.split(), 2)} | _TEN
_NUMBERS |= {"twice": 2, "thrice": 3, "dozen": 12, "dutzend": 12, "douzaine": 12, "docena": 12}
_MULTIPLIERS = {
    **dict.fromkeys(("hundred", "hundert"), 100),
    **dict.fromkeys(("thousand", "tausend", "mille", "mil"), 1_000),
    **dict.fromkeys(("million", "millions", "millionen", "millón", "millones"), 1_000_000),
    **dict.fromkeys(("billion", "billions", "milliarde", "milliarden", "milliard", "milliards"), 1_000_000_000),
}
_TOKEN = re.compile(r"\d+(?:[.,:'’\u00a0\u202f]\d+)*|[^\W\d_]+(?:-[^\W\d_]+)*")
_GROUPS = re.compile(r"\d{1,3}(?:[.,'’\u00a0\u202f]\d{3})+")
_GERMAN_TENS = re.compile(r"(\w+?)und(\w+(?:z|ß)ig)")
_LIST_MARK = re.compile(r":\s+\d{1,2}\.?\s*\Z")


@lru_cache(8192)
def number_in(word: str) -> str:
    """The digits of a number word, also of "twenty-five" and "fünfundzwanzig"; "" for what is none."""
    tens, _, ones = word.partition("-")
    if german := _GERMAN_TENS.fullmatch(word):
        tens, ones = german[2], german[1]
    if word in _NUMBERS or tens not in _TEN:
        return str(_NUMBERS.get(word, ""))
    added = 1 if ones == "ein" else _NUMBERS.get(ones, 10)
    return str(_TEN[tens] + added) if added < 10 else ""


def missing_numbers(claim: str, evidence: Sequence[str]) -> tuple[str, ...]:
    said = {value: said for text in evidence for value, said in _numbers_in(text).items()}
    dates = (value for value in said if value.count("|") > 1 or ":" in said[value])  # whose parts may be named alone
    known = {*said, *(part.lstrip("0") for value in dates for part in value.split("|"))}
    # Who counts in a word what the evidence only names says a number that stands nowhere, and no other one.
    is_counted = any(len(value) < 3 for value in known)
    own = ((value, said) for value, said in _numbers_in(claim).items() if value not in known)
    return tuple(said for _, said in own if is_counted or any(map(str.isdigit, said)))


def _numbers_in(text: str) -> dict[str, str]:
    """Each number in the form in which two are compared, with the words that said it; "two million" is one."""
    tokens = _TOKEN.findall(_LIST_MARK.sub("", text).lower())
    found: dict[str, str] = {}
    for token, following in zip(tokens, [*tokens[1:], ""], strict=False):
        value = number_form(token)
        if value and following in _MULTIPLIERS and value.count("|") < 2:
            found[str(Fraction(value.replace("|", ".")) * _MULTIPLIERS[following])] = f"{token} {following}"
        elif value:
            found[value] = token
    return found


@lru_cache(8192)
def number_form(token: str) -> str:
    """A number in one form: "24,530" is 24530, "9.50" and "9,5" are 9|5, "9:00" is 9; "" for what is none."""
    if not token[:1].isdigit():
        return number_in(token)
    if _GROUPS.fullmatch(token):
        return "".join(filter(str.isdigit, token)).lstrip("0") or "0"
    first, *others = re.findall(r"\d+", token)
    parts = [first.lstrip("0") or "0", *others]
    if len(parts) == 2 and len(parts[1]) < 20:
        parts[1] = parts[1].rstrip("0")
    return "|".join(part for part in parts if part)

"""Numbers, rates and negation of a sentence that its evidence lacks. Pure.

"twice a year" and "not more often than every two years" share most of their words. What is compared here is what those
words mean: numbers, in digits or words; the unit beside a number; rates; bounds such as "at most"; and a "not".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from crag_core.trace.grounding.quantity_words import (
    ADVERBS,
    AGAINST,
    ALSO,
    BOUNDS,
    DAYS,
    MONTHS,
    MULTIPLIERS,
    NUMBERS,
    SOFT,
    STRICT,
    TENS,
    TIMES,
    UNITS,
)

_TOKEN = re.compile(r"\b\d{1,2} : \d{1,2}\b|\d+(?:[.,:'’\u00a0\u202f]\d+)*|[^\W\d_]+(?:['’]t\b)?|[%€$£¥°]")
_GROUPS = re.compile(r"\d{1,3}(?:[.,'’\u00a0\u202f]\d{3})+")
_GERMAN_TENS = re.compile(r"(\w+?)und(\w+(?:z|ß)ig)")
_SIGNS = frozenset("€$£¥")
_SECONDS = frozenset({"second", "seconde", "segundo"})
_ADDING = ("and", "und", "y", "et")
_ONCE = re.compile(r"(?<!\S)(?:once|einmal|(?:one|une|una) (?=time\b|fois\b|vez\b))")
_TIMES = r"(?:times?|mal|fois|vez|veces)"
_PER = r"(?:per|every|each|an?|pro|je|jede[nrsm]?|alle|im|am|in der|in|par|chaque|l|por|cada|al|a la)"
_EACH = r"(?:per|every|each|pro|je|jede[nrsm]?|alle|par|tous les|toutes les|chaque|por|cada|todos los|todas las)"
_RATES = tuple(
    re.compile(rf"(?<!\S){pattern}(?!\S)")
    for pattern in (
        rf"#(?P<times>\S+) {_TIMES} (?:{_PER} )?(?:#(?P<count>\S+) )?@(?P<unit>\S+)",
        rf"#(?P<times>\S+) (?:{_TIMES} )?~(?P<adverb>\S+)",
        rf"{_EACH} (?:(?P<other>other) )?(?:#(?P<count>\S+) )?@(?P<unit>\S+)",
        r"#\S+ \S+ (?:an?|al|a la|la|le|die|der) @(?P<unit>\S+)",
        r"~(?P<adverb>\S+)",
    )
)
_COUNT = re.compile(rf"#(\S+) (?={_TIMES} |[@~])")
_BOUNDS = {name: re.compile(rf"(?<!\S)(?:{pattern})(?!\S)") for name, pattern in BOUNDS.items()}
_ALSO = {name: re.compile(rf"(?<!\S)(?:{pattern})(?!\S)") for name, pattern in ALSO.items()}
_SOFT = re.compile(rf"(?<!\S)(?:{SOFT})(?!\S)")
_MARK = re.compile(r"<([a-z ]+)>")
_FRENCH_NE = re.compile(r"(?<!\S)ne? (?:\S+ ){0,3}(?=<at )")
_CLAUSE = re.compile(
    r"[,;:()—–]|\b(?:but|whereas|while|although|unless|aber|sondern|während|mais|tandis|sauf|pero|mientras|salvo)\b",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r":\s+\d{1,2}\.?\s*\Z")
_UN = re.compile(r"(?:un|non)-?(?=\w{4})")
_NO_DENIAL = frozenset({"unless", "under", "until", "unter", "unten"})


@dataclass(frozen=True)
class Quantity:
    """`value` in the form in which numbers are compared, `unit` "" where none stands beside it; `said` as written."""

    value: str
    unit: str
    said: str


@dataclass(frozen=True)
class Rate:
    """How often in a time, by the day or by the month where that is known; `bound` is what stands before it."""

    often: Fraction
    base: str
    bound: str


@dataclass(frozen=True)
class Said:
    """What a text says of how much and how often; `plain` is the text as phrases are looked for in it."""

    quantities: tuple[Quantity, ...]
    rates: Mapping[Rate, str]
    plain: str

    @cached_property
    def units_by_value(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for one in self.quantities:
            found.setdefault(one.value, set()).add(one.unit)
            parts = one.value.split("|")
            if len(parts) > 2 or ":" in one.said:  # a date or a time of day, whose parts may be named alone
                for part in parts:
                    found.setdefault(part.lstrip("0"), set()).add("")
        return found


@lru_cache(8192)
def number_in(word: str) -> str:
    """The digits of a number word, also of "twenty-five" and "fünfundzwanzig"; "" for what is none."""
    if word in NUMBERS:
        return str(NUMBERS[word])
    tens, _, ones = word.partition("-")
    if tens in TENS and ones in NUMBERS and NUMBERS[ones] < 10:
        return str(TENS[tens] + NUMBERS[ones])
    german = _GERMAN_TENS.fullmatch(word)
    if german and german[2] in TENS and (german[1] == "ein" or german[1] in NUMBERS):
        return str(TENS[german[2]] + NUMBERS.get(german[1], 1))
    return ""


def disagreeing(claim: str, pieces: Sequence[str], beside: Sequence[str] = ()) -> tuple[str, ...]:
    """What `claim` says of how much and how often that no piece says, in the words of the claim.

    `beside`: texts that stand next to the pieces, in which a number may stand, too.
    """
    own, others = said_in(_LIST_MARK.sub("", claim)), [said_in(piece) for piece in pieces]
    plain = " | ".join(one.plain for one in others)
    found = (*_amounts(own, others, [*map(said_in, beside)]), *_often(own, others, plain), *_bounds(own.plain, plain))
    return tuple(dict.fromkeys(found))


def without_bounds(text: str) -> str:
    """The text without "not more than" and the like, in which a "not" denies nothing."""
    bare = _FRENCH_NE.sub(" ", said_in(text).plain)
    return _MARK.sub(lambda mark: mark[1] if mark[1] == "never" else " ", bare)


def clauses(text: str) -> tuple[str, ...]:
    """The parts of a sentence that a "not" in one of them does not turn round in another."""
    return tuple(part for part in _CLAUSE.split(text) if part and part.strip())


def without_un(words: Iterable[str]) -> frozenset[str]:
    """What "un" and "non" turn round in these words: "safe" for "unsafe"."""
    found = (_UN.sub("", word, count=1) for word in words if word not in _NO_DENIAL and _UN.match(word))
    return frozenset(found)


@lru_cache(2048)
def said_in(text: str) -> Said:
    tokens = _TOKEN.findall(text.lower())
    quantities: list[Quantity] = []
    plain: list[str] = []
    at = 0
    while at < len(tokens):
        value, end = _number(tokens, at)
        if value:
            quantities.append(Quantity(value, _unit(tokens, at, end), " ".join(tokens[at:end])))
            plain.append(f"#{value}" + (" times" if tokens[at] in ("twice", "thrice") or _is_times(tokens[at]) else ""))
        else:
            plain.append(_plain(tokens, at))
        at = end
    marked = _ONCE.sub(lambda found: "#1 times" if " " not in found[0] else "#1 ", " ".join(plain))
    for name, pattern in _BOUNDS.items():
        marked = pattern.sub(lambda found, name=name: f"<{name}>" + _kept_number(found[0]), marked)  # type: ignore[misc]
    return Said(tuple(quantities), _rates(marked), marked)


# --- what is compared -----------------------------------------------------------------------------------------------


def _amounts(own: Said, others: Sequence[Said], beside: Sequence[Said]) -> Iterator[str]:
    known: dict[str, set[str]] = {}
    for other in (*others, *beside):
        for value, found in other.units_by_value.items():
            known.setdefault(value, set()).update(found)
    agreed = {rate for other in others for rate in other.rates}
    in_rates = {value for rate, said in own.rates.items() if rate in agreed for value in _COUNT.findall(said)}
    is_counting = any(not one.unit and len(one.value) < 3 for other in others for one in other.quantities)
    for one in own.quantities:
        units = known.get(one.value, set() if one.value in in_rates else None)
        if units is None:
            # Who counts in a word what the evidence only names says a number that stands nowhere, and no other one.
            if is_counting or one.unit or any(map(str.isdigit, one.said)):
                yield one.said
        elif one.unit and units and one.unit not in units and "" not in units:
            yield f"{one.said} {one.unit}"


def _often(own: Said, others: Sequence[Said], plain: str) -> Iterator[str]:
    known = {rate for other in others for rate in other.rates}
    for rate, said in own.rates.items():
        unit = _unit_of(said)
        is_simple = rate.often == _rate(1, 1, unit)[0] and not rate.bound
        if rate not in known and not (is_simple and not known and f"@{unit}" in plain.split()):
            yield re.sub("[#@~]", "", said)


def _bounds(own: str, plain: str) -> Iterator[str]:
    for name, against in AGAINST.items():
        if f"<{name}>" in own and f"<{name}>" not in plain:
            is_against = any(f"<{other}>" in plain for other in against)
            if is_against or (name in STRICT and not _ALSO[name].search(plain)):
                yield name
    is_soft = _SOFT.search(plain)
    for name in ("only", "always"):
        if f"<{name}>" in own and not (f"<{name}>" in plain or _ALSO[name].search(plain)):
            yield name
    for name in ("always", "never"):
        if f"<{name}>" in own and is_soft and f"<{name}>" not in _SOFT.sub(" ", plain):
            yield name


# --- reading --------------------------------------------------------------------------------------------------------


def _number(tokens: Sequence[str], at: int) -> tuple[str, int]:
    """(the value of the number that begins here, "" if none does; where what comes after it begins)."""
    value = _value(tokens[at])
    if not value or (at and tokens[at] in _SECONDS and _value(tokens[at - 1])):
        return "", at + 1
    end = at + 1
    if end < len(tokens) and tokens[end] in MULTIPLIERS and value.count("|") < 2:
        by = MULTIPLIERS[tokens[end]]
        whole = Fraction(value.replace("|", ".")) * by
        end += 1
        is_added = end < len(tokens) and tokens[end] in _ADDING
        rest = end + is_added
        more = _value(tokens[rest]) if rest < len(tokens) and (is_added or by == 100) else ""
        if more.isdigit() and int(more) < min(by, 1000) and whole.denominator == 1:
            whole, end = whole + int(more), rest + 1
        value = str(whole)
    elif tokens[at] in TENS and end < len(tokens) and NUMBERS.get(tokens[end], 10) < 10:
        value, end = str(TENS[tokens[at]] + NUMBERS[tokens[end]]), end + 1
    return value, end


@lru_cache(8192)
def _value(token: str) -> str:
    """A number in one form: "24,530" is 24530, "9.50" and "9,5" are 9|5, "9:00" is 9."""
    if not token[:1].isdigit():
        return number_in(token)
    if _GROUPS.fullmatch(token):
        return "".join(filter(str.isdigit, token)).lstrip("0") or "0"
    first, *others = re.findall(r"\d+", token)
    parts = [first.lstrip("0") or "0", *others]
    if len(parts) == 2 and len(parts[1]) < 20:
        parts[1] = parts[1].rstrip("0")
    return "|".join(part for part in parts if part)


def _unit(tokens: Sequence[str], at: int, end: int) -> str:
    """Of the number that stands from `at` to `end`."""
    if at and tokens[at - 1] in _SIGNS:
        return UNITS[tokens[at - 1]]
    after = tokens[end : end + 2]
    if after in (["per", "cent"], ["pour", "cent"], ["por", "ciento"]):
        return "percent"
    if not after or (len(after[0]) == 1 and after[0].isalpha() and not tokens[at][:1].isdigit()):
        return ""
    return "second" if after[0] in _SECONDS else UNITS.get(after[0], "")


def _plain(tokens: Sequence[str], at: int) -> str:
    word = tokens[at]
    if word in ADVERBS:
        return f"~{word}"
    unit = UNITS.get(word, "")
    is_french_year = word == "an" and at > 0 and tokens[at - 1] in ("par", "l")
    if (unit in TIMES and len(word) > 1) or is_french_year:
        return f"@{unit or 'year'}"
    return word


def _is_times(word: str) -> bool:
    return word.endswith("mal") and word in NUMBERS


def _kept_number(found: str) -> str:
    """A bound such as "plus de 5" is recognised by the number behind it, which stays."""
    number = found.rpartition(" ")[2]
    return f" {number}" if number.startswith("#") else ""


def _rates(marked: str) -> dict[Rate, str]:
    found: dict[Rate, str] = {}

    def take(match: re.Match[str]) -> str:
        named = match.groupdict()
        if named.get("adverb"):
            times, count, unit = ADVERBS[named["adverb"]]
        else:
            times, count, unit = 1, 2 if named.get("other") else 1, named["unit"]
        often, base = _rate(_whole(named.get("times")) or times, _whole(named.get("count")) or count, unit)
        before = match.string[: match.start()].rstrip()
        bound = next((name for name in AGAINST if before.endswith(f"<{name}>")), "")
        found.setdefault(Rate(often, base, bound), match[0])
        return " "

    for pattern in _RATES:
        marked = pattern.sub(take, marked)
    return found


def _rate(times: int, count: int, unit: str) -> tuple[Fraction, str]:
    if unit in DAYS:
        return Fraction(times, count * DAYS[unit]), "day"
    if unit in MONTHS:
        return Fraction(times, count * MONTHS[unit]), "month"
    return Fraction(times, count), unit


def _whole(value: str | None) -> int | None:
    """None for a fraction, and for what is no number of times."""
    return int(value) if value and value.isdigit() and int(value[:9]) > 0 and len(value) < 7 else None


def _unit_of(said: str) -> str:
    """The unit of time in a rate as it was said."""
    named = re.search(r"@(\S+)", said)
    adverb = re.search(r"~(\S+)", said)
    return named[1] if named else ADVERBS[adverb[1]][2] if adverb else ""

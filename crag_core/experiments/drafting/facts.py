"""Facts in an English sentence that can be asked for: numbers with what they count, money, dates, times, names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from crag_core.base.text.words import words
from crag_core.experiments.drafting.english import (
    ADVERBS,
    AUXILIARIES,
    CONDITIONS,
    CONJUNCTIONS,
    DETERMINERS,
    DISTRIBUTIVES,
    FIRST_PERSON,
    MONTHS,
    NEGATIVES,
    NUMBER_WORDS,
    PREPOSITIONS,
    RELATIVES,
    THIRD_PERSON,
    TIME_UNITS,
    TITLES,
    VERBS,
    WEEKDAYS,
    Form,
    is_participle,
    is_plural,
)


class Kind(StrEnum):
    COUNT = "count"
    MEASURE = "measure"
    MONEY = "money"
    PERCENT = "percent"
    DATE = "date"
    YEAR = "year"
    TIME = "time"
    DAY = "day"
    FREQUENCY = "frequency"
    LABEL = "label"
    NAME = "name"


@dataclass(frozen=True)
class Token:
    """A word, number or sign: `text[start:end]` of its sentence; the comma within a date belongs to its word."""

    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        return self.text.lower()

    @property
    def is_capital(self) -> bool:
        return self.text[0].isupper()

    @property
    def is_word(self) -> bool:
        return self.text[0].isalpha()


@dataclass(frozen=True)
class Fact:
    """Something that a sentence states, in numbers of its tokens.

    `start` to `end` is the answer, `first` to `last` what the question leaves out or asks with: the answer with "at
    least" before and "of paid leave" behind it. `noun` is what is counted. `is_range`: the answer begins with its own
    preposition, as in "from May to July".
    """

    kind: Kind
    start: int
    end: int
    first: int
    last: int
    noun: tuple[int, int] = (0, 0)
    is_range: bool = False


_NUMBER = r"\d+(?:[.,]\d+)*"
_UNITS = (
    "mm|cm|m|km|kg|g|mg|t|l|ml|h|min|s|kW|MW|GW|W|kWh|MWh|GWh|V|kV|A|mA|Hz|kHz|MHz|GHz|kB|MB|GB|TB|bar|mbar|Pa|kPa|MPa|"
    "hPa|psi|rpm|kn|mph|km/h|m/s|Nm|dB|lux|ha|m²|km²|m³|°C|°F"
)
_TOKEN = re.compile(
    rf"""(?:Mr|Mrs|Ms|Dr|Prof|Capt|Lt|St|Mt|No|approx|ca)\.(?=\s) | \b[ap]\.m\. | (?:[A-Z]\.){{2,}} | [A-Z]\.(?=\s[A-Z])
      | \d{{1,2}}:\d{{2}}(?!\w)
      | (?:{"|".join(sorted(WEEKDAYS))}),(?=\s\d{{1,2}}(?:st|nd|rd|th)?\s[A-Z]) | \d{{1,2}},(?=\s(?:1[1-9]|20)\d\d\b)
      | [£$€]?{_NUMBER}(?:[–-]{_NUMBER})?(?:st|nd|rd|th|p|am|pm|{_UNITS})?(?![^\W_]|[-–'’]\w|[.,/]\w)
      | \d[\d.,]*(?:-[^\W\d_]+)+
      | °[CF] | km/h | m/s
      | [^\W_]+(?:[-–'’./&][^\W_]+)*(?:(?<=s)['’](?=\s))?
      | \S""",
    re.VERBOSE,
)
_NUMERAL = re.compile(rf"{_NUMBER}(?:[–-]{_NUMBER})?")
_FUSED = re.compile(rf"{_NUMBER}(?:[–-]{_NUMBER})?(?:{_UNITS})")
_UNIT = re.compile(_UNITS)
_SUM = re.compile(rf"[£$€]{_NUMBER}(?:[–-]{_NUMBER})?|{_NUMBER}p")
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_HALF_DAY = re.compile(r"\d{1,2}(?:am|pm)")
_DAY_OF_MONTH = re.compile(r"(?:[12]\d|3[01]|[1-9])(?:st|nd|rd|th)?,?")
_YEAR = re.compile(r"1[1-9]\d\d|20\d\d")
_PERCENT_SIGNS = frozenset(["%", "percent"])
_CURRENCIES = frozenset(words("pounds pence euros dollars cents francs"))
_QUALIFIERS = tuple(
    tuple(qualifier.split())
    for qualifier in (
        "no more than", "no less than", "no fewer than", "no later than", "no longer than", "not more than",
        "a maximum of", "a minimum of", "a total of", "as many as", "more than", "less than", "fewer than",
        "later than", "longer than", "at least", "at most", "up to", "about", "approx.", "approximately", "around",
        "roughly", "some", "nearly", "almost", "only", "exactly", "just", "over", "under",
    )
)  # fmt: skip
_QUALIFYING = frozenset(word for qualifier in _QUALIFIERS for word in qualifier) | {"than", "to"}
_NUMBERED = frozenset(words("channel page room gate platform floor line chapter section form door window locker step"))
_LABELS = _NUMBERED | frozenset(words("type stage grade level class phase group category size model version number"))
_SEASONS = frozenset(words("spring summer autumn winter"))
_VAGUE = frozenset(
    words("things reasons ways kinds types sorts cases words parts points aspects factors examples others")
)
_UNIT_OF_TIME = frozenset(words("second minute hour day night week weekday month quarter year morning evening"))
_BEGINNINGS = NUMBER_WORDS | _NUMBERED | _SEASONS | frozenset(words("every once twice from between noon midnight"))
_STOPS = (
    DETERMINERS | DISTRIBUTIVES | PREPOSITIONS | CONJUNCTIONS | RELATIVES | CONDITIONS | AUXILIARIES | THIRD_PERSON
    | FIRST_PERSON | NEGATIVES | ADVERBS | {"has", "have", "had", "be"}
)  # fmt: skip
_LONGEST_NOUN = 4  # words


def tokens_of(sentence: str) -> tuple[Token, ...]:
    return tuple(Token(match.group(), match.start(), match.end()) for match in _TOKEN.finditer(sentence))


def facts_of(tokens: Sequence[Token]) -> list[Fact]:
    """Facts in order, none within another."""
    found: list[Fact] = []
    at = 0
    readers = (_frequency, _range, _date, _time, _sum, _share, _measure, _label, _year, _count, _name)
    while at < len(tokens):
        may_begin = tokens[at].text[0] in "0123456789£$€" or tokens[at].is_capital or tokens[at].lower in _BEGINNINGS
        fact = next((fact for read in readers if (fact := read(tokens, at))), None) if may_begin else None
        if fact:
            found.append(fact)
        at = fact.last if fact else at + 1
    return found


def _lower(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].lower if 0 <= at < len(tokens) else ""


def _matches(pattern: re.Pattern[str], tokens: Sequence[Token], at: int) -> bool:
    return 0 <= at < len(tokens) and pattern.fullmatch(tokens[at].text) is not None


def _qualified(tokens: Sequence[Token], at: int) -> int:
    """Where an expression begins with its "at least" or "about"."""
    for qualifier in _QUALIFIERS:
        start = at - len(qualifier)
        if start >= 0 and tuple(token.lower for token in tokens[start:at]) == qualifier:
            return _qualified(tokens, start)
    return at


def _numeral(tokens: Sequence[Token], at: int) -> int:
    """End of a number, or of a range of two; `at` where there is none."""
    end = at
    if _matches(_NUMERAL, tokens, end):
        end += 1
    while _lower(tokens, end) in NUMBER_WORDS:
        end += 1
    if end > at and _lower(tokens, end) in {"to", "or"}:
        return max(end, further) if (further := _numeral(tokens, end + 1)) > end + 1 else end
    return end


def _frequency(tokens: Sequence[Token], at: int) -> Fact | None:
    if _lower(tokens, at) == "every":
        end = _numeral(tokens, at + 1)
        is_span = end > at + 1 and _lower(tokens, end) in TIME_UNITS
        following = tokens[at + 1].text if at + 1 < len(tokens) else ""
        is_span = is_span or (end == at + 1 and (following.lower() in _UNIT_OF_TIME or following in WEEKDAYS))
        return Fact(Kind.FREQUENCY, at, end + 1, _qualified(tokens, at), end + 1) if is_span else None
    end = at + 1 if _lower(tokens, at) in {"once", "twice"} else _numeral(tokens, at) + 1
    is_often = end == at + 1 or _lower(tokens, end - 1) == "times"
    if is_often and _lower(tokens, end) in {"a", "an", "per", "every", "each"} and end + 1 < len(tokens):
        is_span = _lower(tokens, end + 1) in _UNIT_OF_TIME and _lower(tokens, at) != ""
        starts_well = _lower(tokens, at) in {"once", "twice"} or _numeral(tokens, at) > at
        return Fact(Kind.FREQUENCY, at, end + 2, _qualified(tokens, at), end + 2) if is_span and starts_well else None
    return None


def _range(tokens: Sequence[Token], at: int) -> Fact | None:
    """ "from 12 to 20 November", "between 08:00 and noon": one answer, with its preposition."""
    links = {"from": {"to", "until", "till"}, "between": {"and"}}.get(_lower(tokens, at))
    if not links:
        return None
    for read in (_date, _time, _calendar):
        begin = read(tokens, at + 1)
        end = begin.last if begin else at + 2 if _matches(_DAY_OF_MONTH, tokens, at + 1) else 0
        if end and _lower(tokens, end) in links and (second := read(tokens, end + 1)):
            return Fact(second.kind, at, second.last, at, second.last, is_range=True)
    return None


def _calendar(tokens: Sequence[Token], at: int) -> Fact | None:
    """A month, weekday or year alone: a fact only as the end of a range."""
    is_one = 0 <= at < len(tokens) and (tokens[at].text in MONTHS | WEEKDAYS or _matches(_YEAR, tokens, at))
    return Fact(Kind.DATE, at, at + 1, at, at + 1) if is_one else None


def _date(tokens: Sequence[Token], at: int) -> Fact | None:
    end = at
    if end < len(tokens) and tokens[end].text.rstrip(",") in WEEKDAYS:
        end += 1
    texts = [token.text.rstrip(",") for token in tokens[end : end + 2]] + ["", ""]
    if texts[0] in _SEASONS and (year := end + 2 if texts[1] == "of" else end + 1) and _matches(_YEAR, tokens, year):
        return Fact(Kind.DATE, at, year + 1, at - 1 if _lower(tokens, at - 1) == "the" else at, year + 1)
    is_day_first = _matches(_DAY_OF_MONTH, tokens, end) and texts[1] in MONTHS
    if is_day_first or (texts[0] in MONTHS and _matches(_DAY_OF_MONTH, tokens, end + 1)):
        end += 2
    elif texts[0] in MONTHS and _matches(_YEAR, tokens, end + 1):
        return Fact(Kind.DATE, at, end + 2, _qualified(tokens, at), end + 2)
    else:
        return None
    if _matches(_YEAR, tokens, end):
        end += 1
    return Fact(Kind.DATE, at, end, _qualified(tokens, at), end)


def _time(tokens: Sequence[Token], at: int) -> Fact | None:
    halves = {"am", "pm", "a.m.", "p.m."}
    if _matches(_CLOCK, tokens, at):
        end = at + 2 if _lower(tokens, at + 1) in halves else at + 1
    elif _matches(_HALF_DAY, tokens, at) or _lower(tokens, at) in {"noon", "midnight"}:
        end = at + 1
    elif _matches(_NUMERAL, tokens, at) and _lower(tokens, at + 1) in halves:
        end = at + 2
    else:
        return None
    return Fact(Kind.TIME, at, end, _qualified(tokens, at), end)


def _sum(tokens: Sequence[Token], at: int) -> Fact | None:
    if _matches(_SUM, tokens, at):
        end = at + 1
        while _lower(tokens, end) in {"thousand", "million", "billion"}:
            end += 1
    else:
        end = _numeral(tokens, at) + 1
        if end == at + 1 or _lower(tokens, end - 1) not in _CURRENCIES:
            return None
    return Fact(Kind.MONEY, at, end, _qualified(tokens, at), end)


def _share(tokens: Sequence[Token], at: int) -> Fact | None:
    end = _numeral(tokens, at)
    if end == at:
        return None
    if _lower(tokens, end) == "per" and _lower(tokens, end + 1) == "cent":
        end += 2
    elif _lower(tokens, end) in _PERCENT_SIGNS:
        end += 1
    else:
        return None
    return Fact(Kind.PERCENT, at, end, _qualified(tokens, at), _with_of(tokens, end))


def _measure(tokens: Sequence[Token], at: int) -> Fact | None:
    if _matches(_FUSED, tokens, at):
        return Fact(Kind.MEASURE, at, at + 1, _qualified(tokens, at), _with_of(tokens, at + 1), (at, at + 1))
    end = _numeral(tokens, at)
    if end == at or not _matches(_UNIT, tokens, end):
        return None
    return Fact(Kind.MEASURE, at, end + 1, _qualified(tokens, at), _with_of(tokens, end + 1), (end, end + 1))


def _label(tokens: Sequence[Token], at: int) -> Fact | None:
    is_label = _lower(tokens, at) in _NUMBERED and _matches(_NUMERAL, tokens, at + 1)
    return Fact(Kind.LABEL, at, at + 2, at, at + 2, (at, at + 1)) if is_label else None


def _year(tokens: Sequence[Token], at: int) -> Fact | None:
    places = {"in", "since", "until", "till", "by", "before", "after", "from", "of", "for", "during"}
    is_year = _matches(_YEAR, tokens, at) and _lower(tokens, at - 1) in places
    return Fact(Kind.YEAR, at, at + 1, at, at + 1) if is_year and not _noun_end(tokens, at + 1) else None


def _count(tokens: Sequence[Token], at: int) -> Fact | None:
    begin = _numeral(tokens, at)
    head = _noun_end(tokens, begin) if begin > at else 0
    if not head or tokens[head - 1].lower in _VAGUE or _is_labelled(tokens, at):
        return None
    last = _with_of(tokens, head)
    return Fact(Kind.COUNT, at, head, _qualified(tokens, at), last, (begin, last))


def _is_labelled(tokens: Sequence[Token], at: int) -> bool:
    """Whether a number belongs to the noun before it, as in "type 2"."""
    word = _lower(tokens, at - 1)
    is_verb = word in VERBS or is_participle(word) or word.endswith("ly")
    return word in _LABELS or (word[:1].isalpha() and word not in _STOPS | _QUALIFYING and not is_verb)


def _noun_end(tokens: Sequence[Token], at: int) -> int:
    """End of "paid days" or "members" at `at`; 0 where no plural follows."""
    for end in range(at, min(at + _LONGEST_NOUN, len(tokens))):
        token = tokens[end]
        if not token.is_word or token.is_capital or token.lower in _STOPS:
            return 0
        if is_plural(token.lower):
            following = _lower(tokens, end + 1)
            return end + 2 if is_plural(following) and following not in _STOPS | VERBS.keys() else end + 1
        if Form.PAST in VERBS.get(token.lower, {}) and not is_participle(token.lower):
            return 0
    return 0


def _with_of(tokens: Sequence[Token], at: int) -> int:
    """End of "of paid leave" at `at`, a phrase that belongs to the noun before it; `at` without one."""
    if _lower(tokens, at) != "of":
        return at
    end = at + 1
    while end < len(tokens) and end - at <= _LONGEST_NOUN + 1:
        token = tokens[end]
        is_first = end == at + 1
        if is_first and token.lower in {"the", "a", "an", "our", "all", "every", "each"}:
            end += 1
            continue
        if token.lower in {"the", "a", "an", "our", "your"} and tokens[end - 1].lower.endswith("ing"):
            end += 1
            continue
        follows_plural = is_plural(tokens[end - 1].lower)
        is_verb = token.lower in VERBS and end > at + 1 and (follows_plural or Form.BASE not in VERBS[token.lower])
        if not token.is_word or token.lower in _STOPS or is_verb:
            break
        end += 1
    return end if end > at + 1 and tokens[end - 1].is_word and tokens[end - 1].lower not in _STOPS else at


def _name(tokens: Sequence[Token], at: int) -> Fact | None:
    """Capitalised words within the sentence; at its beginning only after a title."""
    end = at
    while end < len(tokens) and tokens[end].is_capital and (tokens[end].text in TITLES or len(tokens[end].text) > 1):
        end += 1
    named = [token.text for token in tokens[at:end]]
    if not named or (at == 0 and (len(named) < 2 or named[0] not in TITLES)) or set(named) & (MONTHS | WEEKDAYS):
        if at > 0 and len(named) == 1 and named[0] in WEEKDAYS and _lower(tokens, at - 1) == "on":
            return Fact(Kind.DAY, at, at + 1, at, at + 1)
        return None
    if any(not token.is_word or token.text.isupper() for token in tokens[at:end]) or named[-1] in TITLES:
        return None
    if _lower(tokens, end) in {"of", "and", "&", "or"} or named[-1].endswith(("'s", "’s", "s'")):
        return None  # a part of a longer name, or of a list
    first = at - 1 if _lower(tokens, at - 1) == "the" else at
    return Fact(Kind.NAME, at, end, first, end)

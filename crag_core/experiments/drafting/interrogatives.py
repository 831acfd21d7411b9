"""The words that stand for a fact in a question: when, where, how many …"""

from __future__ import annotations

import re

from crag_core.base.text.words import words
from crag_core.experiments.drafting.asking import Asking
from crag_core.experiments.drafting.english import TIME_UNITS, TITLES
from crag_core.experiments.drafting.facts import Fact, Kind

_NO_PLACES = frozenset(
    words(
        """act agreement association award awards bible championship championships code company constitution council cup
        division law league report series service treaty war arabic chinese dutch english french german greek italian
        japanese latin portuguese russian spanish"""
    )
)
_TEMPERATURES = frozenset(["°C", "°F"])
SPANS = TIME_UNITS | frozenset(
    words(
        """metres meters kilometres kilometers miles feet inches yards litres liters tonnes kilograms knots degrees"""
    )
)
_WHEN = {
    Kind.DATE: {"on": "when", "in": "when", "before": "before what date", "after": "after what date"},
    Kind.YEAR: {"in": "in which year", "before": "before which year", "after": "after which year"},
    Kind.TIME: {word: f"{word} what time" for word in ("at", "by", "until", "from", "before", "after", "since")},
}
_SHARED = {"by": "by when", "until": "until when", "till": "until when", "since": "since when", "from": "from when"}
_FOR_SUMS = {"": "how much", "for": "for how much", "at": "at what price", "by": "by how much", "to": "to how much"}
_BEFORE_SHARES = frozenset(["", "by", "to", "below", "above", "at"])
_BEFORE_NUMBERS = frozenset(words("after within for in at on by below above until"))
_BEFORE_SIZES = _BEFORE_NUMBERS | {"to", "from", "over", "under"}


def asked_with(asking: Asking, fact: Fact, place: str) -> str:
    """The words that stand for the fact and the preposition before it; "" where there are none that sound natural."""
    if fact.is_range or fact.kind is Kind.FREQUENCY:
        return "" if place else "how often" if fact.kind is Kind.FREQUENCY else "when"
    if fact.kind in _WHEN:
        return _WHEN[fact.kind].get(place, _SHARED.get(place, ""))
    if fact.kind is Kind.MONEY:
        return _FOR_SUMS.get(place, "")
    if fact.kind is Kind.PERCENT:
        asked = f"{place} what percentage {asking.span(fact.end, fact.last)}".strip()
        return asked if place in _BEFORE_SHARES else ""
    if fact.kind is Kind.DAY:
        return "on which day of the week" if place == "on" else ""
    if fact.kind is Kind.LABEL:
        return f"{place} which {asking.span(*fact.noun)}" if place in {"on", "in", "at"} else ""
    if fact.kind is Kind.NAME:
        return _for_name(asking, fact, place)
    is_size = fact.kind is Kind.MEASURE or asking.tokens[fact.end - 1].lower in SPANS
    is_known = not place or place in (_BEFORE_SIZES if is_size else _BEFORE_NUMBERS)
    return f"{place} {how_many(asking, fact)}".strip() if is_known else ""


def how_many(asking: Asking, fact: Fact) -> str:
    noun = asking.span(*fact.noun)
    if fact.kind is Kind.MEASURE:
        unit = re.sub(r"^[\d.,–-]+", "", noun)
        rest = asking.span(fact.end, fact.last)
        return "what temperature" if unit in _TEMPERATURES else f"how many {unit} {rest}".strip()
    return f"how many {noun}"


def _for_name(asking: Asking, fact: Fact, place: str) -> str:
    if place in {"at", "in", "near"}:
        return "" if asking.tokens[fact.end - 1].lower in _NO_PLACES else "where"
    is_person = asking.tokens[fact.start].text in TITLES or fact.end - fact.start > 1
    return "by whom" if place == "by" and is_person and fact.first == fact.start else ""

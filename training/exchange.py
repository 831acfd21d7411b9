"""Questions and passages in which one thing is exchanged for another of its kind, in both directions.

Of a question and a passage that answers it come four pairs: each of the two as it is or changed. Those in which both
agree are answered, those in which they do not are not, so that neither text alone tells the label. Where another
sentence of the passage names the other thing, the two change places: every word is then there in all four pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

KINDS = """monday/tuesday/wednesday/thursday/friday/saturday/sunday
january/february/march/april/june/july/august/september/october/november/december
spring/summer/autumn/winter
daily/weekly/monthly/quarterly/yearly
hour/day/week/month/year
hours/days/weeks/months/years
first/second/third/fourth/fifth
two/three/four/five/six/seven/eight/nine/ten
before/after
minimum/maximum
highest/lowest
largest/smallest
oldest/newest
earliest/latest
first/last
north/south/east/west
northern/southern/eastern/western
morning/afternoon/evening
red/blue/green/yellow/black/white
adults/children/students/pensioners
adult/child/student/pensioner
men/women
man/woman
male/female
father/mother/brother/sister/son/daughter
husband/wife
king/queen/prince/princess
manager/assistant/director/secretary/treasurer
president/minister/governor/mayor/senator
teacher/student/pupil/parent
doctor/nurse/patient
customer/supplier/seller/buyer
landlord/tenant
employer/employee
author/editor/publisher
producer/director/actor
singer/drummer/guitarist
owner/driver/passenger
members/visitors/guests
buy/sell
arrive/leave
open/close
opened/closed
win/lose
won/lost
born/buried
increase/decrease
increased/decreased
allowed/forbidden
public/private
indoor/outdoor
upper/lower
front/back
left/right
inside/outside
hot/cold
import/export
internal/external
domestic/international
annual/monthly
online/offline
email/post/telephone
breakfast/lunch/dinner
city/county/state/country
village/town/city
army/navy
album/song/film/book/novel
movie/book/album
school/university/college
gold/silver/bronze
cost/weight/height/length/width
height/width/depth
red/amber/green
england/scotland/ireland/wales
french/german/english/spanish/italian
france/germany/england/spain/italy
"""
"""Words of one kind in a line, that exclude each other: a text that says one of them does not say another."""
_KIND_OF = {word: line.split("/") for line in KINDS.split() for word in line.split("/")}
_YEAR = re.compile(r"\b(?:1[0-9]{3}|20[0-2][0-9])\b")
_NUMBER = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b")
_NAME = re.compile(r"\b[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*")
_TOKEN = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True)
class Exchange:
    """`question` and `passage` with the one thing in place of the other, and whether the passage names both anyway."""

    question: str
    passage: str
    evidence: str
    both_named: bool


def exchange(question: str, passage: str, evidence: str, names: Sequence[str], random: Random) -> Exchange | None:
    """None where the two have nothing in common that can be exchanged. `evidence` is a part of `passage`."""
    found = list(_choices(question, passage, evidence, names, random))
    if not found:
        return None
    one, other = random.choice([pair for pair in found if _names(passage, pair[1])] or found)
    if one.lower() in other.lower() or other.lower() in one.lower():
        return None
    at = passage.find(evidence)
    before, after = passage[:at], passage[at + len(evidence) :]
    changed = _replace(evidence, one, other)
    both_named = _names(before + after, other)
    if both_named:
        before, after = (_swap(part, one, other) for part in (before, after))
    else:
        before, after = (_replace(part, one, other) for part in (before, after))
    return Exchange(_replace(question, one, other), before + changed + after, changed, both_named)


def _choices(
    question: str, passage: str, evidence: str, names: Sequence[str], random: Random
) -> Iterator[tuple[str, str]]:
    """Pairs of a thing in both question and evidence, and another of its kind that is in neither."""
    said = evidence + " " + question
    for word in _TOKEN.findall(question):
        kind = _KIND_OF.get(word.lower())
        if kind and _names(evidence, word.lower()):
            others = [other for other in kind if other != word.lower() and not _names(said, other)]
            if others:
                yield word.lower(), _near_first(others, passage, random)
    for pattern in (_YEAR, _NUMBER):
        for match in pattern.finditer(question):
            if _names(evidence, match.group()):
                near = [m.group() for m in pattern.finditer(passage) if not _names(said, m.group())]
                made = str(int(match.group()) + random.choice((-9, -4, -2, -1, 1, 2, 3, 7))) if pattern is _YEAR else ""
                if near or made:
                    yield match.group(), random.choice(near) if near else made
    for match in _NAME.finditer(question):
        if match.start() > 0 and match.group() in evidence:
            near = [m.group() for m in _NAME.finditer(passage) if m.start() > 0 and _is_like(m.group(), match.group())]
            near = [name for name in near if not _names(said, name) and passage[passage.find(name) - 2] not in ".!?\n"]
            other = random.choice(near) if near else random.choice(names) if names else ""
            if other and not _names(said, other):
                yield match.group(), other


def _near_first(others: Sequence[str], passage: str, random: Random) -> str:
    near = [other for other in others if _names(passage, other)]
    return random.choice(near or others)


def _is_like(name: str, other: str) -> bool:
    return len(name) > 3 and abs(len(name.split()) - len(other.split())) <= 1


def _names(text: str, thing: str) -> bool:
    return bool(re.search(_bounded(thing), text, re.IGNORECASE))


def _bounded(thing: str) -> str:
    return rf"(?<!\w){re.escape(thing)}(?!\w)"


def _replace(text: str, one: str, other: str) -> str:
    return re.sub(_bounded(one), lambda match: _cased(other, match.group()), text, flags=re.IGNORECASE)


def _swap(text: str, one: str, other: str) -> str:
    """Each in the other's place."""
    either = re.compile(f"{_bounded(one)}|{_bounded(other)}", re.IGNORECASE)
    return either.sub(
        lambda match: _cased(one if match.group().lower() == other.lower() else other, match.group()), text
    )


def _cased(word: str, like: str) -> str:
    return word[0].upper() + word[1:] if like[0].isupper() else word

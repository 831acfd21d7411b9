"""Texts made from texts: an answer taken away, a question changed or made up.

Every function takes the random numbers that it uses, so that the same seed makes the same texts; None where a text
does not lend itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from crag_core.base.text.words import words

_YEAR = re.compile(r"\b(?:1[0-9]{3}|20[0-2][0-9])\b")
_NUMBER = re.compile(r"\b(?:\d[\d,.]*\d|\d|two|three|four|five|six|seven|eight|nine|ten|twenty|hundred|thousand)\b")
_NAME = re.compile(r"\b[A-Z][\w'’-]+(?:(?: of| the| de| and| for)? [A-Z][\w'’-]+)*")
_THING = re.compile(r"(?<=\bthe )[a-z][a-z-]+(?: [a-z][a-z-]+)?\b|(?<=\ba )[a-z][a-z-]+(?: [a-z][a-z-]+)?\b")
_CLAUSE_END = re.compile(r"[,;:()–—]| - ")
_PREPOSITION = re.compile(r"\b(in|on|at|by|of|to|from|for|with|near|since|during|until)\s+(?:the\s+)?$", re.IGNORECASE)

_ASKING = frozenset(
    words("what which who whom whose where when why how is are was were do does did can could name list according in")
)
_FILLERS = frozenset(words("a an the of in on at to by for with and or as from that which it its his her their"))

_PAIRED = words(
    """first last largest smallest biggest smallest highest lowest most least more less before after north south
    east west northern southern eastern western increase decrease increased decreased oldest youngest early late
    earliest latest best worst longest shortest won lost win lose began ended begin end start finish above below
    inside outside major minor maximum minimum public private older younger male female men women born buried
    cause prevent causes prevents caused prevented high low higher lower greater smaller greatest smallest strong weak
    rich poor allowed forbidden accepted rejected common rare founded closed joined left gained lost buy sell
    bought sold true false positive negative same different many few always never all none internal external
    upper lower minimum maximum important unimportant possible impossible legal illegal known unknown"""
)
_OPPOSITES: Mapping[str, str] = {
    word: other
    for one, two in zip(_PAIRED[::2], _PAIRED[1::2], strict=True)
    for word, other in ((one, two), (two, one))
}


@dataclass(frozen=True)
class Made:
    """A question made from one sentence of a passage; `answer` is the span of the passage that it asks for."""

    question: str
    sentence: int
    answer: tuple[int, int]


def stems(text: str) -> set[str]:
    """The words of `text` that mean something, cut to six letters so that endings do not matter."""
    return {word[:6] for word in words(text) if word not in _FILLERS and word not in _ASKING}


def without(passage: str, spans: Sequence[tuple[int, int]]) -> str:
    """`passage` without these spans."""
    kept, at = [], 0
    for start, end in sorted(spans):
        kept.append(passage[at:start])
        at = end
    return re.sub(r"\s+", " ", "".join([*kept, passage[at:]])).strip()


def perturb(question: str, passage: str, names: Sequence[str], random: Random) -> str | None:
    """`question` asking for something else: another name, year or number, an opposite, a negation."""
    changes = [change for change in (_other_name, _other_number, _opposite, _negated) if random.random() < 0.9]
    for change in changes:
        changed = change(question, passage, names, random)
        if changed and changed != question:
            return changed
    return None


def _other_name(question: str, passage: str, names: Sequence[str], random: Random) -> str | None:
    found = [m for m in _NAME.finditer(question) if m.start() > 0 and m.group().lower() not in _ASKING]
    near = sorted({m.group() for m in _NAME.finditer(passage) if len(m.group()) > 3 and m.group() not in question})
    pool = near if near and random.random() < 0.6 else names
    if not found or not pool:
        return None
    chosen, other = random.choice(found), random.choice(pool)
    return question[: chosen.start()] + other + question[chosen.end() :]


def _other_number(question: str, passage: str, names: Sequence[str], random: Random) -> str | None:
    years, numbers = list(_YEAR.finditer(question)), list(_NUMBER.finditer(question))
    if years:
        chosen = random.choice(years)
        near = [m.group() for m in _YEAR.finditer(passage) if m.group() != chosen.group()]
        other = (
            random.choice(near)
            if near and random.random() < 0.5
            else str(int(chosen.group()) + random.choice((-40, -11, -3, 2, 7, 25)))
        )
    elif numbers:
        chosen = random.choice(numbers)
        near = [m.group() for m in _NUMBER.finditer(passage) if m.group() != chosen.group()]
        other = random.choice(near) if near and random.random() < 0.5 else str(random.randint(2, 90))
    else:
        return None
    return question[: chosen.start()] + other + question[chosen.end() :]


def _opposite(question: str, passage: str, names: Sequence[str], random: Random) -> str | None:
    found = [m for m in re.finditer(r"[A-Za-z]+", question) if m.group().lower() in _OPPOSITES]
    if not found:
        return None
    chosen = random.choice(found)
    return question[: chosen.start()] + _OPPOSITES[chosen.group().lower()] + question[chosen.end() :]


def _negated(question: str, passage: str, names: Sequence[str], random: Random) -> str | None:
    found = re.search(r"\b(is|are|was|were|did|does|do|can|has|have|had|could|would|will)\b", question)
    if not found or random.random() < 0.6:
        return None
    word = random.choice(("not", "never", "no longer"))
    return f"{question[: found.end()]} {word}{question[found.end() :]}"


def make_question(passage: str, spans: Sequence[tuple[int, int]], random: Random) -> Made | None:
    """A question whose answer is a year, number, name or thing of one sentence, worded with the rest of its clause."""
    for number in random.sample(range(len(spans)), min(len(spans), 3)):
        start, end = spans[number]
        text = passage[start:end]
        if not 6 <= len(text.split()) <= 60:
            continue
        found = _answers(text)
        if found:
            kind, (a, b) = random.choice(found)
            question = _ask(text, kind, a, b, random)
            if question:
                return Made(question, number, (start + a, start + b))
    return None


def _answers(text: str) -> list[tuple[str, tuple[int, int]]]:
    years = [m.span() for m in _YEAR.finditer(text)]
    numbers = [m.span() for m in _NUMBER.finditer(text) if m.span() not in years]
    names = [m.span() for m in _NAME.finditer(text) if m.start() > 0 or " " in m.group()]
    things = [m.span() for m in _THING.finditer(text)]
    kinds = (("year", years), ("number", numbers), ("name", names), ("thing", things))
    return [(kind, span) for kind, spans in kinds for span in spans]


def _ask(text: str, kind: str, a: int, b: int, random: Random) -> str | None:
    cuts = [0, *(m.end() for m in _CLAUSE_END.finditer(text)), len(text)]
    left = max((cut for cut in cuts if cut <= a), default=0)
    right = min((cut for cut in cuts if cut >= b), default=len(text))
    while len(text[left:right].split()) < 8 and (left > 0 or right < len(text)):
        left = max((cut for cut in cuts if cut < left), default=0)
        right = min((cut for cut in cuts if cut > right), default=len(text))
    before, after = text[left:a].strip(" ,;:()"), text[b:right].strip(" ,;:().")
    place = _PREPOSITION.search(before + " ")
    asks = {
        "year": ("what year", "which year", "when"),
        "number": ("how many", "what number", "how much"),
        "name": ("who", "what", "which"),
        "thing": ("what", "which", "what kind"),
    }[kind]
    ask = random.choice(asks)
    if kind == "name" and place and place.group(1).lower() in ("in", "at", "near", "from"):
        ask = "where"
    if random.random() < 0.35:
        worded = f"{before} {ask} {after}"
    else:
        if ask in ("when", "where") and place:
            before = before[: place.start()]
        worded = f"{ask} {before} {after}" if before or random.random() < 0.5 else f"{ask} {after}"
    kept = [word for word in worded.split() if word.lower() not in _FILLERS or random.random() < 0.75]
    if not 5 <= len(kept) <= 28:
        return None
    question = " ".join(kept)
    question = question.lower() if random.random() < 0.4 else question[0].upper() + question[1:]
    return question + "?" if random.random() < 0.7 else question


def names_of(passages: Sequence[str]) -> list[str]:
    """Names that stand within a sentence, in order of first sight."""
    found = {
        m.group(): None
        for passage in passages
        for m in _NAME.finditer(passage)
        if len(m.group()) > 4 and m.start() > 2 and passage[m.start() - 2] not in ".!?"
    }
    return list(found)

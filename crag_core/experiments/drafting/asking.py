"""A sentence that a question is to be made from, and the parts of it that a question needs."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property

from crag_core.base.text.words import words
from crag_core.experiments.drafting.english import (
    ADVERBS,
    CONDITIONS,
    CONJUNCTIONS,
    DETERMINERS,
    DISTRIBUTIVES,
    NEGATIVES,
    PREPOSITIONS,
    RELATIVES,
    THIRD_PERSON,
    TITLES,
    is_plural,
)
from crag_core.experiments.drafting.facts import Fact, Kind, Token, facts_of

_LEADING = frozenset(words("""in on at during for from under after before since until between within by throughout"""))
_PHRASES = frozenset(words("""general example instance addition fact particular contrast practice theory turn short"""))
_LEAD, _CONDITION = 8, 14
"""Tokens before the subject, of "In winter," and of "If you leave early,"."""
_UNITS_OF_RATE = frozenset(
    words(
        """second minute hour day night week weekday month quarter year person head passenger piece mile kilometre
        litre tonne kilogram item page ticket share metre member unit"""
    )
)
ANAPHORS = (THIRD_PERSON - DISTRIBUTIVES - {"such", "one"}) | {"i", "me", "my", "mine", "ours", "yours"}
_MAY_FOLLOW = (
    PREPOSITIONS
    | CONDITIONS
    | {"a", "an", "each", "every", "to", "only", "overnight", "daily", "annually", "last", "next"}
)


@dataclass(frozen=True)
class Casing:
    """How words are written within the sentences of a collection: a question need not guess whether one is a name."""

    small: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


UNKNOWN = Casing()


@dataclass(frozen=True)
class Asking:
    """A sentence and its tokens."""

    text: str
    tokens: tuple[Token, ...]
    casing: Casing

    @cached_property
    def facts(self) -> list[Fact]:
        return facts_of(self.tokens)

    @cached_property
    def lead(self) -> tuple[int, str]:
        """(start of the subject, the words before it), as in "In winter, the ferry ..." and "In 2024 the ferry ..."."""
        tokens = self.tokens
        if tokens[0].lower not in _LEADING | CONDITIONS or self.has(1, 2, _PHRASES):
            return 0, ""
        longest = min(_LEAD if tokens[0].lower in PREPOSITIONS else _CONDITION, len(tokens) - 1)
        end = next((at for at in range(2, longest) if tokens[at].text == ","), 0)
        start = end + 1
        if not end:
            begins = DETERMINERS | {"there"}
            dated = [fact.last for fact in self.facts if fact.kind in {Kind.DATE, Kind.YEAR} and fact.last < longest]
            end = start = next((at for at in dated if tokens[at].lower in begins or tokens[at].is_capital), 0)
        if not end or self.has(0, end, ANAPHORS | NEGATIVES | RELATIVES):
            return 0, ""
        return start, self.opening(0, end)

    def span(self, start: int, end: int) -> str:
        return self.text[self.tokens[start].start : self.tokens[end - 1].end] if start < end else ""

    def answer(self, fact: Fact) -> str:
        return self.span(fact.start, fact.end)

    def has(self, start: int, end: int, words: Container[str]) -> bool:
        return any(token.lower in words for token in self.tokens[start:end])

    def opening(self, start: int, end: int) -> str:
        """A phrase as it is written within a sentence, though the sentence begin with it."""
        phrase = self.span(start, end)
        return phrase[0].lower() + phrase[1:] if start == 0 < end and self._begins_small(end) else phrase

    def _begins_small(self, end: int) -> bool:
        token, following = self.tokens[0], self.tokens[1] if end > 1 else None
        word = token.lower
        if word in DETERMINERS | DISTRIBUTIVES | PREPOSITIONS | CONDITIONS | ADVERBS:
            return True
        if token.text in TITLES or not re.fullmatch(r"[A-Z](?:[a-z]*-)*[a-z]*", token.text) or len(word) < 2:
            return False
        is_alone = following is None and not is_plural(word)
        if word in self.casing.names and (is_alone or word not in self.casing.small or self.has(1, 2, {"of"})):
            return False
        if following and following.is_capital:
            return False
        return word in self.casing.small or is_plural(word) or (following is not None and following.is_word)

    def tail(self, start: int, end: int) -> str | None:
        """What follows the fact, left out where it points elsewhere; None where the fact is but a part of a phrase."""
        if start >= end or self.tokens[start].lower in CONJUNCTIONS:
            return ""
        first, second = self.tokens[start].lower, self.tokens[min(start + 1, end - 1)].lower
        if (
            first == "of"
            or first not in _MAY_FOLLOW
            or (first in {"a", "an", "last", "next"} and second not in _UNITS_OF_RATE)
        ):
            return None
        is_whole = end == len(self.tokens) or self.tokens[end].text == ";"
        cutting = ANAPHORS | NEGATIVES | RELATIVES | (frozenset() if is_whole else CONDITIONS)
        stop = next((at for at in range(start, end) if self.tokens[at].lower in cutting), end)
        if stop < end and self.tokens[stop].lower not in CONDITIONS:
            stop = next((at for at in range(stop - 1, start, -1) if self.tokens[at].lower in PREPOSITIONS), start)
        while stop > start and self.tokens[stop - 1].lower in PREPOSITIONS | DETERMINERS | CONJUNCTIONS | CONDITIONS:
            stop -= 1
        return self.span(start, stop)

"""A plain English sentence that states a fact, turned into the question which that fact answers. No model: by rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from crag_core.base.text.words import words
from crag_core.experiments.drafting.asking import UNKNOWN, Asking, Casing
from crag_core.experiments.drafting.english import (
    CONJUNCTIONS,
    DETERMINERS,
    DISTRIBUTIVES,
    FIRST_PERSON,
    OPENERS,
    RELATIVES,
    THIRD_PERSON,
)
from crag_core.experiments.drafting.facts import Kind, tokens_of
from crag_core.experiments.drafting.forms import FORMS

SHORTEST, LONGEST = 5, 26
"""Words of a question."""
_SENTENCE = re.compile(r"[A-Z0-9£$€].*[^.…]\.[\"”’)]?", re.DOTALL)
_ODD = re.compile(r"[|*<>{}=\\™©?!]|https?:|\.\.|\b[A-Z]{2,} [A-Z]{2,}\b")
_ODD_IN_QUESTION = re.compile(r"[`_@#\[\]\"“”:;]|\w/\w*/")
_SENTENCE_WORDS = range(4, 45)
_OPEN = frozenset(words("of with than known such including called based defined well new old other main"))


@dataclass(frozen=True)
class Asked:
    """`answer` stands in the sentence, white space aside, and answers `question`."""

    question: str
    answer: str


_PREFERENCE = {kind: place for place, kind in enumerate(Kind)}


def ask(sentence: str, casing: Casing = UNKNOWN) -> Asked | None:
    """A question that `sentence` answers; None where it states no fact, or its grammar is not certain."""
    text = " ".join(sentence.split())
    if not _SENTENCE.fullmatch(text) or _ODD.search(text) or len(text.split()) not in _SENTENCE_WORDS:
        return None
    tokens = tokens_of(re.sub(r"(?<![A-Z])\.?[\"”’)]?\Z", "", text))
    if tokens[0].lower in OPENERS | FIRST_PERSON | RELATIVES | (THIRD_PERSON - DISTRIBUTIVES - {"there"}):
        return None
    asking = Asking(text, tokens, casing)
    for fact in sorted(asking.facts, key=lambda fact: _PREFERENCE[fact.kind]):
        for form in FORMS:
            question = form(asking, fact)
            if question and _is_sound(question, asking.answer(fact)):
                return Asked(question, asking.answer(fact))
    return None


def _is_sound(question: str, answer: str) -> bool:
    said = question.rstrip("?").split()
    number = re.match(r"\D*(\d[\d.,]*)", answer)
    repeats_number = number and re.search(rf"(?<![\d.,]){re.escape(number.group(1))}(?!\d)", question)
    is_doubled = any(one.lower() == two.lower() for one, two in pairwise(said))
    is_open = said[-1].lower() in DETERMINERS | CONJUNCTIONS | _OPEN
    return (
        SHORTEST <= len(said) <= LONGEST
        and answer.casefold() not in question.casefold()
        and not (repeats_number or is_doubled or is_open)
        and question.count("(") == question.count(")")
        and not _ODD_IN_QUESTION.search(question)
    )

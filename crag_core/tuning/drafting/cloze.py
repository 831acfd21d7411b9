"""A plain English sentence that states a fact, turned into the question which that fact answers. No model: by rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from crag_core.tuning.drafting.clauses import Verb, clause_end, find_verb, head_of, is_finite, is_imperative
from crag_core.tuning.drafting.english import (
    ADVERBS,
    CONDITIONS,
    CONJUNCTIONS,
    DETERMINERS,
    DISTRIBUTIVES,
    FIRST_PERSON,
    NEGATIVES,
    OPENERS,
    PREPOSITIONS,
    RELATIVES,
    ROLES,
    THIRD_PERSON,
    TIME_UNITS,
    TITLES,
    VERBS,
    is_participle,
    is_plural,
)
from crag_core.tuning.drafting.facts import Fact, Kind, Token, facts_of, tokens_of
from crag_core.words import words

SHORTEST, LONGEST = 5, 26
"""Words of a question."""

_SENTENCE = re.compile(r"[A-Z0-9£$€].*[^.…]\.[\"”’)]?", re.DOTALL)
_ODD = re.compile(r"[|*<>{}=\\™©?!]|https?:|\.\.|\b[A-Z]{2,} [A-Z]{2,}\b")
_ODD_IN_QUESTION = re.compile(r"[`_@#\[\]\"“”:;]|\w/\w*/")
_SENTENCE_WORDS = range(4, 45)

_LEADING = frozenset(words("""in on at during for from under after before since until between within by throughout"""))
_PHRASES = frozenset(words("""general example instance addition fact particular contrast practice theory turn short"""))
_NO_PLACES = frozenset(
    words(
        """act agreement association award awards bible championship championships code company constitution council cup
        division law league report series service treaty war arabic chinese dutch english french german greek italian
        japanese latin portuguese russian spanish"""
    )
)
_LEAD, _CONDITION = 8, 14
"""Tokens before the subject, of "In winter," and of "If you leave early,"."""

_TEMPERATURES = frozenset(["°C", "°F"])
_EXTENTS = frozenset(words("long wide high tall deep thick old away apart"))
_SPANS = TIME_UNITS | frozenset(
    words(
        """metres meters kilometres kilometers miles feet inches yards litres liters tonnes kilograms knots degrees"""
    )
)
_SUMS = frozenset(
    words(
        """cost costs price budget limit total maximum minimum value amount income profit surplus loss turnover
        revenue salary worth sum"""
    )
)
_SPAN_NOUNS = frozenset(words("time times period periods hours days years season interval"))
_UNITS_OF_RATE = frozenset(
    words(
        """second minute hour day night week weekday month quarter year person head passenger piece mile kilometre
        litre tonne kilogram item page ticket share metre member unit"""
    )
)
_ANAPHORS = (THIRD_PERSON - DISTRIBUTIVES - {"such", "one"}) | {"i", "me", "my", "mine", "ours", "yours"}
_MAY_FOLLOW = (
    PREPOSITIONS
    | CONDITIONS
    | {"a", "an", "each", "every", "to", "only", "overnight", "daily", "annually", "last", "next"}
)
_BEING = frozenset(words("is are was were"))
_GIVING = frozenset(words("allow award cost give grant lend offer pay send show"))
_SAYS_LITTLE = frozenset(words("follow remain become seem appear come go begin start"))

_OPEN = frozenset(words("of with than known such including called based defined well new old other main"))
_AMONG = frozenset(words("last next first past final previous"))

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


@dataclass(frozen=True)
class Asked:
    """`answer` stands in the sentence, white space aside, and answers `question`."""

    question: str
    answer: str


@dataclass(frozen=True)
class Casing:
    """How words are written within the sentences of a collection: a question need not guess whether one is a name."""

    small: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


_PREFERENCE = {kind: place for place, kind in enumerate(Kind)}


def ask(sentence: str, casing: Casing = Casing()) -> Asked | None:
    """A question that `sentence` answers; None where it states no fact, or its grammar is not certain."""
    text = " ".join(sentence.split())
    if not _SENTENCE.fullmatch(text) or _ODD.search(text) or len(text.split()) not in _SENTENCE_WORDS:
        return None
    tokens = tokens_of(re.sub(r"(?<![A-Z])\.?[\"”’)]?\Z", "", text))
    if tokens[0].lower in OPENERS | FIRST_PERSON | RELATIVES | (THIRD_PERSON - DISTRIBUTIVES - {"there"}):
        return None
    asking = _Asking(text, tokens, casing)
    for fact in sorted(asking.facts, key=lambda fact: _PREFERENCE[fact.kind]):
        for form in _FORMS:
            question = form(asking, fact)
            if question and _is_sound(question, asking.answer(fact)):
                return Asked(question, asking.answer(fact))
    return None


@dataclass(frozen=True)
class _Asking:
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
        if not end or self.has(0, end, _ANAPHORS | NEGATIVES | RELATIVES):
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
        cutting = _ANAPHORS | NEGATIVES | RELATIVES | (frozenset() if is_whole else CONDITIONS)
        stop = next((at for at in range(start, end) if self.tokens[at].lower in cutting), end)
        if stop < end and self.tokens[stop].lower not in CONDITIONS:
            stop = next((at for at in range(stop - 1, start, -1) if self.tokens[at].lower in PREPOSITIONS), start)
        while stop > start and self.tokens[stop - 1].lower in PREPOSITIONS | DETERMINERS | CONJUNCTIONS | CONDITIONS:
            stop -= 1
        return self.span(start, stop)


# --- what is asked with ---------------------------------------------------------------------------------------------


def _asked_with(asking: _Asking, fact: Fact, place: str) -> str:
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
    is_size = fact.kind is Kind.MEASURE or asking.tokens[fact.end - 1].lower in _SPANS
    is_known = not place or place in (_BEFORE_SIZES if is_size else _BEFORE_NUMBERS)
    return f"{place} {_how_many(asking, fact)}".strip() if is_known else ""


def _how_many(asking: _Asking, fact: Fact) -> str:
    noun = asking.span(*fact.noun)
    if fact.kind is Kind.MEASURE:
        unit = re.sub(r"^[\d.,–-]+", "", noun)
        rest = asking.span(fact.end, fact.last)
        return "what temperature" if unit in _TEMPERATURES else f"how many {unit} {rest}".strip()
    return f"how many {noun}"


def _for_name(asking: _Asking, fact: Fact, place: str) -> str:
    if place in {"at", "in", "near"}:
        return "" if asking.tokens[fact.end - 1].lower in _NO_PLACES else "where"
    is_person = asking.tokens[fact.start].text in TITLES or fact.end - fact.start > 1
    return "by whom" if place == "by" and is_person and fact.first == fact.start else ""


# --- the forms of a question ----------------------------------------------------------------------------------------


def _of_existence(asking: _Asking, fact: Fact) -> str:
    """ "There are three cameras on deck" - "How many cameras are there on deck?"."""
    tokens = asking.tokens
    start, lead = asking.lead
    if tokens[start].lower != "there" or fact.first != start + 2 or fact.kind is not Kind.COUNT:
        return ""
    rest = asking.tail(fact.last, clause_end(tokens, fact.last))
    if tokens[start + 1].lower not in {"are", "were"} or rest is None or not (rest or lead):
        return ""
    return _worded(_asked_with(asking, fact, ""), tokens[start + 1].lower, "there", rest, lead)


def _of_order(asking: _Asking, fact: Fact) -> str:
    """The sentence tells what to do: "Wait for ten minutes" - "For how many minutes should you wait?"."""
    tokens = asking.tokens
    end = clause_end(tokens, 1)
    if not is_imperative(tokens) or fact.first < 1 or fact.last > end or fact.kind is Kind.NAME:
        return ""
    place, stop = _place(tokens, fact, 1)
    asked, tail = _asked_and_tail(asking, fact, place, end)
    if not asked or tail is None or asking.has(1, stop, _ANAPHORS | NEGATIVES | RELATIVES):
        return ""
    if not place and stop > 1 and not _is_adverbial(fact, asked):
        return ""
    return _worded(asked, "should you", tokens[0].lower, asking.span(1, stop), tail)


def _of_lead(asking: _Asking, fact: Fact) -> str:
    """The sentence begins with the fact: "In 1996 the office moved" - "In which year did the office move?"."""
    tokens = asking.tokens
    place = tokens[0].lower if fact.first == 1 and tokens[0].lower in PREPOSITIONS else ""
    if not (place or (fact.first == 0 and (fact.is_range or fact.kind is Kind.FREQUENCY))):
        return ""
    start = fact.last
    if start < len(tokens) and tokens[start].text == ",":
        start += 1
    asked = _asked_with(asking, fact, place)
    verb = find_verb(tokens, start) if asked and start < len(tokens) else None
    if verb is None or asking.has(start, verb.at, _ANAPHORS):
        return ""
    end = clause_end(tokens, verb.at + 1)
    if asking.has(verb.at, end, _ANAPHORS | NEGATIVES) or _is_empty(verb, end - verb.at - 1) or asked == "where":
        return ""
    return _worded(asked, verb.helper, _subject(asking, start, verb), verb.base, asking.span(verb.at + 1, end))


def _of_subject(asking: _Asking, fact: Fact) -> str:
    """The fact is the subject: "Three people are needed" - "How many people are needed?"."""
    tokens = asking.tokens
    start, lead = asking.lead
    if fact.first != start or fact.kind not in {Kind.COUNT, Kind.PERCENT}:
        return ""
    at = fact.last
    if at < len(tokens) and tokens[at].lower in PREPOSITIONS:
        at = next((n for n in range(at + 1, min(at + 7, len(tokens))) if is_finite(tokens[n])), len(tokens))
    end = clause_end(tokens, at + 1)
    if at >= len(tokens) or not is_finite(tokens[at]) or end == at + 1:
        return ""
    if any(not token.text[0].isalnum() for token in tokens[fact.last : at]):
        return ""
    if asking.has(fact.last, at, CONJUNCTIONS | RELATIVES) or asking.has(fact.last, end, _ANAPHORS | NEGATIVES):
        return ""
    return _worded(_asked_with(asking, fact, ""), asking.span(fact.last, end), lead)


def _of_person(asking: _Asking, fact: Fact) -> str:
    """ "Our access officer is Ann Lee" - "Who is our access officer?"; "Dr. Lee was heard" - "Who was heard?"."""
    tokens = asking.tokens
    if fact.kind is not Kind.NAME:
        return ""
    start, lead = asking.lead
    if fact.first == start and tokens[start].text in TITLES and fact.last < len(tokens):
        end = clause_end(tokens, fact.last + 1)
        is_verb = is_finite(tokens[fact.last]) or tokens[fact.last].lower in VERBS
        is_verb = is_verb and tokens[min(fact.last + 1, end)].lower not in {"a", "an"}  # the title of a film, as a rule
        is_plain = is_verb and not asking.has(fact.last, end, _ANAPHORS | NEGATIVES)
        return _worded("who", asking.span(fact.last, end), lead) if is_plain else ""
    verb = find_verb(tokens, 0)
    is_equal = verb is not None and verb.helper in {"is", "was"} and fact.first == verb.at + 1
    if verb is None or not is_equal or asking.has(0, verb.at, _ANAPHORS) or clause_end(tokens, fact.last) != fact.last:
        return ""
    said = {part for token in tokens[: verb.at] for part in token.lower.split("-")}
    is_role = bool(said & ROLES) and fact.first == fact.start
    return _worded("who" if is_role else "what", verb.helper, asking.opening(0, verb.at))


def _of_predicate(asking: _Asking, fact: Fact) -> str:
    """The fact stands behind the verb: "The card costs £15" - "How much does the card cost?"."""
    tokens = asking.tokens
    start, lead = asking.lead
    verb = find_verb(tokens, start)
    if verb is None or fact.first <= verb.at:
        return ""
    end = clause_end(tokens, verb.at + 1)
    place, stop = _place(tokens, fact, verb.at + 1)
    if fact.last > end or asking.has(start, verb.at, _ANAPHORS) or asking.has(verb.at, stop, _ANAPHORS | NEGATIVES):
        return ""
    asked, tail = _asked_and_tail(asking, fact, place, end)
    is_bare = all(token.lower in ADVERBS for token in tokens[verb.at + 1 : stop])
    if not place and is_bare and verb.helper in _BEING:
        return _of_equation(asking, fact, verb, tail)
    if not asked or tail is None or _is_empty(verb, 0 if is_bare and not tail else 1):
        return ""
    if verb.helper in _BEING and tokens[verb.at + 1].lower in DETERMINERS and not _is_spell(asking, fact, verb, place):
        return ""
    is_done = bool(verb.base) or any(is_participle(token.lower) for token in tokens[verb.at + 1 : stop])
    if (asked == "where" and not is_done) or (asked == "by whom" and verb.base):
        return ""
    is_given = verb.base in _GIVING and tokens[verb.at + 1].lower in DETERMINERS | DISTRIBUTIVES
    is_object = is_bare or is_given or _takes_object(tokens[stop - 2 : stop])
    if not place and not is_object and not _is_adverbial(fact, asked):
        return ""
    is_repeated = any(other.kind is fact.kind and verb.at < other.first < fact.first for other in asking.facts)
    if is_repeated or (fact.is_range and tokens[stop - 1].lower in _SPAN_NOUNS):
        return ""
    return _worded(
        asked, verb.helper, _subject(asking, start, verb), verb.base, asking.span(verb.at + 1, stop), tail, lead
    )


def _of_equation(asking: _Asking, fact: Fact, verb: Verb, tail: str | None) -> str:
    """ "The fee is £20" - "How much is the fee?"; "It is 45 metres long" - "How many metres long is it?"."""
    tokens = asking.tokens
    start, lead = asking.lead
    subject, following = _subject(asking, start, verb), tokens[fact.last].lower if fact.last < len(tokens) else ""
    if following in _EXTENTS and fact.kind in {Kind.COUNT, Kind.MEASURE}:
        rest = asking.tail(fact.last + 1, clause_end(tokens, fact.last + 1))
        extent = _worded(_how_many(asking, fact), following, verb.helper, subject, rest, lead)
        return extent if rest is not None else ""
    if tail is None or fact.is_range or fact.last > fact.end:
        return ""
    if following in {"from", "above", "below"} and fact.kind in {Kind.COUNT, Kind.MEASURE}:
        return _worded(_how_many(asking, fact), tail, verb.helper, subject, lead)
    if fact.kind is Kind.MONEY:
        asked = "what" if head_of(tokens, start, verb.at).lower in _SUMS else "how much"
        return _worded(asked, verb.helper, subject, tail, lead)
    if fact.kind in {Kind.DATE, Kind.YEAR}:
        return _worded("when", verb.helper, subject, tail, lead)
    is_size = fact.kind is Kind.COUNT and tokens[fact.end - 1].lower in _SPANS
    if fact.kind in {Kind.PERCENT, Kind.MEASURE} or is_size:
        return _worded("what", verb.helper, subject, tail, lead)
    return ""


_FORMS: tuple[Callable[[_Asking, Fact], str], ...] = (
    _of_existence,
    _of_order,
    _of_lead,
    _of_subject,
    _of_person,
    _of_predicate,
)


# --- pieces ---------------------------------------------------------------------------------------------------------


def _asked_and_tail(asking: _Asking, fact: Fact, place: str, end: int) -> tuple[str, str | None]:
    """(what is asked with, what follows the fact); "before departure" and "a week" belong to the former."""
    asked, tail = _asked_with(asking, fact, place), asking.tail(fact.last, end)
    if not asked or not tail or fact.kind not in {Kind.COUNT, Kind.MEASURE}:
        return asked, tail
    first = asking.tokens[fact.last].lower
    if first in {"before", "after", "later", "earlier"} and " " not in tail:
        return "", None  # "14 days before": before what?
    if (
        first in {"before", "after", "above", "below"}
        and place != "for"
        and not asking.has(fact.last, end, {"you", "we"})
    ):
        return f"{asked} {tail}", ""
    if first in {"a", "an", "per"} and fact.last + 2 <= end:
        rate = asking.span(fact.last, fact.last + 2)
        return f"{asked} {rate}", tail.removeprefix(rate).strip()
    return asked, tail


def _place(tokens: Sequence[Token], fact: Fact, start: int) -> tuple[str, int]:
    """(preposition before the fact, where the words before both end)."""
    before = tokens[fact.first - 1].lower if fact.first > start else ""
    if before in PREPOSITIONS | {"to"} and not fact.is_range and fact.kind is not Kind.FREQUENCY:
        return before, fact.first - 1
    if before in DETERMINERS | DISTRIBUTIVES | NEGATIVES | {"than"} | PREPOSITIONS | CONJUNCTIONS | _AMONG:
        return "of", fact.first  # part of a phrase, as in "the three islands": never asked with
    return "", fact.first


def _is_adverbial(fact: Fact, asked: str) -> bool:
    """Whether the fact says when or how often, so that it may follow an object."""
    is_offset = any(f" {word} " in asked for word in ("before", "after"))
    return fact.is_range or fact.kind is Kind.FREQUENCY or is_offset


def _is_spell(asking: _Asking, fact: Fact, verb: Verb, place: str) -> bool:
    """Whether the fact says how long something was what it was, as in "She was the mayor from 1930 to 1937"."""
    stop = fact.first - bool(place)
    is_plain = not any(is_participle(token.lower) for token in asking.tokens[verb.at + 1 : stop])
    return is_plain and (fact.is_range or place in {"since", "until", "till"})


def _is_empty(verb: Verb, others: int) -> bool:
    """Whether the verb says too little alone to ask with."""
    return others == 0 and (not verb.base or verb.base in _SAYS_LITTLE)


def _takes_object(tokens: Sequence[Token]) -> bool:
    """Whether the last of some words is a verb, so that what it acts on may follow."""
    before, word = tokens[0].lower, tokens[-1].lower
    return before not in DETERMINERS and (word in ADVERBS or word in VERBS or is_participle(word))


def _subject(asking: _Asking, start: int, verb: Verb) -> str:
    end = verb.at
    while end > start and asking.tokens[end - 1].lower in ADVERBS:
        end -= 1
    return f"{asking.opening(start, end)} {asking.span(end, verb.at)}".strip()


def _worded(*pieces: str | None) -> str:
    text = " ".join(piece for piece in pieces if piece).replace(" also ", " ")
    return f"{text[0].upper()}{text[1:]}?" if text else ""


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

"""The forms of a question: about the subject, the predicate, a person, how many there are …"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crag_core.base.text.words import words
from crag_core.experiments.drafting.asking import ANAPHORS, Asking
from crag_core.experiments.drafting.clauses import Verb, clause_end, find_verb, head_of, is_finite, is_imperative
from crag_core.experiments.drafting.english import (
    ADVERBS,
    CONJUNCTIONS,
    DETERMINERS,
    DISTRIBUTIVES,
    NEGATIVES,
    PREPOSITIONS,
    RELATIVES,
    ROLES,
    TITLES,
    VERBS,
    is_participle,
)
from crag_core.experiments.drafting.facts import Fact, Kind, Token
from crag_core.experiments.drafting.interrogatives import SPANS, asked_with, how_many

_EXTENTS = frozenset(words("long wide high tall deep thick old away apart"))
_SUMS = frozenset(
    words(
        """cost costs price budget limit total maximum minimum value amount income profit surplus loss turnover
        revenue salary worth sum"""
    )
)
_SPAN_NOUNS = frozenset(words("time times period periods hours days years season interval"))
_BEING = frozenset(words("is are was were"))
_GIVING = frozenset(words("allow award cost give grant lend offer pay send show"))
_SAYS_LITTLE = frozenset(words("follow remain become seem appear come go begin start"))
_AMONG = frozenset(words("last next first past final previous"))


def _of_existence(asking: Asking, fact: Fact) -> str:
    """ "There are three cameras on deck" - "How many cameras are there on deck?"."""
    tokens = asking.tokens
    start, lead = asking.lead
    if tokens[start].lower != "there" or fact.first != start + 2 or fact.kind is not Kind.COUNT:
        return ""
    rest = asking.tail(fact.last, clause_end(tokens, fact.last))
    if tokens[start + 1].lower not in {"are", "were"} or rest is None or not (rest or lead):
        return ""
    return _worded(asked_with(asking, fact, ""), tokens[start + 1].lower, "there", rest, lead)


def _of_order(asking: Asking, fact: Fact) -> str:
    """The sentence tells what to do: "Wait for ten minutes" - "For how many minutes should you wait?"."""
    tokens = asking.tokens
    end = clause_end(tokens, 1)
    if not is_imperative(tokens) or fact.first < 1 or fact.last > end or fact.kind is Kind.NAME:
        return ""
    place, stop = _place(tokens, fact, 1)
    asked, tail = _asked_and_tail(asking, fact, place, end)
    if not asked or tail is None or asking.has(1, stop, ANAPHORS | NEGATIVES | RELATIVES):
        return ""
    if not place and stop > 1 and not _is_adverbial(fact, asked):
        return ""
    return _worded(asked, "should you", tokens[0].lower, asking.span(1, stop), tail)


def _of_lead(asking: Asking, fact: Fact) -> str:
    """The sentence begins with the fact: "In 1996 the office moved" - "In which year did the office move?"."""
    tokens = asking.tokens
    place = tokens[0].lower if fact.first == 1 and tokens[0].lower in PREPOSITIONS else ""
    if not (place or (fact.first == 0 and (fact.is_range or fact.kind is Kind.FREQUENCY))):
        return ""
    start = fact.last
    if start < len(tokens) and tokens[start].text == ",":
        start += 1
    asked = asked_with(asking, fact, place)
    verb = find_verb(tokens, start) if asked and start < len(tokens) else None
    if verb is None or asking.has(start, verb.at, ANAPHORS):
        return ""
    end = clause_end(tokens, verb.at + 1)
    if asking.has(verb.at, end, ANAPHORS | NEGATIVES) or _is_empty(verb, end - verb.at - 1) or asked == "where":
        return ""
    return _worded(asked, verb.helper, _subject(asking, start, verb), verb.base, asking.span(verb.at + 1, end))


def _of_subject(asking: Asking, fact: Fact) -> str:
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
    if asking.has(fact.last, at, CONJUNCTIONS | RELATIVES) or asking.has(fact.last, end, ANAPHORS | NEGATIVES):
        return ""
    return _worded(asked_with(asking, fact, ""), asking.span(fact.last, end), lead)


def _of_person(asking: Asking, fact: Fact) -> str:
    """ "Our access officer is Ann Lee" - "Who is our access officer?"; "Dr. Lee was heard" - "Who was heard?"."""
    tokens = asking.tokens
    if fact.kind is not Kind.NAME:
        return ""
    start, lead = asking.lead
    if fact.first == start and tokens[start].text in TITLES and fact.last < len(tokens):
        end = clause_end(tokens, fact.last + 1)
        is_verb = is_finite(tokens[fact.last]) or tokens[fact.last].lower in VERBS
        is_verb = is_verb and tokens[min(fact.last + 1, end)].lower not in {"a", "an"}  # the title of a film, as a rule
        is_plain = is_verb and not asking.has(fact.last, end, ANAPHORS | NEGATIVES)
        return _worded("who", asking.span(fact.last, end), lead) if is_plain else ""
    verb = find_verb(tokens, 0)
    is_equal = verb is not None and verb.helper in {"is", "was"} and fact.first == verb.at + 1
    if verb is None or not is_equal or asking.has(0, verb.at, ANAPHORS) or clause_end(tokens, fact.last) != fact.last:
        return ""
    said = {part for token in tokens[: verb.at] for part in token.lower.split("-")}
    is_role = bool(said & ROLES) and fact.first == fact.start
    return _worded("who" if is_role else "what", verb.helper, asking.opening(0, verb.at))


def _of_predicate(asking: Asking, fact: Fact) -> str:
    """The fact stands behind the verb: "The card costs £15" - "How much does the card cost?"."""
    tokens = asking.tokens
    start, lead = asking.lead
    verb = find_verb(tokens, start)
    if verb is None or fact.first <= verb.at:
        return ""
    end = clause_end(tokens, verb.at + 1)
    place, stop = _place(tokens, fact, verb.at + 1)
    if fact.last > end or asking.has(start, verb.at, ANAPHORS) or asking.has(verb.at, stop, ANAPHORS | NEGATIVES):
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


def _of_equation(asking: Asking, fact: Fact, verb: Verb, tail: str | None) -> str:
    """ "The fee is £20" - "How much is the fee?"; "It is 45 metres long" - "How many metres long is it?"."""
    tokens = asking.tokens
    start, lead = asking.lead
    subject, following = _subject(asking, start, verb), tokens[fact.last].lower if fact.last < len(tokens) else ""
    if following in _EXTENTS and fact.kind in {Kind.COUNT, Kind.MEASURE}:
        rest = asking.tail(fact.last + 1, clause_end(tokens, fact.last + 1))
        extent = _worded(how_many(asking, fact), following, verb.helper, subject, rest, lead)
        return extent if rest is not None else ""
    if tail is None or fact.is_range or fact.last > fact.end:
        return ""
    if following in {"from", "above", "below"} and fact.kind in {Kind.COUNT, Kind.MEASURE}:
        return _worded(how_many(asking, fact), tail, verb.helper, subject, lead)
    if fact.kind is Kind.MONEY:
        asked = "what" if head_of(tokens, start, verb.at).lower in _SUMS else "how much"
        return _worded(asked, verb.helper, subject, tail, lead)
    if fact.kind in {Kind.DATE, Kind.YEAR}:
        return _worded("when", verb.helper, subject, tail, lead)
    is_size = fact.kind is Kind.COUNT and tokens[fact.end - 1].lower in SPANS
    if fact.kind in {Kind.PERCENT, Kind.MEASURE} or is_size:
        return _worded("what", verb.helper, subject, tail, lead)
    return ""


FORMS: tuple[Callable[[Asking, Fact], str], ...] = (
    _of_existence,
    _of_order,
    _of_lead,
    _of_subject,
    _of_person,
    _of_predicate,
)


# --- pieces ---------------------------------------------------------------------------------------------------------


def _asked_and_tail(asking: Asking, fact: Fact, place: str, end: int) -> tuple[str, str | None]:
    """(what is asked with, what follows the fact); "before departure" and "a week" belong to the former."""
    asked, tail = asked_with(asking, fact, place), asking.tail(fact.last, end)
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


def _is_spell(asking: Asking, fact: Fact, verb: Verb, place: str) -> bool:
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


def _subject(asking: Asking, start: int, verb: Verb) -> str:
    end = verb.at
    while end > start and asking.tokens[end - 1].lower in ADVERBS:
        end -= 1
    return f"{asking.opening(start, end)} {asking.span(end, verb.at)}".strip()


def _worded(*pieces: str | None) -> str:
    text = " ".join(piece for piece in pieces if piece).replace(" also ", " ")
    return f"{text[0].upper()}{text[1:]}?" if text else ""

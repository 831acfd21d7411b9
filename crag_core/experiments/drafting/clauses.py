"""The main clause of a plain English sentence, found with word lists: subject, verb, and where the clause ends.

What is not certain is refused: a question that is not asked costs nothing, a crooked one costs trust.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crag_core.base.text.words import words
from crag_core.experiments.drafting.english import (
    ADVERBS,
    AUXILIARIES,
    CONDITIONS,
    CONJUNCTIONS,
    DETERMINERS,
    DISTRIBUTIVES,
    FIRST_PERSON,
    NEGATIVES,
    PREPOSITIONS,
    RELATIVES,
    THIRD_PERSON,
    VERBS,
    Form,
    is_participle,
    is_plural,
)
from crag_core.experiments.drafting.facts import Token

_LONGEST_SUBJECT = 9
_ADJECTIVES = frozenset(
    words(
        """annual average basic big common current daily due early final first free full good great high large last
        late left little local long low main minimum maximum monthly national new next old only open other own
        public right same second short single small special standard third total typical usual various weekly
        whole yearly young"""
    )
)
_NEVER_AFTER = DETERMINERS | DISTRIBUTIVES | PREPOSITIONS | CONJUNCTIONS | _ADJECTIVES | {"to"}
_COMPARING = frozenset(words("more less fewer later longer greater larger smaller older younger higher lower"))
_TRANSITIVE = frozenset(
    words("""build bring buy call catch feed find found give have hold make name sell send tell use""")
)
_VAGUE = frozenset(words("other others same latter former following such another remaining"))


@dataclass(frozen=True)
class Verb:
    """The finite verb: an auxiliary or form of "be" that a question moves forward, or one that needs "do".

    `at` is its token; `base` is empty for an auxiliary. `helper` is the word that comes before the subject in a
    question: "is", "will", "does".
    """

    at: int
    helper: str
    base: str = ""


def find_verb(tokens: Sequence[Token], start: int) -> Verb | None:
    """The finite verb of the clause whose subject begins at `start`; None where the subject is no plain noun phrase."""
    begin, behind = start, start
    for at in range(start, min(start + _LONGEST_SUBJECT + 4, len(tokens))):
        word = tokens[at].lower
        if at < behind:
            continue
        if tokens[at].text == "," and (behind := _apposition_end(tokens, at)):
            continue
        if at - begin > _LONGEST_SUBJECT:
            return None
        if not tokens[at].text[0].isalnum() and tokens[at].text[0] not in "£$€%":
            return None
        if word == "than" and tokens[at - 1].lower in _COMPARING:
            continue
        if word in RELATIVES | CONDITIONS | FIRST_PERSON | NEGATIVES | _VAGUE or word in THIRD_PERSON - DISTRIBUTIVES:
            return None
        if at == start:
            if word in AUXILIARIES | PREPOSITIONS | CONJUNCTIONS | ADVERBS - {"some"}:
                return None
            continue
        if word in {"has", "have", "had"} and _is_perfect(tokens, at):
            return Verb(at, word) if _is_subject(tokens, start, at) else None
        if word in AUXILIARIES:
            return Verb(at, word) if _is_subject(tokens, start, at) else None
        verb = None if tokens[at].is_capital else _lexical(tokens, start, at)
        if verb:
            return verb if _is_subject(tokens, start, at) else None
    return None


def clause_end(tokens: Sequence[Token], start: int) -> int:
    """Where what is said of the subject ends: before a sign, a further clause, or a second verb after "and"."""
    for at in range(start, len(tokens)):
        word = tokens[at].lower
        if not tokens[at].text[0].isalnum() and tokens[at].text[0] not in "£$€%°":
            return at
        is_rate = word == "once" and at + 1 < len(tokens) and tokens[at + 1].lower in {"a", "an", "per", "every"}
        if word in RELATIVES and tokens[at - 1].lower not in _COMPARING and not is_rate:
            return at
        if word in {"but", "so", "yet"} or (word in CONJUNCTIONS and _has_verb(tokens, at + 1)):
            return at
    return len(tokens)


def head_of(tokens: Sequence[Token], start: int, end: int) -> Token:
    """The noun that a noun phrase is about."""
    for at in range(start + 1, end):
        is_added = is_participle(tokens[at].lower) and tokens[at - 1].lower not in _NEVER_AFTER  # "claims approved by"
        if tokens[at].lower in PREPOSITIONS or is_added:
            return tokens[at - 1]
    return tokens[end - 1]


def is_imperative(tokens: Sequence[Token]) -> bool:
    """Whether the sentence tells the reader to do something: a bare verb, then what it is done to."""
    forms = VERBS.get(tokens[0].lower, {})
    if len(tokens) < 3 or Form.BASE not in forms:
        return False
    follows = tokens[1].lower
    if Form.PART in forms and follows in PREPOSITIONS:
        return False  # "Set in 1914"
    if not (
        follows in {"us"} | DETERMINERS | DISTRIBUTIVES | PREPOSITIONS
        or tokens[1].is_capital
        or tokens[1].text[0].isdigit()
    ):
        return False
    end = clause_end(tokens, 1)
    words = [token.lower for token in tokens[1:end]]
    return not (set(words) & AUXILIARIES or any(_is_unmistakable(word) for word in words))


def _apposition_end(tokens: Sequence[Token], at: int) -> int:
    """Behind the second comma of ", the Islander,"; 0 where more than a name stands between two commas."""
    for end in range(at + 1, min(at + 6, len(tokens))):
        if tokens[end].text == ",":
            return end + 1 if end > at + 1 else 0
        if not tokens[end].is_capital and tokens[end].lower != "the":
            return 0
    return 0


def is_finite(token: Token) -> bool:
    """Whether a word may be the verb of a plural subject that ends right before it."""
    forms = VERBS.get(token.lower, {})
    return token.lower in AUXILIARIES | {"has", "have", "had"} or Form.PAST in forms or Form.BASE in forms


def _is_perfect(tokens: Sequence[Token], at: int) -> bool:
    following = next((token.lower for token in tokens[at + 1 :] if token.lower not in ADVERBS), "")
    return is_participle(following)


def _is_subject(tokens: Sequence[Token], start: int, end: int) -> bool:
    words = [token.lower for token in tokens[start:end]]
    while words and words[-1] in ADVERBS:
        words.pop()
    is_noun = bool(words) and words[-1] not in DETERMINERS | DISTRIBUTIVES | PREPOSITIONS | CONJUNCTIONS
    return is_noun and not (len(words) == 2 and words[-1].endswith("est"))  # "the oldest"


def _lexical(tokens: Sequence[Token], start: int, at: int) -> Verb | None:
    forms = VERBS.get(tokens[at].lower)
    before = next((token for token in reversed(tokens[start:at]) if token.lower not in ADVERBS), tokens[start])
    if not forms or before.lower in _NEVER_AFTER or before.text[0].isdigit():
        return None
    following = tokens[at + 1].lower if at + 1 < len(tokens) else ""
    if following in AUXILIARIES or _is_unmistakable(following) or Form.PAST in VERBS.get(following, {}):
        return None  # "the running costs are"
    head = head_of(tokens, start, at)
    has_several = is_plural(head.lower) or any(token.lower == "and" for token in tokens[start:at])
    if Form.PAST in forms:
        if Form.BASE in forms and has_several:
            return None  # "the crews put": now or then?
        if Form.PART in forms and (
            following == "by" or (forms[Form.PAST] in _TRANSITIVE and following in PREPOSITIONS)
        ):
            return None  # "the changes made in May": a participle
        return None if _finite_ahead(tokens, at + 1) else Verb(at, "did", forms[Form.PAST])
    if Form.S in forms and not (has_several and not head.is_capital):
        return None if _finite_ahead(tokens, at + 1) else Verb(at, "does", forms[Form.S])
    if Form.BASE in forms and has_several:
        return None if _finite_ahead(tokens, at + 1) else Verb(at, "do", forms[Form.BASE])
    return None


def _finite_ahead(tokens: Sequence[Token], start: int) -> bool:
    """Whether another verb follows in the same clause, so that the one before it was a participle or a noun."""
    for token in tokens[start:]:
        word = token.lower
        if not token.text[0].isalnum() or word in CONJUNCTIONS | RELATIVES | CONDITIONS:
            return False
        if word in AUXILIARIES or _is_unmistakable(word):
            return True
    return False


def _has_verb(tokens: Sequence[Token], start: int) -> bool:
    for at in range(start, len(tokens)):
        word = tokens[at].lower
        if not tokens[at].text[0].isalnum():
            return False
        forms = VERBS.get(word, {})
        is_first = at == start
        if word in AUXILIARIES or _is_unmistakable(word) or Form.PAST in forms or (is_first and forms):
            return True
        before = tokens[at - 1].lower
        if not is_first and forms and before not in _NEVER_AFTER and not before[0].isdigit():
            return True
    return False


def _is_unmistakable(word: str) -> bool:
    """Forms that are never nouns, adjectives or participles."""
    forms = VERBS.get(word, {})
    return word in {"has", "goes", "does", "did", "had"} or (Form.PAST in forms and Form.PART not in forms)

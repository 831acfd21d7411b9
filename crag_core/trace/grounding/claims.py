"""The claims of an answer: its sentences with normalised words, numbers and names. Pure."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise

from crag_core.base.prompts.replies import FROM_MEMORY
from crag_core.base.text.sentences import Span, split
from crag_core.base.text.words import words
from crag_core.trace.grounding.numbers import number_in
from crag_core.trace.grounding.quoted_answer import CITATION

_FROM_MEMORY = re.compile(re.escape(FROM_MEMORY.strip("()")).replace("'", "['’]"), re.IGNORECASE)
_SOURCES = re.compile(rf"{CITATION.pattern}|\({_FROM_MEMORY.pattern}\)", re.IGNORECASE)
_LEAD = re.compile(r"\A(?:(?:[-*+•‣◦–>]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]) )+")
_HEADINGS = re.compile(r"(?:\s{0,3}#{1,6}\s[^\n]*(?:\n|\Z))+")
_MARKS = re.compile(r"[*`|]+|\b_+|_+\b")
_CODE = re.compile(r"\s*(?:```|~~~)")
_HEADER = re.compile(r"\s*\|.*\n\s*\|[\s:|+-]+\|\s*\Z")
_QUOTATION = re.compile(r"\W*[“„«\"].*[”“»\"]\W*", re.DOTALL)
_WORD = re.compile(r"[^\W_]+(?:['’\-.][^\W_]+)*")
_PARTS = re.compile(r"\d+|[^\W\d_]+")
_POSSESSIVE = re.compile(r"['’]s$")
_DENIAL = re.compile(
    r"\b(?:not|no|never|cannot|without|neither|nor|none|nobody|nicht|kein\w*|ohne|nie|niemals|weder|pas|jamais|sans|"
    r"aucune?|nunca|jamás|sin|ningun[oa]?|ningún|ni|tampoco|rather than|instead of|anstatt|anstelle)\b|n['’]t\b",
    re.IGNORECASE,
)
_NO_DENIAL = re.compile(
    r"\b(?:(?:not|no|cannot|nicht|pas|\w+n['’]t) (?:\w+ ){0,2}(?:more|less|fewer|mehr|weniger|plus|moins|más|"
    r"menos)|(?:not|nicht|pas|non|no) (?:only|just|nur|seulement|solo|sólo)|plus|no\. ?(?=\d))\b"
    r"|\A\W*(?:no|nein|non)[,.:;!—–-]",
    re.IGNORECASE,
)
"""What looks like a "not" and denies nothing: bounds, "not only", "No. 32", and the "No," of an answer."""
_NEAR = 6  # words behind a "not" that it may turn round
_STEM = 5
_QUOTED = 4
_SAYS_NOTHING = frozenset(
    word
    for line in (
        "yes no sure okay certainly sorry apologize note summary following follows here according based correct right",
        "document documents evidence excerpt excerpts chunk chunks source sources context text provided given",
        "answer question help ja nein laut dokument dokumente dokumenten quelle quellen antwort frage folgende",
        "oui non selon réponse voici suivant",
    )
    for word in line.split()
)


def sentences(text: str) -> tuple[Span, ...]:
    """The sentences of an answer, in order; sources behind a full stop belong to the sentence before it."""
    spans = split(_SOURCES.sub(lambda found: " " * len(found.group()), text))
    lines = [(text.find("\n", end, start), start) for (_, end), (start, _) in pairwise(spans)]
    breaks = [0, *(start if line < 0 else line for line, start in lines), len(text)]
    return tuple(trimmed for span in pairwise(breaks) if (trimmed := _trim(text, span)))


def is_from_memory(sentence: str) -> bool:
    return _FROM_MEMORY.search(sentence) is not None


def claim_of(sentence: str) -> str:
    """The sentence without its sources, headings before it, and the marks of lists, tables and emphasis."""
    bare = " ".join(_SOURCES.sub(" ", _HEADINGS.sub("", sentence)).split())
    return " ".join(_MARKS.sub(" ", _LEAD.sub("", f"{bare} ", count=1)).split())


def is_prose(sentence: str) -> bool:
    """Not a block of code, nor the header of a table, which claims nothing."""
    return not (_CODE.match(sentence) or _HEADER.match(sentence))


def is_quotation(claim: str) -> bool:
    return bool(_QUOTATION.fullmatch(claim))


def denies(text: str) -> bool:
    return bool(_DENIAL.search(_NO_DENIAL.sub(" ", text)))


def contradicts(claim: str, content: Collection[str], evidence: Sequence[str]) -> bool:
    """Whether only one of a claim and what stands behind it, best first, has a "not" near words that both share."""
    denied = frozenset[str]().union(*map(_denied_in, evidence if denies(claim) else evidence[:1]))
    return denies(claim) == denied.isdisjoint(content)


def _denied_in(text: str) -> frozenset[str]:
    """The terms behind each "not" of a text; where none is, of those before it."""
    bare = _NO_DENIAL.sub(" ", text)
    found: set[str] = set()
    for denial in _DENIAL.finditer(bare):
        found |= terms_of(" ".join(words(bare[denial.end() :])[:_NEAR] or words(bare[: denial.start()])[-_NEAR:]))
    return frozenset(found)


def stands_in(claim: str, spoken: str, at_least: int = _QUOTED) -> bool:
    """Whether the claim, of `at_least` so many words, stands word for word in a text as `spoken` gives it."""
    said = words(claim)
    return len(said) >= at_least and _joined(said) in spoken


def spoken(text: str) -> str:
    return _joined(words(text))


@lru_cache(1024)
def terms_of(text: str) -> frozenset[str]:
    """The words of a text in the form in which two texts are compared: stems of five letters, numbers as digits."""
    return frozenset(form for word in words(text) for form in _forms(word))


def content_of(claim: str, stop_words: Collection[str]) -> dict[str, str]:
    """Each term of what the claim says, with the word that it is of; empty where it says nothing by itself."""
    said = (word for word in words(claim) if word not in stop_words and word not in _SAYS_NOTHING)
    return {form: word for word in said for form in _forms(word)}


def names_in(claim: str, stop_words: Collection[str]) -> frozenset[str]:
    """Words with a capital letter inside the sentence; in German every noun is one."""
    said = (word for place, word in enumerate(_WORD.findall(claim)) if place and word[:1].isupper())
    named = (word.lower() for word in said if not any(sign.isdigit() for sign in word))
    return frozenset(bare_word(word) for word in named if word not in stop_words)


@lru_cache(8192)
def bare_word(word: str) -> str:
    """Without a possessive ending, and without accents, which some leave out."""
    parts = unicodedata.normalize("NFKD", _POSSESSIVE.sub("", word))
    return "".join(sign for sign in parts if not unicodedata.combining(sign))


@lru_cache(8192)
def _forms(word: str) -> tuple[str, ...]:
    if number := number_in(word):
        return (number,)
    bare = bare_word(word)
    if any(sign.isdigit() for sign in bare):  # "9.50" and "9,50", "5pm" and "5 pm"
        return tuple(part.lstrip("0") or "0" if part.isdigit() else part[:_STEM] for part in _PARTS.findall(bare))
    return tuple(part[:_STEM] for part in re.split(r"[-.]", bare) if part)


def _trim(text: str, span: Span) -> Span | None:
    said = text[slice(*span)]
    start = span[0] + len(said) - len(said.lstrip())
    return (start, start + len(said.strip())) if said.strip() else None


def _joined(said: list[str]) -> str:
    return f" {' '.join(said)} "

"""Expands a query for a second retrieval: synonyms from a file, and frequent words of the first passages."""

import re
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from crag_core.base.errors import BadRecord
from crag_core.base.text.sentences import split
from crag_core.base.text.words import words
from crag_core.base.types.passages import Passage

_ENDINGS = (("s", ""), ("n", ""), ("e", ""), ("es", ""), ("en", ""), ("ies", "y"))
_SHORTEST_STEM = 3
# Pairs of letters with kana are endings, particles and pieces of longer words, hardly ever words of their own.
_KANA = re.compile("[\u3040-\u30ff\uff66-\uff9f]")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]+")
# In alphabets two letters make "at", "zu" or "на"; in Chinese and Korean they make a noun.
_SHORT_WORD = re.compile("[\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3]{2}")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_NAMED = 3


@dataclass(frozen=True)
class Expansion:
    query: str
    added: tuple[tuple[str, str], ...] = ()


@dataclass
class _Neighbour:
    word: str
    sentence: str
    count: int = 0
    passages: set[int] = field(default_factory=set)
    beside: set[str] = field(default_factory=set)


def expand(
    question: str,
    keywords: Sequence[str],
    synonyms: Mapping[str, tuple[str, ...]],
    passages: Sequence[Passage],
    stop_words: Container[str],
    max_synonyms: int = 2,
    max_vocabulary: int = 4,
    asked: Sequence[str] = (),
) -> Expansion:
    """The question followed by terms that it does not hold; the question alone when there are none.

    `keywords` are the question's own. Each of them, and each phrase of the question, adds its first `max_synonyms`
    synonyms that are new. Then come `max_vocabulary` words of the passages: those that stand in a sentence with a
    keyword in the most passages, then the most often, then the earliest. That must be so in two passages or, when there
    is only one, twice. A plural or a German ending makes no other word. What stands in a query of `asked` is not new.
    """
    known = _forms_of(word for text in (question, *asked) for word in words(text))
    added: list[tuple[str, str]] = []
    for term in _find_terms(question, keywords, synonyms):
        new = [one for one in synonyms[term] if any(known.isdisjoint(_forms(word)) for word in words(one))]
        fresh = new[:max_synonyms]
        added += [(synonym, f"synonym of {term}") for synonym in fresh]
        known |= _forms_of(word for synonym in fresh for word in words(synonym))
    vocabulary: list[tuple[str, str]] = []
    near = _find_neighbours(keywords, passages, stop_words)
    often = [one for one in near if (one.count if len(passages) == 1 else len(one.passages)) >= 2]
    for neighbour in sorted(often, key=lambda one: (len(one.passages), one.count), reverse=True):
        if len(vocabulary) < max_vocabulary and not known.intersection(_forms_of([neighbour.word])):
            vocabulary.append((_spell(neighbour), _explain(neighbour, keywords, len(passages))))
            known |= _forms_of([neighbour.word])
    added += vocabulary
    return Expansion(" ".join([question, *(term for term, _ in added)]), tuple(added))


def parse_synonyms(text: str, name: str = "synonyms.txt") -> dict[str, tuple[str, ...]]:
    """Synonyms by term, best first, from lines "term: synonym, other synonym"; "#" starts a comment.

    Everything is lower-cased; what is said of a term on several lines is put together. Raises `BadRecord` with the
    line's number.
    """
    found: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(unicodedata.normalize("NFC", text.removeprefix("\ufeff")).split("\n"), 1):
        content = _COMMENT.sub("", line).strip()
        if not content:
            continue
        left, _, right = content.lower().partition(":")
        term, *others = (" ".join(part.split()) for part in (left, *right.split(",")))
        if not all(words(part) for part in (term, *others)) or ":" in right:
            raise BadRecord(
                f"{name}, line {number}: expected 'term: synonym, other synonym', found {content[:80]!r}.",
                hint="Mend the line, or put # before it.",
            )
        found[term] = tuple(dict.fromkeys((*found.get(term, ()), *others)))
    return found


def _find_terms(question: str, keywords: Sequence[str], synonyms: Mapping[str, tuple[str, ...]]) -> list[str]:
    exact = (next((form for form in _forms(keyword) if form in synonyms), None) for keyword in keywords)
    spoken = _pad(question)
    phrases = (term for term in synonyms if len(words(term)) > 1 and _pad(term) in spoken)
    return list(dict.fromkeys(term for term in (*exact, *phrases) if term is not None))


def _pad(text: str) -> str:
    return f" {' '.join(words(text))} "


def _find_neighbours(
    keywords: Sequence[str], passages: Sequence[Passage], stop_words: Container[str]
) -> Iterable[_Neighbour]:
    anchors = {form: word for word in reversed(keywords) if not _KANA.search(word) for form in _forms(word)}
    found: dict[str, _Neighbour] = {}
    for number, passage in enumerate(passages):
        for start, end in split(passage.text):
            sentence = passage.text[start:end]
            there = words(sentence)
            beside = {anchors[form] for word in there for form in _forms(word) if form in anchors}
            for word in there if beside else ():
                neighbour = found.setdefault(word, _Neighbour(word, sentence))
                neighbour.count += 1
                neighbour.passages.add(number)
                neighbour.beside |= beside
    return (neighbour for word, neighbour in found.items() if word not in stop_words and _is_term(word))


def _is_term(word: str) -> bool:
    if len(word) < 3:
        return bool(_SHORT_WORD.fullmatch(word))
    return any(map(str.isalpha, word))


@lru_cache(maxsize=10_000)
def _forms(word: str) -> tuple[str, ...]:
    """The word itself, then what is left without an ending, the longest first."""
    stems = [
        word[: -len(ending)] + instead
        for ending, instead in _ENDINGS
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM
    ]
    return (word, *stems)


def _forms_of(found: Iterable[str]) -> set[str]:
    """All forms, and the single letters of Chinese and Japanese words: "京都" is no news after "東京"."""
    listed = list(found)
    letters = {letter for word in listed if _HAN.fullmatch(word) for letter in word}
    return letters.union(*(_forms(word) for word in listed))


def _spell(neighbour: _Neighbour) -> str:
    match = re.search(rf"(?<!\w){re.escape(neighbour.word)}(?!\w)", neighbour.sentence, re.IGNORECASE)
    return match.group() if match else neighbour.word


def _explain(neighbour: _Neighbour, keywords: Sequence[str], passages: int) -> str:
    named = [keyword for keyword in dict.fromkeys(keywords) if keyword in neighbour.beside]
    shown = [*named[:_NAMED], "others"] if len(named) > _NAMED else named
    beside = " or ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    where = f"{neighbour.count} times" if passages == 1 else f"in {len(neighbour.passages)} chunks"
    return f"stands beside {beside} {where}"

"""Expands a query for a second retrieval: synonyms from a file, and frequent words of the first passages."""

import re
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class ExpandedQuery:
    query: str
    added: tuple[tuple[str, str], ...] = ()


def expand(
    question: str,
    keywords: Sequence[str],
    synonyms: Mapping[str, tuple[str, ...]],
    passages: Sequence[Passage],
    stop_words: Container[str],
    max_synonyms: int = 2,
    max_vocabulary: int = 4,
    asked: Sequence[str] = (),
) -> ExpandedQuery:
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
    near = _find_neighbours(keywords, passages, stop_words)
    chunks = {word: len({number for number, _ in places}) for word, places in near.items()}
    often = [word for word in near if (len(near[word]) if len(passages) == 1 else chunks[word]) >= 2]
    vocabulary: list[tuple[str, str]] = []
    for word in sorted(often, key=lambda one: (chunks[one], len(near[one])), reverse=True):
        if len(vocabulary) < max_vocabulary and not known.intersection(_forms_of([word])):
            where = f"{len(near[word])} times" if len(passages) == 1 else f"in {chunks[word]} chunks"
            vocabulary.append((_spell(word, near[word][0][1]), f"beside words of the question {where}"))
            known |= _forms_of([word])
    added += vocabulary
    return ExpandedQuery(" ".join([question, *(term for term, _ in added)]), tuple(added))


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
) -> dict[str, list[tuple[int, str]]]:
    """Words in sentences with a keyword, and where each stands: number of the passage, and sentence."""
    anchors = {form for word in keywords if not _KANA.search(word) for form in _forms(word)}
    found: dict[str, list[tuple[int, str]]] = {}
    for number, passage in enumerate(passages):
        for start, end in split(passage.text):
            sentence = passage.text[start:end]
            there = words(sentence)
            if any(form in anchors for word in there for form in _forms(word)):
                for word in there:
                    found.setdefault(word, []).append((number, sentence))
    return {word: places for word, places in found.items() if word not in stop_words and _is_term(word)}


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


def _spell(word: str, sentence: str) -> str:
    match = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", sentence, re.IGNORECASE)
    return match.group() if match else word

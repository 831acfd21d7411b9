"""Two documents that say the same with other numbers, such as two versions of one rule. Pure."""

import re
from collections.abc import Iterator
from itertools import chain, product
from typing import NamedTuple

from crag_core.base.text.sentences import split
from crag_core.base.text.words import COMMON_WORDS
from crag_core.base.types.knowledge import Excerpt, Knowledge, Strip
from crag_core.trace.grounding.claims import content_of, terms_of
from crag_core.trace.grounding.numbers import number_form
from crag_core.trace.grounding.quoted_answer import CITATION, citations, quotable, with_headers

_NUMBER = re.compile(r"(?<![\w.,:])\d+(?:[.,:]\d+)*(?!\w)")
_WORD = re.compile(r"[^\W_]*[^\W\d_][^\W_]*")
_MARK = re.compile(r"\A\W*(?:\d+[.)]|\d+(?:\.\d+)+)\s+(?=[^\W\d_a-z])")  # "4.2 Meals"
_ROW = re.compile(r"[^:;]+: [^;]+; [^:;]+: ")
_WORDED_CELL = re.compile(r"(?:^|; )[^:;]+: [^;\d]*[^\W\d_]{2}")
_ALIKE, _FEWEST = 0.8, 3


class _Sentence(NamedTuple):
    """`numbers` as they stand, by the form in which two are compared."""

    text: str
    excerpt: Excerpt
    words: frozenset[str]
    numbers: dict[str, str]

    @property
    def named(self) -> frozenset[str]:
        """What it names but for its numbers, in its words, headings and file name."""
        passage = self.excerpt.passage
        place = re.sub(r"[\W_]+", " ", f"{passage.source} {passage.section}")
        return terms_of(f"{_NUMBER.sub(' ', self.text)} {place}")


def disagreement(question: str, knowledge: Knowledge, text: str) -> str:
    """Of an answer: "Two documents differ in a number: 52 in a.md, 41 in b.md."; "" where none is found.

    A sentence of what the answer cites, with a number that the answer has, against those of other documents among the
    excerpts with at least 0.8 of the words in common (Jaccard), of a row all, and no number. Two of which only one
    has what the question names, in its words, headings or file name, are about two things.
    """
    if not (said := _numbers(CITATION.sub("", text)).keys()):
        return ""
    strips = {one.strip.id: one.strip for one in knowledge.verdicts}
    sentences = [list(_sentences(excerpt, strips)) for excerpt in knowledge.excerpts]
    cited = [one for number in citations(text, len(sentences)) for one in sentences[number - 1]]
    given, asked = _numbers(question).keys(), content_of(question, COMMON_WORDS).keys()
    for own, other in product(cited, chain(*sentences)):
        found = own.numbers.keys()
        if not found & said or found & (other.numbers.keys() | given) or _document(own) == _document(other):
            continue
        if _are_alike(own, other) and not asked & (own.named ^ other.named):
            return f"Two documents differ in a number: {_told(own)}, {_told(other)}."
    return ""


def _are_alike(one: _Sentence, other: _Sentence) -> bool:
    if _ROW.match(one.text):  # most of whose words are its heads
        return one.words == other.words
    return len(one.words & other.words) >= _ALIKE * len(one.words | other.words)


def _told(one: _Sentence) -> str:
    return f"{' and '.join(sorted(one.numbers.values()))} in {one.excerpt.passage.source}"


def _document(one: _Sentence) -> str:
    return one.excerpt.passage.document_id or one.excerpt.passage.source


def _numbers(text: str) -> dict[str, str]:
    return {number_form(one): one for one in _NUMBER.findall(text)}


def _sentences(excerpt: Excerpt, strips: dict[str, Strip]) -> Iterator[_Sentence]:
    """Those with a number and enough words; rows with a cell of words."""
    texts = [with_headers(strips[id_], excerpt.passage) for id_ in excerpt.strip_ids if id_ in strips]
    for text in map(quotable, texts or (excerpt.text[start:end] for start, end in split(excerpt.text))):
        said = _MARK.sub("", text)
        words, numbers = frozenset(_WORD.findall(said.casefold())), _numbers(said)
        if len(words) >= _FEWEST and numbers and (not _ROW.match(said) or _WORDED_CELL.search(said)):
            yield _Sentence(said, excerpt, words, numbers)

"""Two documents that say the same with other numbers, such as two versions of one rule. Pure."""

import re
from collections.abc import Iterator
from itertools import product

from crag_core.base.text.sentences import split
from crag_core.base.types.knowledge import Excerpt, Knowledge
from crag_core.trace.grounding.quoted_answer import CITATION, citations, quotable

_NUMBER = re.compile(r"(?<![\w.,:])\d+(?:[.,:]\d+)*(?!\w)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_ALIKE, _FEWEST = 0.8, 3


def disagreement(knowledge: Knowledge, text: str) -> str:
    """Of an answer: "Two documents differ in a number: 52 in a.md, 41 in b.md."; "" where none is found.

    A sentence of what the answer cites, with a number that the answer has, against those of other documents among the
    excerpts with at least 0.8 of the words in common (Jaccard) and no number.
    """
    excerpts = knowledge.excerpts
    cited = [excerpts[number - 1] for number in citations(text, len(excerpts))]
    said = set(_NUMBER.findall(CITATION.sub("", text)))
    for one, other in product(cited, excerpts):
        if _document(one) == _document(other):
            continue
        for (words, numbers), (others, other_numbers) in product(_sentences(one), _sentences(other)):
            is_alike = len(words & others) >= _ALIKE * len(words | others)
            if is_alike and numbers & said and not numbers & other_numbers:
                return f"Two documents differ in a number: {_told(one, numbers)}, {_told(other, other_numbers)}."
    return ""


def _told(excerpt: Excerpt, numbers: frozenset[str]) -> str:
    return f"{' and '.join(sorted(numbers))} in {excerpt.passage.source}"


def _document(excerpt: Excerpt) -> str:
    return excerpt.passage.document_id or excerpt.passage.source


def _sentences(excerpt: Excerpt) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Words and numbers of each that has both."""
    text = quotable(excerpt.text)
    for start, end in split(text):
        words = frozenset(_WORD.findall(text[start:end].casefold()))
        numbers = frozenset(_NUMBER.findall(text[start:end]))
        if len(words) >= _FEWEST and numbers:
            yield words, numbers

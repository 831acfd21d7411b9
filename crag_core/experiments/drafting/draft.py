"""Labelled questions drafted from the documents themselves, for somebody to edit.

A question is search words made from one plain sentence (no heading, list mark, table row or code), so that its answer
is known by construction; a language model may word it (`draft_with_model`). The same question becomes a near miss once
the passages with that sentence count as not indexed; what is about something else altogether is given.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from crag_core.base.text.sentences import split
from crag_core.base.text.words import fold, words
from crag_core.base.types.passages import Passage
from crag_core.experiments.drafting.keywords import LITTLE_WORDS, Asked, search_words
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, Origin

_HEADINGS = re.compile(r"(?:[ \t]{0,3}#{1,6}[ \t][^\n]*\n+)+")
_NUMBERED_HEADING = re.compile(r"\d{1,2}\.[ \t]+[^\n.:;,]{2,40}\n[ \t]*(?=[A-Z])")
_MARK = re.compile(r"(?:[-*+•‣◦–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+(?:\[[ xX]\]\s+)?")
_TABLE_OR_CODE = re.compile(r"^\s*(?:\||```|~~~|#)", re.MULTILINE)
_NEW_LINE = re.compile(r"([^\n]*)\n\s*(\S)")
_EDGE = r"[^\W\u0e00-\u0fff\u3040-\u9fff]"
"""A letter or digit of a script that parts its words by white space."""

_WRAPPED = 45
"""Characters: a shorter line before one that begins with a capital is a title rather than the start of a sentence."""

_END = re.compile(r"""[.。．।۔॥։።]["'”’“»«)\]」』）]*$""")
_STEM = 6
"""Letters of a word that are compared, so that endings do not matter."""
_CLEAR = 3
"""Words that a question must share with its sentence to be clear in any collection; with fewer it must be unique."""
_MADE = re.compile(r"[Mm]ade from the sentence: “(.*)”", re.DOTALL)


@dataclass(frozen=True)
class Piece:
    """`text` stands in its passage word for word; `is_plain`: it reads as one whole sentence of running text."""

    text: str
    is_plain: bool


def pieces(passage: str) -> list[Piece]:
    """Sentences, list items and rows in order; headings stand apart from what they announce."""
    found: list[Piece] = []
    for start, end in split(passage):
        text = passage[start:end]
        for heading in (_HEADINGS.match(text), _NUMBERED_HEADING.match(text)):
            if heading and (rest := text[heading.end() :].strip()):
                found.append(Piece(heading.group().strip(), False))
                text = rest
        mark = _MARK.match(text)
        text = text[mark.end() :] if mark else text
        if text:
            found.append(Piece(text, _is_plain(text)))
    return found


def standing(text: str) -> re.Pattern[str]:
    """Finds `text` as whole words, whatever its case and wherever its lines were broken; expects some words."""
    flexible = r"\s+".join(re.escape(word) for word in text.split())
    return re.compile(f"(?<!{_EDGE}){flexible}(?!{_EDGE})", re.IGNORECASE)


def _is_plain(text: str) -> bool:
    if _TABLE_OR_CODE.search(text) or not _END.search(text):
        return False
    breaks = _NEW_LINE.finditer(text)
    return all(len(line.strip()) >= _WRAPPED or not after.isupper() for line, after in (b.groups() for b in breaks))


# --- drafts -----------------------------------------------------------------------------------------------------------


def draft(
    passages: Sequence[Passage], off_corpus: Sequence[str], count: int, seed: int
) -> tuple[LabelledQuestion, ...]:
    """At most `count` questions: half answered by `passages`, a quarter nearly, a quarter of `off_corpus`.

    Documents take turns, and no sentence is asked for twice. Where the passages yield too few questions there are
    fewer of all three kinds. `off_corpus` are everyday questions; those that the passages are about are left out. Equal
    arguments give equal questions.
    """
    random, count = Random(seed), max(count, 0)
    corpus = _Corpus(passages)
    drafts = _first(corpus.drafts(random), count - count // 4)
    near = _near_misses(drafts, min(count // 4, len(drafts) // 3), random)
    others = [question for question in random.sample(off_corpus, len(off_corpus)) if not corpus.is_about(question)]
    asked = {fold(one.question) for one in drafts}
    fresh = dict.fromkeys(question for question in others if fold(question) not in asked)
    return (
        *(one.labelled(False) for one in drafts if one not in near),
        *(one.labelled(True) for one in drafts if one in near),
        *(_off_corpus(question) for question in list(fresh)[: min(count // 4, (len(drafts) + 1) // 3)]),
    )


def sentence_of(question: LabelledQuestion) -> str:
    """The sentence that a question was drafted from, white space aside; "" where it was made in another way."""
    made = _MADE.search(question.note) if question.origin is Origin.DRAFTED else None
    return question.without or (made.group(1) if made else "")


@dataclass(frozen=True)
class _Draft:
    """`can_miss`: without its sentence the documents are still about the question, and do not answer it."""

    question: str
    answer: str
    sentence: str
    document: str
    can_miss: bool

    def labelled(self, is_near_miss: bool) -> LabelledQuestion:
        note = f"Search words made from the sentence: “{' '.join(self.sentence.split())}”"
        if is_near_miss:
            note += " Chunks with that sentence count as not indexed."
        return LabelledQuestion(
            self.question,
            Expected.AMBIGUOUS if is_near_miss else Expected.CORRECT,
            () if is_near_miss else (self.answer,),
            self.document,
            self.sentence if is_near_miss else "",
            Origin.DRAFTED,
            note,
        )


def _off_corpus(question: str) -> LabelledQuestion:
    note = "An everyday question about something else than the documents."
    return LabelledQuestion(question, Expected.INCORRECT, origin=Origin.DRAFTED, note=note)


class _Corpus:
    """The passages by document, and which words occur where."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = [passage for passage in passages if passage.text.strip()]
        self.folded = [fold(passage.text) for passage in self.passages]
        self.stems = [_stems(passage.text) for passage in self.passages]
        self.places: dict[str, list[int]] = {}
        for number, stems in enumerate(self.stems):
            for stem in stems:
                self.places.setdefault(stem, []).append(number)

    def drafts(self, random: Random) -> Iterator[_Draft]:
        """The documents in turn, in an order of chance; of one sentence only one question."""
        documents: dict[str, list[Passage]] = {}
        for passage in self.passages:
            documents.setdefault(_document_of(passage), []).append(passage)
        found = [_Document(self, passages) for passages in random.sample([*documents.values()], len(documents))]
        used: set[str] = set()
        return _in_turn([document.drafts(random, used) for document in found])

    def rarity(self, word: str) -> int:
        return sum(len(self.places.get(stem, ())) for stem in _stems(word))

    def is_about(self, question: str) -> bool:
        """Whether most of what a question is about stands together somewhere, or nothing is known of its subject."""
        stems = _stems(question)
        met: Counter[int] = Counter()
        for stem in stems:
            met.update({place for number in self.places.get(stem, ()) for place in self._around(number)})
        return not stems or any(2 * shared > len(stems) for shared in met.values())

    def _around(self, number: int) -> list[int]:
        document = _document_of(self.passages[number])
        near = range(max(number - 1, 0), min(number + 2, len(self.passages)))
        return [place for place in near if _document_of(self.passages[place]) == document]

    def sharing(self, stems: frozenset[str], least: int) -> list[int]:
        """Numbers of the passages that hold at least so many of `stems`."""
        shared = Counter(number for stem in stems for number in self.places.get(stem, ()))
        return sorted(number for number, count in shared.items() if count >= least)


class _Document:
    """One document: its passages, and its pieces, each once though passages overlap."""

    def __init__(self, corpus: _Corpus, passages: Sequence[Passage]) -> None:
        self.corpus = corpus
        self.passages = passages

    @cached_property
    def pieces(self) -> dict[str, Piece]:
        found: dict[str, Piece] = {}
        for passage in self.passages:
            for piece in pieces(passage.text):
                found.setdefault(fold(piece.text), piece)
        return found

    @cached_property
    def stems(self) -> dict[str, frozenset[str]]:
        return {folded: _stems(folded) for folded in self.pieces}

    def drafts(self, random: Random, used: set[str]) -> Iterator[_Draft]:
        """`used`: sentences and questions that are taken; what is drafted here joins them."""
        plain = [folded for folded, piece in self.pieces.items() if piece.is_plain]
        for folded in random.sample(plain, len(plain)):
            found = self._drafted(folded) if folded not in used else None
            if found and fold(found.question) not in used:
                used |= {folded, fold(found.question)}
                yield found

    def _drafted(self, folded: str) -> _Draft | None:
        sentence = self.pieces[folded].text
        asked = search_words(sentence, self.corpus.rarity)
        if asked is None or asked.answer not in sentence or not self._is_clear(asked, folded):
            return None
        return _Draft(asked.question, asked.answer, sentence, self.passages[0].source, self._can_miss(asked, folded))

    def _is_clear(self, asked: Asked, folded: str) -> bool:
        """Whether question and answer belong to this sentence of the document, and to no other."""
        others = [other for other in self.pieces if other != folded and other not in folded]
        answer = standing(asked.answer)
        if len(answer.findall(folded)) > 1 or any(answer.search(other) for other in others):
            return False
        stems = _stems(asked.question)
        shared = len(stems & self.stems[folded])
        if not stems or any(len(stems & self.stems[other]) >= shared for other in others):
            return False
        elsewhere = [
            number for number in self.corpus.sharing(stems, len(stems)) if folded not in self.corpus.folded[number]
        ]
        return shared >= _CLEAR or (shared == _CLEAR - 1 and not elsewhere)

    def _can_miss(self, asked: Asked, folded: str) -> bool:
        stems, answer = _stems(asked.question), standing(asked.answer)
        texts = self.corpus.folded
        others = [number for number in self.corpus.sharing(stems, 1) if folded not in texts[number]]
        half = set(self.corpus.sharing(stems, max(2, (len(stems) + 1) // 2)))
        names = {passage.id for passage in self.passages}
        is_answered = any(answer.search(texts[number]) for number in others if number in half)
        return not is_answered and any(n in half or self.corpus.passages[n].id in names for n in others)


def _near_misses(drafts: Sequence[_Draft], count: int, random: Random) -> set[_Draft]:
    """Those that become near misses; the documents take turns here as well."""
    by_document: dict[str, list[_Draft]] = {}
    for one in random.sample(drafts, len(drafts)):
        if one.can_miss:
            by_document.setdefault(one.document, []).append(one)
    return set(_first(_in_turn([iter(some) for some in by_document.values()]), count))


def _in_turn(sources: Iterable[Iterator[_Draft]]) -> Iterator[_Draft]:
    """One of each source, then another of each, until all are empty."""
    left = list(sources)
    while left:
        for source in list(left):
            found = next(source, None)
            if found is None:
                left.remove(source)
            else:
                yield found


def _first(drafts: Iterator[_Draft], count: int) -> list[_Draft]:
    return [one for one, _ in zip(drafts, range(count), strict=False)]


def _document_of(passage: Passage) -> str:
    return passage.document_id or passage.source


def _stems(text: str) -> frozenset[str]:
    """The words of a text that tell what it is about, without their endings."""
    content = (word for word in words(text) if word not in LITTLE_WORDS)
    return frozenset((word[:-1] if len(word) > 3 and word.endswith("s") else word)[:_STEM] for word in content)

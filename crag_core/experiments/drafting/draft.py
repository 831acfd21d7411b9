"""Labelled questions drafted from the documents themselves, for somebody to edit.

A question is search words made from one plain sentence (no heading, list mark, table row or code), so that its answer
is known by construction; a language model may word it (`draft_with_model`). The same question becomes a near miss once
the passages with that sentence count as not indexed; what is about something else altogether is given.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from random import Random

from crag_core.base.text.sentences import split
from crag_core.base.text.words import fold, words
from crag_core.base.types.passages import Passage
from crag_core.experiments.drafting.keywords import little_words, search_words
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, Origin

_HEADINGS = re.compile(r"(?:[ \t]{0,3}#{1,6}[ \t][^\n]*\n+)+")
_NUMBERED_HEADING = re.compile(r"\d{1,2}\.[ \t]+[^\n.:;,]{2,40}\n[ \t]*(?=[A-Z])")
_MARK = re.compile(r"(?:[-*+•‣◦–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+(?:\[[ xX]\]\s+)?")
_TABLE_OR_CODE = re.compile(r"^\s*(?:\||```|~~~|#)", re.MULTILINE)
_TITLE = re.compile(r"^[^\n]{0,44}\n\s*[^\W\d_a-z]", re.MULTILINE)
"""A short line before one that begins with a capital is a title rather than the start of a sentence."""
_EDGE = r"[^\W\u0e00-\u0fff\u3040-\u9fff]"
"""A letter or digit of a script that parts its words by white space."""

_END = re.compile(r"""[.。．।۔॥։።]["'”’“»«)\]」』）]*$""")
_STEM = 6
"""Letters of a word that are compared, so that endings do not matter."""
_MADE = re.compile(r"[Mm]ade from the sentence: “(.*)”", re.DOTALL)


def pieces(passage: str) -> dict[str, bool]:
    """Sentences, list items and rows, word for word, and whether each reads as one whole sentence of running text.

    Headings stand apart from what they announce.
    """
    found: dict[str, bool] = {}
    for start, end in split(passage):
        text = passage[start:end]
        for heading in (_HEADINGS.match(text), _NUMBERED_HEADING.match(text)):
            if heading and (rest := text[heading.end() :].strip()):
                found[heading.group().strip()] = False
                text = rest
        mark = _MARK.match(text)
        text = text[mark.end() :] if mark else text
        if text:
            found[text] = bool(_END.search(text)) and not _TABLE_OR_CODE.search(text) and not _TITLE.search(text)
    return found


def standing(text: str) -> re.Pattern[str]:
    """Finds `text` as whole words, whatever its case and wherever its lines were broken; expects some words."""
    flexible = r"\s+".join(re.escape(word) for word in text.split())
    return re.compile(f"(?<!{_EDGE}){flexible}(?!{_EDGE})", re.IGNORECASE)


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
    drafts: dict[LabelledQuestion, bool] = {}
    used: set[str] = set()
    for one, is_missable in corpus.drafts(random):
        if len(drafts) >= count - count // 4:
            break
        own = {fold(sentence_of(one)), fold(one.question)}
        if not own & used:
            drafts[one] = is_missable
            used |= own
    can_miss = [one for one, can in drafts.items() if can]
    near = random.sample(can_miss, min(count // 4, len(drafts) // 3, len(can_miss)))
    others = [one for one in random.sample(off_corpus, len(off_corpus)) if not corpus.is_about(one)]
    fresh = list(dict.fromkeys(one for one in others if fold(one) not in used))
    return (
        *(one for one in drafts if one not in near),
        *map(_near_miss, near),
        *map(_off_corpus, fresh[: min(count // 4, (len(drafts) + 1) // 3)]),
    )


def sentence_of(question: LabelledQuestion) -> str:
    """The sentence that a question was drafted from, white space aside; "" where it was made in another way."""
    made = _MADE.search(question.note) if question.origin is Origin.DRAFTED else None
    return made.group(1) if made else ""


def _near_miss(one: LabelledQuestion) -> LabelledQuestion:
    note = f"{one.note} Chunks with that sentence count as not indexed."
    return replace(one, expected=Expected.AMBIGUOUS, answers=(), without=sentence_of(one), note=note)


def _off_corpus(question: str) -> LabelledQuestion:
    note = "An everyday question about something else than the documents."
    return LabelledQuestion(question, Expected.INCORRECT, origin=Origin.DRAFTED, note=note)


_Draft = tuple[LabelledQuestion, bool]
"""And whether without its sentence the documents are still about the question, and do not answer it."""


class _Corpus:
    """The passages, which words occur where, and the pieces of each document.

    `pieces`, by document and folded text, are there once each, though passages overlap; the value tells the plain ones.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        there = [passage for passage in passages if passage.text.strip()]
        self.texts = [fold(passage.text) for passage in there]
        self.owners = [passage.document_id or passage.source for passage in there]
        self.sources = dict(zip(reversed(self.owners), (one.source for one in reversed(there)), strict=True))
        self.places: dict[str, list[int]] = defaultdict(list)
        self.pieces: dict[str, dict[str, tuple[str, bool]]] = {owner: {} for owner in self.owners}
        for number, (owner, passage) in enumerate(zip(self.owners, there, strict=True)):
            found = pieces(passage.text).items()
            self.pieces[owner] |= {fold(piece): (piece, is_plain) for piece, is_plain in found}
            for stem in _stems(self.texts[number]):
                self.places[stem].append(number)

    def drafts(self, random: Random) -> Iterator[_Draft]:
        """The documents in turn, in an order of chance, until none has another one."""
        owners = random.sample([*self.pieces], len(self.pieces))
        for turn in zip_longest(*(self._of_document(owner, random) for owner in owners)):
            yield from filter(None, turn)

    def is_about(self, question: str) -> bool:
        """Whether most of what a question is about stands together somewhere, or nothing is known of its subject."""
        stems = _stems(question)
        return not stems or any(2 * shared > len(stems) for shared in self._met(stems).values())

    def _met(self, stems: Iterable[str]) -> Counter[int]:
        """By the number of a passage, how many of `stems` it holds."""
        return Counter(number for stem in stems for number in self.places.get(stem, ()))

    def _of_document(self, owner: str, random: Random) -> Iterator[_Draft]:
        plain = [folded for folded, (_, is_plain) in self.pieces[owner].items() if is_plain]
        found = (self._drafted(owner, folded) for folded in random.sample(plain, len(plain)))
        yield from filter(None, found)

    def _drafted(self, owner: str, folded: str) -> _Draft | None:
        """None where a sentence states nothing, or question and answer do not belong to it and no other piece."""
        sentence = self.pieces[owner][folded][0]
        question, said = search_words(sentence, lambda word: self._met(_stems(word)).total()) or ("", "")
        if not question or said not in sentence:
            return None
        stems, answer = _stems(question), standing(said)
        shared = len(stems & _stems(folded))
        others = (other for other in self.pieces[owner] if other not in folded)
        if not shared or len(answer.findall(folded)) > 1:
            return None
        if any(answer.search(other) or len(stems & _stems(other)) >= shared for other in others):
            return None
        met = {number: count for number, count in self._met(stems).items() if folded not in self.texts[number]}
        half = max(2, (len(stems) + 1) // 2)
        is_answered = any(count >= half and answer.search(self.texts[number]) for number, count in met.items())
        is_met = any(count >= half or self.owners[number] == owner for number, count in met.items())
        note = f"Search words made from the sentence: “{' '.join(sentence.split())}”"
        drafted = LabelledQuestion(
            question, Expected.CORRECT, (said,), self.sources[owner], origin=Origin.DRAFTED, note=note
        )
        return drafted, is_met and not is_answered


@lru_cache(10_000)
def _stems(text: str) -> frozenset[str]:
    """The words of a text that tell what it is about, without their endings."""
    content = (word for word in words(text) if word not in little_words())
    return frozenset((word[:-1] if len(word) > 3 and word.endswith("s") else word)[:_STEM] for word in content)

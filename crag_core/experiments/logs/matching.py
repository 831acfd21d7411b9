"""Whether a text holds what is known to be right: word for word, by its numbers and names, or by most of its words.

By that the records of a log are labelled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from threading import Event

from crag_core.base.data_files import DATA
from crag_core.base.protocols import Piece, SupportMeter
from crag_core.base.text.refusals import is_refusal
from crag_core.base.text.words import fold, words
from crag_core.experiments.comparison.outcome import contains, tokens
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, Origin, UnlabelledQuestion
from crag_core.experiments.logs.record import LogRecord, RetrievalLog
from crag_core.trace.grounding.citation_check import LACKING
from crag_core.trace.grounding.claims import bare_word, names_in, sentences, terms_of
from crag_core.trace.grounding.numbers import number_in

SHORT = 8
"""Words of a right answer up to which all of it must be there; of a longer one, most of what it says."""

ANCHORED = 0.35
"""The least that a text must hold of question and short answer together: "2" alone stands in many texts."""

MOST_SAID = 0.6
"""The share of what a right answer says, beyond the question, that an answer must say to be right."""

SLIGHTLY = 0.15
"""The same of an answer of several words, which hardly stands anywhere by chance."""

_FEW, _NEARLY = 4, 0.75  # words of a short answer from which some may be missing, and the share that may not
_LITTLE = 3  # letters
_SAME = 0.8  # share of the words of a chunk that is known to hold the answer
_LEAST = 20  # characters of a text that is looked for in another
_YES_FIRST = re.compile(r"^(?:yes|no|ja|nein|oui|non|sí|si)[,;:.–—-]+\s*", re.IGNORECASE)
_YES_OR_NO = frozenset({"yes", "no", "true", "false", "ja", "nein", "oui", "non", "sí", "si"})


def declines(answer: str) -> bool:
    """Whether an answer says that it has none, or there is none."""
    return not answer.strip() or is_refusal(answer)


@dataclass(frozen=True)
class Reference:
    """What is known to be right of a record; `meter` measures by words how far one text stands in others."""

    record: LogRecord
    meter: SupportMeter

    @cached_property
    def spans(self) -> tuple[str, ...]:
        """The right answers that can be looked for: more than yes or no, and without that at their beginning."""
        bare = (_YES_FIRST.sub("", one) for one in self.record.references)
        return tuple(one for one in bare if tokens(one) and " ".join(tokens(one)) not in _YES_OR_NO)

    @property
    def can_tell(self) -> bool:
        """Whether it can be looked for in chunks."""
        return bool(self.spans or self.record.reference_contexts or self.record.reference_ids)

    def is_held_by(self, text: str, id_: str) -> bool:
        """Whether a chunk is one of those that are known to hold the answer, or has most of such a one; or holds a
        right answer and is about the question, where a few words could stand in any."""
        if id_ in self.record.reference_ids or any(_alike(text, one) for one in self.record.reference_contexts):
            return True
        return any(self._is_in(span, text) and self._is_asked(span, text) for span in self.spans)

    def is_left_in(self, text: str) -> bool:
        """Whether what is left of such a chunk still holds it."""
        return any(self._is_in(span, text) for span in self.spans)

    def is_right(self, answer: str) -> bool | None:
        """None where the log does not tell what is right, or an answer cannot be compared with it."""
        if not self.record.references:
            return None
        if not tokens(answer) or declines(answer):
            return False
        if not self.spans:  # yes or no
            first = tokens(answer)[:1]
            return first == tokens(self.record.references[0])[:1] if set(first) <= _YES_OR_NO else None
        return any(self._says(span, answer) for span in self.spans)

    def _says(self, span: str, answer: str) -> bool:
        """It stands in the answer; or one says most of what the other does beyond the question, and no other fact."""
        if contains(answer, [span]):
            return True
        asked = _exact(self.record.question)
        wanted, said = _exact(span) - asked, _exact(answer) - asked
        if _is_short(span) or not wanted:
            return bool(wanted) and wanted <= said
        alien, missing = _facts(answer) - _exact(span) - asked, _facts(span) - _exact(answer) - asked
        is_part = _is_short(answer) and bool(said) and said <= wanted
        return not (alien and missing) and (is_part or len(wanted & said) >= MOST_SAID * len(wanted))

    def _is_in(self, span: str, text: str) -> bool:
        if contains(text, [span]):
            return True
        pieces = _pieces_of(text)
        if _is_short(span):
            wanted = _exact(span)
            least = len(wanted) if len(wanted) < _FEW else _NEARLY * len(wanted)
            return bool(wanted) and any(len(wanted & _exact(piece.text)) >= least for piece in pieces)
        wanted = (_exact(span) - _exact(self.record.question)) or _exact(span)
        backings = self.meter.measure([span[start:end] for start, end in sentences(span)], pieces, Event())
        scores = [one.score for one in backings if one.score is not None]
        is_backed = not scores or sum(scores) / len(scores) >= LACKING
        return is_backed and len(wanted & _exact(text)) >= MOST_SAID * len(wanted)

    def _is_asked(self, span: str, text: str) -> bool:
        claim = f"{self.record.question.rstrip(' ?')}: {span}"
        score = self.meter.measure([claim], _pieces_of(text), Event())[0].score
        is_weak = len(_exact(span)) == 1 or all(term[:1].isdigit() for term in _exact(span))
        return score is None or score >= (ANCHORED if is_weak else SLIGHTLY)


def questions_of(
    log: RetrievalLog, meter: SupportMeter
) -> tuple[tuple[LabelledQuestion, ...], tuple[UnlabelledQuestion, ...]]:
    """The records that have a label, and those that wait for one.

    A label of the log is kept; else a chunk that holds the right answer makes it "answered", none the opposite.
    """
    known: list[LabelledQuestion] = []
    unknown: list[UnlabelledQuestion] = []
    for record, asked in zip(log.records, log.gradable, strict=True):
        label, note = _label_of(record, meter)
        if label is None:
            unknown.append(asked)
            continue
        known.append(
            LabelledQuestion(
                record.question, label, record.references, origin=Origin.LOG, note=note, log=log.name, record=record.id
            )
        )
    return tuple(known), tuple(unknown)


def _label_of(record: LogRecord, meter: SupportMeter) -> tuple[Expected | None, str]:
    """And why, in words; the rank of a chunk counts from 1."""
    if record.expected is not None:
        return record.expected, "labelled in the log"
    truth = Reference(record, meter)
    if not truth.can_tell:
        return None, ""
    holding = (rank for rank, one in enumerate(record.contexts, start=1) if truth.is_held_by(one.text, one.id))
    if rank := next(holding, 0):
        return Expected.CORRECT, f"chunk {rank} holds the right answer"
    return Expected.UNANSWERABLE, "no chunk holds the right answer"


def _pieces_of(text: str) -> tuple[Piece, ...]:
    """The sentences of a chunk, as evidence."""
    return tuple(Piece("", text[start:end], 1) for start, end in sentences(text))


def _is_short(text: str) -> bool:
    return len(words(text)) <= SHORT


@cache
def _little_words() -> frozenset[str]:
    return frozenset((DATA / "stopwords.txt").read_text("utf-8").split())


@lru_cache(4096)
def _exact(text: str) -> frozenset[str]:
    """Its words that are not little, numbers as digits, without plural endings."""
    said = {number_in(word) or bare_word(word) for word in words(text)} - _little_words()
    return frozenset(term[:-1] if term.endswith("s") and len(term) > _LITTLE else term for term in said)


def _facts(text: str) -> frozenset[str]:
    """Its numbers and names."""
    names = {term for name in names_in(text, _little_words()) for term in _exact(name)}
    return frozenset(names | {term for term in _exact(text) if term[:1].isdigit()})


def _alike(text: str, other: str) -> bool:
    one, two = fold(text), fold(other)
    if min(len(one), len(two)) >= _LEAST and (one in two or two in one):
        return True
    smaller, larger = sorted((terms_of(text), terms_of(other)), key=len)
    return bool(smaller) and len(smaller & larger) >= _SAME * len(larger)

"""Whether a text holds what is known to be right: word for word, by its numbers and names, or by most of its words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Event

from crag_core.base.protocols import Piece, SupportMeter
from crag_core.base.text.words import fold, words
from crag_core.experiments.comparison.outcome import contains, tokens
from crag_core.experiments.logs.record import LogRecord
from crag_core.trace.grounding.citation_check import LACKING
from crag_core.trace.grounding.claims import claim_of, sentences, terms_of

SHORT = 8
"""Words of a right answer up to which all of it must be there; of a longer one, most of what it says."""

ANCHORED = 0.35
"""The least that a text must hold of question and short answer together: "2" alone stands in many texts."""

MOST_SAID = 0.6
"""The share of what a right answer says, beyond the question, that an answer must say to be right."""

_SAME = 0.8  # share of the words of a chunk that is known to hold the answer
_LEAST = 20  # characters of a text that is looked for in another
_DECLINES = re.compile(
    r"\b(?:(?:do|does|did|could|can|was|were|is|am)(?: not|n['’]t)|cannot|can ?not|unable to|not able to) "
    r"(?:\w+ ){0,3}?(?:know|answer|find|found|determine|provide|contain|mention|specify|specified|state|say|sure|tell|"
    r"include|available|possible|help|address)"
    r"|\b(?:no|not enough|insufficient|lacks?) (?:\w+ ){0,3}?(?:information|evidence|context|mention|answer|details?)\b"
    r"|\b(?:weiß ich nicht|keine (?:angabe|information)\w*|nicht beantwort\w*|geht nicht hervor)"
    r"|\b(?:je ne sais pas|aucune information|pas d['’]information|ne permet\w* pas)"
    r"|\b(?:no lo sé|no (?:hay|tengo) información|no se (?:menciona|indica))",
    re.IGNORECASE,
)
_AT_ONCE = 300  # characters; whoever declines says so at once
_YES_OR_NO = frozenset({"yes", "no", "true", "false", "ja", "nein", "oui", "non", "sí", "si"})


def declines(answer: str) -> bool:
    """Whether an answer says that it has none, or there is none."""
    return not answer.strip() or bool(_DECLINES.search(answer[:_AT_ONCE]))


@dataclass(frozen=True)
class Truth:
    """What is known to be right of a record; `meter` measures by words how far one text stands in others."""

    record: LogRecord
    meter: SupportMeter

    @cached_property
    def spans(self) -> tuple[str, ...]:
        """The right answers that can be looked for: more than yes or no."""
        return tuple(one for one in self.record.references if tokens(one) and " ".join(tokens(one)) not in _YES_OR_NO)

    @property
    def can_tell(self) -> bool:
        """Whether it can be looked for in chunks."""
        return bool(self.spans or self.record.reference_contexts or self.record.reference_ids)

    def stands_in(self, text: str) -> bool:
        """Whether a chunk, or what is left of it, holds a right answer."""
        return any(self._holds(span, text) for span in self.spans)

    def is_known(self, text: str, id_: str) -> bool:
        """Whether a chunk is one of those that are known to hold the answer, or has most of such a one."""
        return id_ in self.record.reference_ids or any(_alike(text, one) for one in self.record.reference_contexts)

    def is_right(self, answer: str) -> bool | None:
        """None where the log does not tell what is right, or an answer cannot be compared with it."""
        if not self.record.references:
            return None
        said = " ".join(tokens(answer))
        if not said or declines(answer):
            return False
        if any(contains(answer, [one]) for one in self.spans):
            return True
        if not self.spans:  # yes or no
            first = tokens(answer)[:1]
            return first == tokens(self.record.references[0])[:1] if set(first) <= _YES_OR_NO else None
        return any(self._says(span, answer) for span in self.spans)

    def _says(self, span: str, answer: str) -> bool:
        """Most of what it says beyond the question, and every number of it."""
        asked = terms_of(self.record.question)
        wanted = (_content(span) - asked) or _content(span)
        there = terms_of(answer)
        numbers = {term for term in wanted if term[:1].isdigit()}
        return bool(wanted) and numbers <= there and len(wanted & there) >= MOST_SAID * len(wanted)

    def _holds(self, span: str, text: str) -> bool:
        pieces = pieces_of(text)
        if len(words(span)) > SHORT:
            backings = self.meter.measure([text[start:end] for start, end in sentences(span)], pieces, Event())
            scores = [one.score for one in backings if one.score is not None]
            is_there = bool(scores) and sum(scores) / len(scores) >= LACKING and self._says(span, text)
            return is_there or fold(span) in fold(text)
        if not (contains(text, [span]) or self._in_one(span, pieces)):
            return False
        claim = f"{self.record.question.rstrip(' ?')}: {span}"
        score = self.meter.measure([claim], pieces, Event())[0].score
        return score is None or score >= ANCHORED

    def _in_one(self, span: str, pieces: Sequence[Piece]) -> bool:
        """All that it says in one sentence, in whatever order, numbers in digits or words."""
        wanted = _content(span)
        return bool(wanted) and any(wanted <= terms_of(piece.text) for piece in pieces)


def pieces_of(text: str, number: int = 1, id_: str = "") -> tuple[Piece, ...]:
    """The sentences of a chunk, as evidence."""
    return tuple(Piece(id_, text[start:end], number) for start, end in sentences(text))


def _content(text: str) -> frozenset[str]:
    return terms_of(claim_of(" ".join(tokens(text))))


def _alike(text: str, other: str) -> bool:
    one, two = fold(text), fold(other)
    if min(len(one), len(two)) >= _LEAST and (one in two or two in one):
        return True
    smaller, larger = sorted((terms_of(text), terms_of(other)), key=len)
    return bool(smaller) and len(smaller & larger) >= _SAME * len(larger)

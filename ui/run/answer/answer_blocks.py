"""An answer as its page shows it: in blocks of sentences, each with its links, its standing and what supports it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crag_core.base.protocols import Piece
from crag_core.base.text.display import clean, shortened
from crag_core.base.types import Answer, Excerpt, Origin, Support
from crag_core.trace.edits import edited
from crag_core.trace.grounding.citation_check import (
    LACKING,
    SUPPORTED,
    WEAK,
    WORDS,
    Held,
    Standing,
    lacking,
    pieces_of,
    quoted,
    standing,
    supported_elsewhere,
)
from crag_core.trace.grounding.claims import claim_of, is_prose
from crag_core.trace.grounding.quoted_answer import CITATION, quotable
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace
from ui.run.passages.passages import anchor

SIGNS = {Standing.SUPPORTED: "✓", Standing.WEAK: "≈", Standing.NONE: "✗", Standing.UNCHECKED: "–"}
_QUOTED = 400  # characters of a supporting sentence; a table without any full stop is one sentence
_HINTED = 160
_WHY_UNCHECKED = (
    "Not compared with the evidence: another language or script, code, or a sentence that claims nothing by itself."
)
_WHY_UNJUDGED = "Not judged: the model's reply could not be read, or it is code or claims nothing by itself."

Part = tuple[str, str, str]
"""Words, where they lead to ("" for nowhere), and what is said of the link."""


@dataclass(frozen=True)
class Lines:
    """A recorded answer under what it was written from; `support` () where its sentences were not measured."""

    trace: Trace
    routed: Reroute
    answer: Answer

    @cached_property
    def support(self) -> tuple[Support, ...]:
        return self.trace.support or ()

    @property
    def excerpts(self) -> tuple[Excerpt, ...]:
        return self.routed.knowledge.excerpts

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        known = edited(self.trace)
        strips = (*(known.strips or ()), *((known.web.strips if known.web else None) or ()))
        return pieces_of(self.excerpts, strips)

    @cached_property
    def held(self) -> Held:
        return Held(self.pieces)

    @cached_property
    def judge(self) -> str:
        """The language model that was asked what supports each sentence; "" where words were compared."""
        by = self.trace.settings.support
        return "" if by == WORDS else clean(by)

    @cached_property
    def is_plain(self) -> bool:
        """Whether there is nothing to mark: every sentence stands in the evidence with all its words."""
        return all(one.score == 1.0 and not self._is_opinion(one) and not self.note(one) for one in self.support)

    def note(self, one: Support) -> str:
        """What is odd about the citations of a sentence."""
        absent = [f"[{number}]" for number in one.cited if not 1 <= number <= len(self.excerpts)]
        message = [f"cites {' and '.join(absent)}, which is not among its sources"] if absent else []
        elsewhere = supported_elsewhere(one, self.pieces)
        if elsewhere and len(absent) < len(one.cited):
            there = " and ".join(f"[{number}]" for number in one.cited if f"[{number}]" not in absent)
            message.append(f"cites {there}, but its support is in {' and '.join(f'[{n}]' for n in elsewhere)}")
        return "; ".join(message)

    def blocks(self) -> list[dict[str, Any]]:
        """Paragraphs, list items and lines of code, each with its sentences."""
        text, found = self.answer.text, list[dict[str, Any]]()
        spans = self.support or tuple(_lines(text))
        before = 0
        for number, one in enumerate(spans, start=1):
            said = text[one.start : one.end]
            if not found or "\n" in text[before : one.start]:
                found.append({"code": not is_prose(said) and said.lstrip()[:1] in "`~", "sentences": []})
            found[-1]["sentences"].append(self._sentence(number, one, said))
            before = one.end
        return found

    def _sentence(self, number: int, one: Support, said: str) -> dict[str, Any]:
        parts = [part for part in self._parts(said) if part[0]]
        if not self.support:
            return {"parts": parts, "standing": "", "note": ""}
        stands = standing(one.score)
        if self.is_plain:
            return {"parts": parts, "standing": "plain", "note": ""}
        message, quotes = self._describe(one), list(self._quotes(one))
        return {
            "number": number,
            "parts": parts,
            "standing": stands.name.lower(),
            "sign": SIGNS[stands],
            "word": "" if stands is Standing.SUPPORTED else str(stands),
            "spoken": f"Sentence {number}: ",
            "after": f"{stands if stands is Standing.SUPPORTED else ''}{message}; details",
            "hint": " ".join([f"{_capital(stands)}{message}.", *map(_hint, quotes[:1])]),
            "note": self.note(one),
            "head": self._opinion(one, stands, quotes) if self.judge else self._head(one, stands),
            "quotes": quotes,
        }

    def _describe(self, one: Support) -> str:
        """What is said behind the standing: the score, or who judged so."""
        if one.score is None:
            return ""
        if self.judge:
            return f", judged by {self.judge}" if self._is_opinion(one) else ", word for word"
        return f", score {one.score:.2f}"

    def _is_opinion(self, one: Support) -> bool:
        """A model was not asked about what stands in the evidence word for word."""
        claim = claim_of(self.answer.text[one.start : one.end])
        return bool(self.judge) and not (one.score == 1.0 and quoted(claim, one.cited, self.held))

    def _parts(self, said: str) -> Iterator[Part]:
        for at, part in enumerate(CITATION.split(said)):
            if at % 2:
                for place, number in enumerate(re.findall(r"\d+", part)):
                    yield " " if place else "", "", ""
                    yield self._citation(int(number))
            else:
                yield "\n".join(_spaced(line) for line in part.split("\n")), "", ""

    def _citation(self, number: int) -> Part:
        if not 1 <= number <= len(self.excerpts):
            return f"[{number}]", "", ""
        return f"[{number}]", self.href(number), clean(self.title(number))

    def href(self, number: int) -> str:
        excerpt = self.excerpts[number - 1]
        return f"#{anchor(excerpt.passage, rank_of(self.trace, excerpt))}"

    def title(self, number: int) -> str:
        passage = self.excerpts[number - 1].passage
        return f"{passage.source}, page {passage.page}" if passage.page else passage.source

    def _quotes(self, one: Support) -> Iterator[dict[str, str]]:
        """Each supporting piece once, under a cited number where it has one; a whole passage by its beginning."""
        for id_ in one.pieces:
            there = [piece for piece in self.pieces if piece.id == id_]
            there.sort(key=lambda piece: piece.excerpt not in one.cited)
            for piece in there[:1]:
                yield {
                    "text": shortened(clean(quotable(piece.text)) or clean(piece.text), _QUOTED),
                    "source": f"[{piece.excerpt}] {clean(self.title(piece.excerpt))}",
                    "href": self.href(piece.excerpt),
                }

    def _opinion(self, one: Support, stands: Standing, quotes: list[dict[str, str]]) -> str:
        if stands is Standing.UNCHECKED:
            return _WHY_UNJUDGED
        if not self._is_opinion(one):
            return "It stands in the evidence word for word, so no model was asked:"
        if stands is Standing.NONE:
            return f"Judged by {self.judge}: {stands}."
        rest = "It rests on:" if quotes else "No sentence of the evidence was named."
        return f"Judged by {self.judge}: {stands}. {rest}"

    def _head(self, one: Support, stands: Standing) -> str:
        if stands is Standing.UNCHECKED:
            return _WHY_UNCHECKED
        score = f"{one.score:.2f}"
        if stands is Standing.NONE:
            return f"Score {score}: less than {WEAK:.2f}, so nothing in the evidence supports this. {self._lacks(one)}"
        rest = "" if stands is Standing.SUPPORTED else f" {SUPPORTED:.2f} would count as supported. {self._lacks(one)}"
        return f"Score {score}.{rest} It rests on:"

    def _lacks(self, one: Support) -> str:
        """Why a sentence scores no more, where that can be said in words."""
        if one.score is None or one.score > LACKING:
            return ""
        facts = lacking(self.answer.text[one.start : one.end], self.held, one.pieces)
        return f"Not in the evidence: {', '.join(f'“{clean(fact)}”' for fact in facts)}." if facts else ""


def rank_of(trace: Trace, excerpt: Excerpt) -> int:
    """The place of an excerpt's passage in the list that its card stands in."""
    passages = trace.all_passages if excerpt.passage.origin is Origin.CORPUS else trace.web and trace.web.passages
    return next(rank for rank, passage in enumerate(passages or (), 1) if passage.id == excerpt.passage.id)


def _lines(text: str) -> Iterator[Support]:
    """The lines of a text that was not measured."""
    at = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            yield Support(at, at + len(line.rstrip()), None)
        at += len(line)


def _spaced(line: str) -> str:
    """`clean` trims the ends; the spaces around a citation must stay."""
    return (" " if line[:1].isspace() else "") + clean(line) + (" " if line[-1:].isspace() and line.strip() else "")


def _hint(quote: dict[str, str]) -> str:
    return f"{quote['source']}: “{shortened(quote['text'], _HINTED)}”"


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"

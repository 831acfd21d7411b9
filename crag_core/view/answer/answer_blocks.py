"""An answer in blocks of sentences, each with its links, its standing and what supports it; and its sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from crag_core.base.protocols import Piece
from crag_core.base.text.display import against, clean, sentence, shortened
from crag_core.base.text.markdown import without_marks
from crag_core.base.types.answers import Answer, AnswerState, Support
from crag_core.base.types.knowledge import Excerpt
from crag_core.trace.grounding.citation_check import (
    LACKING,
    SUPPORTED,
    WEAK,
    WORDS,
    PieceSet,
    SupportLevel,
    find_quotation,
    lacking,
    pieces_of,
    summed_up,
    support_level,
    supported_elsewhere,
)
from crag_core.trace.grounding.claims import claim_of, is_prose
from crag_core.trace.grounding.quoted_answer import (
    CITATION,
    EXTRACTIVE,
    citations,
    left_out,
    quotable,
    with_headers,
)
from crag_core.trace.reroute import caution
from crag_core.view.path.stages import PLACES, web_failure
from crag_core.view.run_view import Label, RunView
from crag_core.view.score_words import ALONE

SIGNS = {SupportLevel.SUPPORTED: "✓", SupportLevel.WEAK: "≈", SupportLevel.NONE: "✗", SupportLevel.UNCHECKED: "–"}
_QUOTED = 400  # characters of a supporting sentence; a table without any full stop is one sentence
_HINTED = 160
_SOURCE = 160
_WHY_UNCHECKED = (
    "Not compared with the evidence: another language or script, code, or a sentence that claims nothing by itself."
)
_WHY_UNJUDGED = "Not judged: the model's reply could not be read, or it is code or claims nothing by itself."

_ABOUT_WORDS = (
    "A score of 0 to 1 says how much of a sentence stands in the evidence: its words, rare ones counting most. A "
    "number, a name or a “not” that the evidence lacks keeps it at 0.50; units, rates and “at most” are words like "
    "others. It compares words and proves nothing: when it was measured, the words of 85 of 100 sentences with two "
    "names swapped were still found, of 31 of 100 answers invented to deceive, and of 16 of 100 true sentences not."
)
_ABOUT_MODEL = (
    "A language model was asked of each sentence whether the evidence supports it, but for those that stand there word "
    "for word. "
    "It was not told the question, and it may be wrong. How often is not known: measure it on sentences that people "
    "have labelled, with benchmarks/support.py --judge."
)
_MARKS = {
    SupportLevel.SUPPORTED: "words found, 0.55 or more",
    SupportLevel.WEAK: "words found in part, 0.35 or more",
    SupportLevel.NONE: "words not found",
    SupportLevel.UNCHECKED: "not checked: another language or script, code, or nothing that could be true or false",
}
_OPINIONS = {
    SupportLevel.SUPPORTED: "supported, all of it, or word for word in the evidence",
    SupportLevel.WEAK: "weakly supported: some of it is",
    SupportLevel.NONE: "nothing in the evidence supports this",
    SupportLevel.UNCHECKED: "not checked: the reply could not be read, code, or nothing that could be true or false",
}

Part = tuple[str, str, str]
"""Words, where they lead to ("" for nowhere), and what is said of the link."""


@dataclass(frozen=True)
class Quote:
    """A piece of the evidence that supports a sentence; `index` of its sentence, None for a whole passage."""

    text: str
    source: str
    href: str
    index: int | None


@dataclass(frozen=True)
class AnswerSentence:
    """`sign` is "" where nothing is to be marked, and then only `parts` count."""

    parts: tuple[Part, ...]
    standing: str = ""
    number: int = 0
    sign: str = ""
    word: str = ""
    spoken: str = ""
    after: str = ""
    hint: str = ""
    note: str = ""
    head: str = ""
    quotes: tuple[Quote, ...] = ()


@dataclass(frozen=True)
class Block:
    code: bool
    sentences: tuple[AnswerSentence, ...]


@dataclass(frozen=True)
class Source:
    number: int
    label: Label
    quoted: str
    is_cited: bool


@dataclass(frozen=True)
class AnswerBlocks:
    """An answer under what it was written from."""

    view: RunView
    answer: Answer

    @property
    def support(self) -> tuple[Support, ...]:
        """What the record holds of its sentences; () where nothing, and of an answer that the run did not write."""
        return (self.view.trace.support or ()) if self.answer == self.view.trace.answer else ()

    @property
    def excerpts(self) -> tuple[Excerpt, ...]:
        return self.view.routed.knowledge.excerpts

    @cached_property
    def _caution(self) -> tuple[str, str]:
        return caution(self.view.trace, replace(self.view.routed, answer=self.answer), ALONE)

    @property
    def is_quoted(self) -> bool:
        return self.answer.writer == EXTRACTIVE

    @property
    def title(self) -> str:
        return clean(self._caution[0]) or "Answer"

    @property
    def sum(self) -> str:
        """How many sentences are supported; of quotations, which stand in the evidence word for word, nothing."""
        return summed_up(self.support, self.judge or WORDS) if self.support and not self.is_quoted else ""

    @property
    def about(self) -> str:
        return _ABOUT_MODEL if self.judge else _ABOUT_WORDS

    @property
    def marks(self) -> tuple[tuple[str, str], ...]:
        return tuple((SIGNS[kind], meaning) for kind, meaning in (_OPINIONS if self.judge else _MARKS).items())

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        return sources_of(self.view, citations(self.answer.text, len(self.excerpts)))

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """(kind, sentence): who wrote it, whether it is whole, and what is to be known of it."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[tuple[str, str]]:
        answer, trace = self.answer, self.view.trace
        if why := self._caution[1]:
            yield "doubtful", why
        left = "This is what was written until then, unchecked." if answer.text else "Nothing was written until then."
        if answer.state in (AnswerState.STOPPED, AnswerState.CUT):
            yield "stopped", f"{answer.message or 'Stopped.'} {left}"
        elif answer.state is AnswerState.FAILED:
            yield "failed", f"The answer broke off. {left} {answer.message}".strip()
        elif self.is_quoted:
            yield "quoted", f"Quoted {'anew, ' if self.view.is_quoted_anew else ''}word for word"
        else:
            yield "written", f"Written by {answer.writer}"
        if failed := web_failure(trace, self.view.routed):
            yield "web", failed
        if cut := left_out(answer.usage):
            yield "cut", cut
        if self.view.routed.is_from_memory or answer.state is not AnswerState.COMPLETE:
            return
        if answer == trace.answer and trace.support is None:
            said = (f"{step.summary} {step.hint}" for step in trace.steps if step.name in PLACES["check"][2])
            yield "unmeasured", f"What stands behind each sentence was {next(said, 'not measured in this run')}"
        if not citations(answer.text, len(self.excerpts)):
            yield "uncited", "This answer cites nothing. Check it against the evidence it was given."

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        return pieces_of(self.excerpts, self.view.strips.values())

    @cached_property
    def held(self) -> PieceSet:
        return PieceSet(self.pieces)

    @property
    def judge(self) -> str:
        """The model that said what supports each sentence; "" where words were compared."""
        setting = self.view.trace.settings.support
        return "" if setting == WORDS else clean(setting)

    @cached_property
    def is_plain(self) -> bool:
        """Whether there is nothing to mark: every sentence stands in the evidence with all its words."""
        return not any(
            self.note(one) or not (self.is_quoted or (one.score == 1.0 and not self._is_opinion(one)))
            for one in self.support
        )

    def note(self, one: Support) -> str:
        absent = [self._cited(place) for place in one.cited if not 1 <= place <= len(self.excerpts)]
        message = [f"cites {' and '.join(absent)}, which is not among its sources"] if absent else []
        elsewhere = supported_elsewhere(one, self.pieces)
        if elsewhere and len(absent) < len(one.cited):
            there = " and ".join(self._cited(place) for place in one.cited if 1 <= place <= len(self.excerpts))
            found = "support is" if self.judge else "words are"
            message.append(f"cites {there}, but its {found} in {' and '.join(map(self._cited, elsewhere))}")
        return "; ".join(message)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        text, found = self.answer.text, list[tuple[bool, list[AnswerSentence]]]()
        spans = self.support or tuple(_lines(text))
        before = 0
        for number, one in enumerate(spans, start=1):
            said = text[one.start : one.end]
            if not found or "\n" in text[before : one.start]:
                found.append((not is_prose(said) and said.lstrip()[:1] in "`~", []))
            found[-1][1].append(self._sentence(number, one, said))
            before = one.end
        return tuple(Block(is_code, tuple(sentences)) for is_code, sentences in found)

    @property
    def marked(self) -> tuple[AnswerSentence, ...]:
        return tuple(one for block in self.blocks for one in block.sentences if one.sign)

    def _sentence(self, number: int, one: Support, said: str) -> AnswerSentence:
        parts = tuple(part for part in self._parts(said) if part[0])
        if not self.support or self.is_plain:
            return AnswerSentence(parts, "plain" if self.support else "")
        stands = support_level(one.score)
        word = stands.said(self.judge or WORDS)
        message, quotes = self._describe(one), tuple(self._quotes(one))
        return AnswerSentence(
            parts,
            stands.name.lower(),
            number,
            sign=SIGNS[stands],
            word="" if stands is SupportLevel.SUPPORTED else word,
            spoken=f"Sentence {number}: ",
            after=f"{word if stands is SupportLevel.SUPPORTED else ''}{message}; details",
            hint=" ".join([sentence(f"{word}{message}"), *map(_hint, quotes[:1])]),
            note=self.note(one),
            head=self._head(one, stands, bool(quotes)),
            quotes=quotes,
        )

    def _describe(self, one: Support) -> str:
        if one.score is None:
            return ""
        if not self.judge:
            return f", score {_support(one.score)}"
        return f", judged by {self.judge}" if self._is_opinion(one) else ", word for word"

    def _is_opinion(self, one: Support) -> bool:
        """A model was not asked about what stands in the evidence word for word."""
        claim = claim_of(self.answer.text[one.start : one.end])
        return bool(self.judge) and not (one.score == 1.0 and find_quotation(claim, one.cited, self.held))

    def _parts(self, said: str) -> Iterator[Part]:
        for at, part in enumerate(CITATION.split(said)):
            if at % 2:
                for place, number in enumerate(re.findall(r"\d+", part)):
                    yield " " if place else "", "", ""
                    yield self._citation(int(number))
            else:
                yield "\n".join(_spaced(line) for line in part.split("\n")), "", ""

    def _citation(self, place: int) -> Part:
        if not 1 <= place <= len(self.excerpts):
            return self._cited(place), "", ""
        label = self.label(place)
        return self._cited(place), f"#{label.anchor}", str(label.name)

    def _cited(self, place: int) -> str:
        return self.view.cited(f"[{place}]")

    def label(self, place: int) -> Label:
        return self.view.labels[self.excerpts[place - 1].passage.id]

    def _quotes(self, one: Support) -> Iterator[Quote]:
        """Each supporting piece once, under a cited number where it has one; a whole passage by its beginning."""
        indexes = {verdict.strip.id: verdict.strip.index for verdict in self.view.routed.knowledge.verdicts}
        for id_ in one.pieces:
            there = [piece for piece in self.pieces if piece.id == id_]
            there.sort(key=lambda piece: piece.excerpt not in one.cited)
            for piece in there[:1]:
                strip, label = self.view.strips.get(piece.id), self.label(piece.excerpt)
                said = with_headers(strip, self.excerpts[piece.excerpt - 1].passage) if strip else piece.text
                source = f"[{label.number}] {label.name}"
                yield Quote(shortened(_shown(said), _QUOTED), source, f"#{label.anchor}", indexes.get(id_))

    def _head(self, one: Support, stands: SupportLevel, has_quotes: bool) -> str:
        if stands is SupportLevel.UNCHECKED:
            return _WHY_UNJUDGED if self.judge else _WHY_UNCHECKED
        score = _support(one.score or 0.0)
        if not self.judge:
            if stands is SupportLevel.NONE:
                return f"Score {score}, less than {WEAK:.2f}: words not found. {self._lacks(one)}"
            missed = f" {SUPPORTED:.2f} would count as found. {self._lacks(one)}"
            return f"Score {score}.{'' if stands is SupportLevel.SUPPORTED else missed} Found in:"
        if not self._is_opinion(one):
            return "It stands in the evidence word for word, so no model was asked:"
        rests = " It rests on:" if has_quotes else " No sentence of the evidence was named."
        return f"Judged by {self.judge}: {stands}.{'' if stands is SupportLevel.NONE else rests}"

    def _lacks(self, one: Support) -> str:
        """Why a sentence scores no more, where that can be said in words."""
        if one.score is None or one.score > LACKING:
            return ""
        facts = lacking(self.answer.text[one.start : one.end], self.held, one.pieces)
        return f"Not in the evidence: {', '.join(f'“{clean(fact)}”' for fact in facts)}." if facts else ""


def sources_of(view: RunView, cited: tuple[int, ...] = ()) -> tuple[Source, ...]:
    """Of every excerpt in order; `cited` are the places, from 1, of those that are cited."""

    def said(excerpt: Excerpt) -> str:
        """Rows of tables with their column heads."""
        own = [view.strips[id_] for id_ in excerpt.strip_ids if id_ in view.strips]
        return _shown("\n".join(with_headers(strip, excerpt.passage) for strip in own) or excerpt.text)

    excerpts = enumerate(view.routed.knowledge.excerpts, start=1)
    labelled = ((place, one, view.labels[one.passage.id]) for place, one in excerpts)
    return tuple(
        Source(label.number, label, shortened(said(one), _SOURCE), place in cited) for place, one, label in labelled
    )


def _shown(text: str) -> str:
    return clean(quotable(text)) or clean(without_marks(text))


def _support(score: float) -> str:
    return against(score, WEAK, SUPPORTED)[0]


def _lines(text: str) -> Iterator[Support]:
    at = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            yield Support(at, at + len(line.rstrip()), None)
        at += len(line)


def _spaced(line: str) -> str:
    """`clean` trims the ends; the spaces around a citation must stay."""
    return (" " if line[:1].isspace() else "") + clean(line) + (" " if line[-1:].isspace() and line.strip() else "")


def _hint(quote: Quote) -> str:
    return f"{quote.source}: “{shortened(quote.text, _HINTED)}”"

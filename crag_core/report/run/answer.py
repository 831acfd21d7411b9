"""The answer of a report, sentence by sentence with what supports it; or plainly why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from crag_core.base.types import Action, Answer, AnswerState, Support, WebOutcome
from crag_core.report.text import shortened
from crag_core.trace.grounding.citation_check import WORDS, Standing, standing
from crag_core.trace.grounding.quoted_answer import CITATION, EXTRACTIVE, citations, left_out
from crag_core.trace.reroute import Missing
from crag_core.view.run_view import Name, RunView, name_of

_QUOTED = 150
_MARKS = {Standing.SUPPORTED: "✓", Standing.WEAK: "~", Standing.NONE: "✗", Standing.UNCHECKED: "not checked"}
_BY_WORDS = (
    "What supports each sentence, as far as words can tell: a score says how much of the sentence stands in the "
    "evidence, and proves nothing."
)
_STATES = {
    AnswerState.STOPPED: "The answer was stopped; this is what was written until then.",
    AnswerState.FAILED: "The answer broke off here; this is what was written until then.",
}


@dataclass(frozen=True)
class Link:
    """A reference within the page; `anchor` None: there is nothing of that name in it."""

    text: str
    anchor: str | None


Words = tuple[str | Link, ...]
"""Text with references in it."""


@dataclass(frozen=True)
class Sentence:
    """A piece of the answer; `number` None: it was not measured, such as the space between two sentences."""

    words: Words
    number: int | None = None
    mark: str = ""
    support: str = ""
    tone: str = ""
    beginning: str = ""
    pieces: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Source:
    """One excerpt, cited by `number`; `passage` is the number of the passage that it is from."""

    number: int
    name: Name
    passage: str
    anchor: str
    quoted: str
    is_cited: bool


@dataclass(frozen=True)
class Told:
    """`why_not` says why there is no answer; `notes` what is to be known of the one that there is.

    `about` says how it was found out what supports each sentence.
    """

    sentences: tuple[Sentence, ...]
    sources: tuple[Source, ...]
    why_not: str
    notes: tuple[str, ...]
    about: str = ""

    @property
    def measured(self) -> tuple[Sentence, ...]:
        return tuple(sentence for sentence in self.sentences if sentence.number is not None)


def answer_of(view: RunView) -> Told:
    """Only the answer that belongs to this decision and this evidence; an old one is never shown under a new action."""
    answer = view.routed.answer
    sources = tuple(_sources(view, answer))
    if answer is None:
        return Told((), sources, _why_none(view), ())
    if answer.state is AnswerState.CANNOT_ANSWER:
        return Told((), sources, answer.message or "This cannot be answered from the evidence.", ())
    return Told(tuple(_sentences(view, answer)), sources, "", tuple(_notes(view, answer)), _about(view))


def _why_none(view: RunView) -> str:
    trace, failure = view.trace, view.trace.failure
    if trace.answer is not None:
        return (
            "No answer was written from this evidence. The run as taken has one, from other evidence or under "
            "another action; it is not shown here, since it would not be the answer to this decision."
        )
    if trace.web and trace.web.outcome is WebOutcome.PENDING:
        return f"No answer was written yet: the web search for “{trace.web.query}” waits for approval."
    if failure:
        return f"No answer was written: the run ended at the step “{failure.name}”. {failure.summary} {failure.hint}"
    lacking = [f"{one}" for one in view.routed.missing if one is not Missing.ANSWER]
    return f"No answer was written.{' This route would first need: ' + '; '.join(lacking) + '.' if lacking else ''}"


def _notes(view: RunView, answer: Answer) -> Iterator[str]:
    if answer.state in _STATES:
        yield f"{_STATES[answer.state]} {answer.message}".strip()
    elif answer.writer == EXTRACTIVE:
        doubt = "" if view.routed.decision.action is Action.CORRECT else " They are the nearest, and may not answer it."
        yield f"Quoted: the best kept sentences word for word; no language model wrote this.{doubt}"
    else:
        yield f"Written by the language model {answer.writer} from the evidence below."
    if cut := left_out(answer.usage):
        yield cut
    if not citations(answer.text, len(view.routed.knowledge.excerpts)):
        yield "This answer cites nothing. Check it against the evidence it was given."
    if view.trace.support is None:
        yield "Which evidence supports which sentence was not measured in this run."


def _about(view: RunView) -> str:
    by = view.trace.settings.support
    if by == WORDS:
        return _BY_WORDS
    return (
        f"What supports each sentence, as judged by the language model {by}, which may be wrong. It was not asked "
        "about a sentence that stands in the evidence word for word."
    )


# --- sentences ------------------------------------------------------------------------------------------------------


def _sentences(view: RunView, answer: Answer) -> Iterator[Sentence]:
    """The whole text in order: the sentences that were measured, and what lies between them."""
    at = 0
    for number, support in enumerate(view.trace.support or (), start=1):
        if support.start > at:
            yield Sentence(_linked(view, answer.text[at : support.start]))
        yield _sentence(view, answer.text[support.start : support.end], number, support)
        at = support.end
    if at < len(answer.text):
        yield Sentence(_linked(view, answer.text[at:]))


def _sentence(view: RunView, text: str, number: int, support: Support) -> Sentence:
    pieces = tuple(link for piece in support.pieces if (link := _piece(view, piece)))
    stands = standing(support.score)
    is_scored = support.score is not None and view.trace.settings.support == WORDS
    score = f" {support.score:.2f}" if is_scored else ""
    return Sentence(
        words=_linked(view, text),
        number=number,
        mark=f"{_MARKS[stands]}{score}",
        support=f"{stands}{f' ({score.strip()})' if score else ''}",
        tone=stands.name.lower(),
        beginning=shortened(text, _QUOTED),
        pieces=pieces,
    )


def _piece(view: RunView, piece: str) -> Link | None:
    """A strip or a passage that went in whole, by its id."""
    for strip in (verdict.strip for verdict in view.routed.knowledge.verdicts):
        if strip.id == piece:
            number = view.labels[strip.passage_id].number
            return Link(
                f"{number}, sentence {strip.index + 1}", f"{view.labels[strip.passage_id].anchor}-{strip.index}"
            )
    return Link(view.labels[piece].number, view.labels[piece].anchor) if piece in view.labels else None


def _linked(view: RunView, text: str) -> Words:
    """The text with each citation [n] as a link to its passage; a number that cites nothing stays text."""
    words: list[str | Link] = []
    for at, part in enumerate(CITATION.split(text)):
        if at % 2:
            for number in re.findall(r"\d+", part):
                words += [_citation(view, int(number)), " "]
            words.pop()
        else:
            words.append(part)
    return tuple(words)


def _citation(view: RunView, number: int) -> Link:
    excerpts = view.routed.knowledge.excerpts
    there = 1 <= number <= len(excerpts)
    return Link(f"[{number}]", view.labels[excerpts[number - 1].passage.id].anchor if there else None)


def _sources(view: RunView, answer: Answer | None) -> Iterator[Source]:
    """Every excerpt that the writer was given, or would be."""
    excerpts = view.routed.knowledge.excerpts
    cited = citations(answer.text, len(excerpts)) if answer else ()
    for number, excerpt in enumerate(excerpts, start=1):
        passage = excerpt.passage
        quoted = shortened(excerpt.text, _QUOTED)
        name, own = name_of(passage), view.labels[passage.id].number
        yield Source(number, name, own, view.labels[passage.id].anchor, quoted, number in cited)

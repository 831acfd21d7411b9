"""A run under one policy: what every part of the view is made from, and how its chunks and snippets are called."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crag_core.base.text.display import clean, shortened
from crag_core.base.types.grades import EvaluatorCard
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import Origin, Passage
from crag_core.decision.policy import Doubtful, Policy
from crag_core.decision.stability import Look, Stability, look_at, stability
from crag_core.trace.edits import edited
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE, renumbered
from crag_core.trace.reroute import Reroute, reroute
from crag_core.trace.trace import Trace


@dataclass(frozen=True)
class Name:
    """Where a passage is from. The two are kept apart, since a file name may run from right to left."""

    source: str
    page: str

    def __str__(self) -> str:
        return f"{self.source}, {self.page}" if self.page else self.source


@dataclass(frozen=True)
class Label:
    """A passage in the lists of the view, under its `Trace.numbers`; `anchor` is where links to it lead."""

    number: int
    anchor: str
    title: str
    name: Name

    @property
    def short(self) -> str:
        """For charts and tables: "3. handbook.pdf, page 4"."""
        return f"{self.number}. {Name(shortened(self.name.source, 34), self.name.page)}"


@dataclass(frozen=True)
class RunView:
    """`trace` is the record with its edits beside it, `routed` what `policy` makes of both.

    `was` is what it is compared with; None: nothing.
    """

    trace: Trace
    policy: Policy
    routed: Reroute
    was: Reroute | None = None

    @cached_property
    def changed(self) -> Trace:
        return edited(self.trace)

    @cached_property
    def made(self) -> dict[str, Any]:
        """What was made of the view already, for whoever needs it twice."""
        return {}

    @property
    def is_decided(self) -> bool:
        """Whether a decision means anything: the run came so far, and its evaluator has graded where grades decide."""
        is_open = self.trace.decision is None or self.trace.grades is None
        return self.trace.passages is not None and not (is_open and self.routed.decision_path.ungraded)

    @property
    def not_graded_by(self) -> str:
        """ "Not graded by Embedding similarity yet", where that is why nothing is decided; "" otherwise."""
        if self.is_decided or self.trace.passages is None:
            return ""
        return f"Not graded by {evaluator_name(self.trace.settings.evaluator, self.trace.settings.writer)} yet"

    @property
    def abstains(self) -> bool:
        return self.policy.doubtful is Doubtful.ABSTAIN and self.routed.is_doubtful

    @property
    def is_quoted_anew(self) -> bool:
        """Whether the answer is none that the run wrote: quoted from the present evidence, without a model call."""
        return self.routed.answer is not None and self.routed.answer != self.trace.answer

    @cached_property
    def labels(self) -> dict[str, Label]:
        """By passage id, dropped ones too; ids of a record may hold anything, so anchors are made of numbers alone."""
        numbers = self.trace.numbers
        return {one.id: _label(one, numbers[one.id]) for one in (*self.trace.web_passages, *self.trace.all_passages)}

    @cached_property
    def strips(self) -> dict[str, Strip]:
        """All that were scored, by id."""
        return {strip.id: strip for strip in self.changed.all_strips}

    @cached_property
    def excerpt_numbers(self) -> tuple[int, ...]:
        """Of what the answer was written from, in the order in which its text cites it."""
        return tuple(self.labels[excerpt.passage.id].number for excerpt in self.routed.knowledge.excerpts)

    def cited(self, text: str) -> str:
        """An answer's text, citing by the numbers that chunks and snippets have in every list."""
        return renumbered(text, self.excerpt_numbers)

    @cached_property
    def look(self) -> Look:
        now = self.changed
        return look_at(self.policy, now.passages or (), now.grades, now.measured(self.policy), now.rounds)

    @cached_property
    def stability(self) -> Stability:
        return stability(self.policy, self.changed.grades, self.look)


def view_run(trace: Trace, policy: Policy | None = None) -> RunView:
    """`policy` None: that of the run."""
    policy = policy or trace.settings.policy
    return RunView(trace, trace.decided_by(policy), reroute(trace, policy))


def _label(passage: Passage, number: int) -> Label:
    is_web, name = passage.origin is Origin.WEB, name_of(passage)
    anchor = f"{'web' if is_web else 'passage'}-{number}"
    return Label(number, anchor, f"{'Web result' if is_web else 'Chunk'} {number}, {name}", name)


def name_of(passage: Passage) -> Name:
    return Name(clean(passage.source) or "(no name)", f"page {passage.page}" if passage.page else "")


def evaluator_name(card: EvaluatorCard, writer: str) -> str:
    """ "Language model (llama3.2)", or the title alone where no model is asked, or none is chosen."""
    return clean(f"{card.title} ({model_name(writer)})" if card.calls_model and writer != EXTRACTIVE else card.title)


def model_name(choice: str) -> str:
    """The model's own name in a choice such as "ollama/llama3.2"."""
    return choice.partition("/")[2] or choice

"""What the sections of a report need beside the view of the run: verdict, answer, path, scores, chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from crag_core.base.text.display import against, counted, duration, readable, sentence
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.edits import Edits
from crag_core.base.types.passages import ANSWERING, TOPICAL
from crag_core.base.types.web import WebOutcome
from crag_core.decision.decide import evidence_of
from crag_core.decision.policy import Policy
from crag_core.decision.signals import RERANK
from crag_core.report.text import web_address
from crag_core.trace.injection_scan import remark
from crag_core.trace.opinions import with_evaluator
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace
from crag_core.view.answer.answer_blocks import AnswerBlocks
from crag_core.view.answer.unanswered import why_unanswered
from crag_core.view.chunk_cards import ChunkCard
from crag_core.view.evidence import difference
from crag_core.view.path.run_path import run_path
from crag_core.view.path.stages import Stage
from crag_core.view.run_view import RunView
from crag_core.view.score_line import Line, Picture
from crag_core.view.score_words import CALLED, reason_of
from crag_core.view.sentences import TextLine, text_lines
from crag_core.view.verdict_lines import (
    Figure,
    changes,
    figures,
    flip_lines,
    headline,
    meaning,
    no_flip,
    notes,
    own_name,
)

_GROUPS = (
    ("Find and grade", "", ("retrieve", "grade", "route", "again")),
    ("From the documents", "documents", ("refine",)),
    ("From the web", "web", ("rewrite", "search", "grade_web")),
    ("Answer", "", ("assemble", "answer", "check")),
)
_SIGNALS = {RERANK: "mean of the three best grades"}


@dataclass(frozen=True)
class Verdict:
    """`tone` names the colour; `label` is the policy's own name for the action, where it has one."""

    tone: str
    action: str
    label: str
    meaning: str
    reason: str
    figures: tuple[Figure, ...]
    flips: tuple[str, ...]
    notes: tuple[str, ...]


def verdict_of(view: RunView) -> Verdict:
    decision = view.routed.decision
    if not view.is_decided:
        return Verdict("open", "NOT DECIDED", "", _why_open(view), "", _costs(view.trace), (), ())
    suspicious, is_plain = remark(view.trace), decision.verdict is None
    return Verdict(
        tone="open" if is_plain else decision.action.lower(),
        action=decision.label.upper() if is_plain else decision.action,
        label="" if is_plain else own_name(decision),
        meaning=meaning(view.policy, decision),
        reason=sentence(reason_of(decision, view.policy)),
        figures=(*figures(view), *_costs(view.trace)),
        flips=() if is_plain else flip_lines(view) or (no_flip(view),),
        notes=(*notes(view), *([f"{suspicious}."] if suspicious else [])),
    )


def _why_open(view: RunView) -> str:
    if view.not_graded_by and view.trace.decision:
        return f"{view.not_graded_by}."
    trace = view.trace
    where = f" at the step “{trace.failure.name}”" if trace.failure else ""
    after = "the chunks were graded" if trace.passages is not None else "anything was retrieved"
    return f"The run ended{where} before {after}."


def _costs(trace: Trace) -> tuple[Figure, ...]:
    made = trace.usage
    tokens = counted(made.prompt_tokens + made.completion_tokens, "token")
    calls = Figure("LLM calls", str(made.calls), tokens if made.calls else "no language model used")
    return calls, Figure("Time", duration(trace.seconds), "original run")


# --- what differs from the run as taken -----------------------------------------------------------------------------


def changes_of(view: RunView) -> tuple[str, ...]:
    """What was changed since the run was taken, and what that does; () when nothing was."""
    before, own = _as_taken(view.trace), view.trace.decided_by(view.trace.settings.policy)
    found = [sentence(one) for one in changes(before, view.trace, view.policy)]
    if view.policy != own and (view.policy.name, view.policy.thresholds) == (own.name, own.thresholds):
        found.append("The policy has changed since the run.")
    return (*found, *_outcome(view, before)) if found else ()


def _as_taken(trace: Trace) -> Trace:
    plain = replace(trace, edits=Edits())
    others = (with_evaluator(plain, opinion.evaluator.name, opinion.writer) for opinion in trace.opinions)
    for one in (plain, *others):
        if one and trace.decision and reroute(one, one.settings.policy).decision.decides_like(trace.decision):
            return one
    return plain


def _outcome(view: RunView, before: Trace) -> Iterator[str]:
    if not view.is_decided:
        return
    then, now = reroute(before, view.trace.settings.policy), view.routed
    yield f"The original run was {headline(then.decision)}: {reason_of(then.decision, then.policy)}."
    found = difference(then, now)
    counts = ", ".join(f"{count} {what}" for what, count in found.counts)
    order = ", in another order" if found.reordered else ""
    yield f"Of the evidence: {counts}{order}. Recomputed from the record, 0 LLM calls."


def path_of(view: RunView) -> tuple[tuple[str, str, tuple[Stage, ...]], ...]:
    stages = run_path(view.trace, view.routed)
    return tuple((title, lane, tuple(stages[id_] for id_ in ids if id_ in stages)) for title, lane, ids in _GROUPS)


def answer_of(view: RunView) -> AnswerBlocks | str:
    """The answer to this decision, or why there is none: an old answer is never shown under a new action."""
    answer, trace, failure = view.routed.answer, view.trace, view.trace.failure
    if answer is not None:
        if answer.state is AnswerState.CANNOT_ANSWER:
            return why_unanswered(view, answer) or "This cannot be answered from the evidence."
        return AnswerBlocks(view, answer)
    if trace.answer is not None:
        return "No answer for this decision yet. The original run has one, from other evidence or under another action."
    if trace.web and trace.web.outcome is WebOutcome.PENDING:
        return f"No answer was written yet: the web search for “{trace.web.query}” waits for approval."
    if trace.web and trace.web.pages_waiting:
        return "No answer was written yet: reading the pages that the web search found waits for approval."
    if failure:
        return f"No answer was written: the run ended at the step “{failure.name}”. {failure.summary} {failure.hint}"
    lacking = [f"{one}" for one in view.routed.missing if one is not Missing.ANSWER]
    return f"No answer was written.{' This route would first need: ' + '; '.join(lacking) + '.' if lacking else ''}"


# --- scores ---------------------------------------------------------------------------------------------------------


def signals_of(view: RunView) -> tuple[tuple[str, str, str], ...]:
    """Name, value and weight of what a weighted sum is made of, measured or not; () for other policies."""
    policy = view.policy
    if policy.score != "signals":
        return ()
    looked_at = view.routed.decision_path.iterations[-1].passages
    values = evidence_of(policy, looked_at, view.changed.grades, view.changed.signals).signals
    return tuple(
        (
            _SIGNALS.get(name, name.replace("_", " ")),
            f"{values[name]:.2f}" if name in values else "not measured",
            f"{weight:.2f}",
        )
        for name, weight in policy.weights
    )


def edges_of(drawn: Picture | None) -> dict[str, float]:
    """Where the bands of the lines end, in percent."""
    marks = drawn.marks if drawn else ()
    return {"zero": 0.0, "one": 100.0} | {mark.name: round(100 * mark.value, 2) for mark in marks}


def limits_of(drawn: Picture, line: Line) -> list[str]:
    """Each threshold on a line, and over which values the action stays."""
    marks = [mark for mark in drawn.marks if mark.name in line.marks]
    values = [mark.value for mark in marks]
    texts = readable(*values) if line.compared is None else against(line.compared, *values)[1:]
    return [f"{mark.called} {text} ({mark.text})" for mark, text in zip(marks, texts, strict=True)]


# --- chunks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """A score as a bar, with the thresholds that it is held against; all in percent."""

    name: str
    value: str
    at: float
    thresholds: tuple[float, ...]


@dataclass(frozen=True)
class Card:
    view: ChunkCard
    bars: tuple[Bar, ...]

    @property
    def address(self) -> str | None:
        return web_address(self.view.passage.url)

    @property
    def is_open(self) -> bool:
        return bool(self.view.is_used or self.view.decides or self.view.edit)

    @property
    def parts(self) -> list[tuple[str, float]]:
        """Those of the grade that are no signal of its own."""
        grade = self.view.grade
        return [(name, value) for name, value in grade.parts if name not in (ANSWERING, TOPICAL)] if grade else []

    @cached_property
    def lines(self) -> tuple[TextLine, ...]:
        return text_lines("", self.view.passage.text, self.view.verdicts, "", self.view.sentences)


def cards_of(view: RunView, cards: tuple[ChunkCard, ...]) -> tuple[Card, ...]:
    return tuple(Card(card, tuple(_bars(view.policy, card))) for card in cards)


def _bars(policy: Policy, card: ChunkCard) -> Iterator[Bar]:
    """What the decision compares with the thresholds; a weighted sum leaves a passage's own score without any."""
    limits = {
        "score": (policy.lower, policy.upper),
        CALLED[ANSWERING]: (policy.upper,),
        CALLED[TOPICAL]: (policy.lower,),
    }
    for number in card.scores:
        is_compared = number in card.compared and not (policy.scores_the_set or policy.is_plain)
        thresholds = tuple(round(100 * one, 1) for one in limits[number.name]) if is_compared else ()
        yield Bar(number.name, number.text, round(100 * number.value, 1), thresholds)

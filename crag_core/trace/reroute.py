"""Reroutes a recorded run under another policy: decision, knowledge, and what is missing. Pure; asks no model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from crag_core.base.types import Answer, CorrectionKind, Decision, Handling, Knowledge, WebOutcome
from crag_core.decision.plan import EXPAND
from crag_core.decision.policy import Policy
from crag_core.decision.refine import recompose
from crag_core.decision.rounds import DecisionPath, replay_rounds
from crag_core.trace.edits import edited
from crag_core.trace.trace import Trace, context_key


class Missing(StrEnum):
    """What this policy would need that the run never did; the value is said to people as it stands."""

    GRADES = "grades: this run did not grade these chunks"
    STRIPS = "strip scores: this run never scored sentences"
    EXTRACTION = "extracted sentences: this run never asked a model for them"
    WEB = "web results: this run made no web search"
    EXPANSION = "a second retrieval with an expanded question"
    RE_RETRIEVAL = "another round of retrieval"
    ANSWER = "an answer from this evidence"


_UNASKED = (WebOutcome.PENDING, WebOutcome.APPROVED, WebOutcome.COOLING)


@dataclass(frozen=True)
class Reroute:
    """`answer` is the recorded one only if it was written from exactly this action and knowledge."""

    decision_path: DecisionPath
    knowledge: Knowledge
    missing: tuple[Missing, ...]
    answer: Answer | None

    @property
    def decision(self) -> Decision:
        return self.decision_path.decision


def decision_path_of(trace: Trace, policy: Policy) -> DecisionPath:
    """The way of `trace`, as its edits have it; a run that retrieved nothing yet counts as one that found nothing."""
    trace = edited(trace)
    return replay_rounds(policy, trace.passages or (), trace.grades, trace.signals, trace.rounds)


def reroute(trace: Trace, policy: Policy) -> Reroute:
    """Decide `trace` again under `policy`, as its edits have it."""
    pinned, trace = trace.edits.pinned, edited(trace)
    decision_path = decision_path_of(trace, policy)
    decision = decision_path.decision
    knowledge = recompose(policy, decision, decision_path.evidence, trace.strips, trace.extractions, trace.web)
    key = context_key(trace.question, decision.action, knowledge.excerpts)
    answer = trace.answer if trace.answer and trace.answer.context_key == key else None
    missing = _missing_evidence(trace, decision_path, pinned)
    if answer is None:
        missing.append(Missing.ANSWER)
    return Reroute(decision_path, knowledge, tuple(missing), answer)


def _missing_evidence(trace: Trace, decision_path: DecisionPath, pinned: tuple[str, ...]) -> list[Missing]:
    decision, missing = decision_path.decision, []
    if decision_path.ungraded:
        missing.append(Missing.GRADES)
    scored = {strip.passage_id for strip in trace.strips or ()}
    if decision.handling in (Handling.REFINE, Handling.EXTRACT) and any(
        passage.id not in scored for passage in decision_path.evidence if passage.text.strip()
    ):
        missing.append(Missing.STRIPS)
    read = {*pinned, *(extraction.passage_id for extraction in trace.extractions or ())}  # a pinned one stays whole
    if decision.handling is Handling.EXTRACT and any(passage.id not in read for passage in decision_path.kept):
        missing.append(Missing.EXTRACTION)
    if decision.wants(CorrectionKind.WEB_SEARCH) and (trace.web is None or trace.web.outcome in _UNASKED):
        missing.append(Missing.WEB)
    if decision_path.wanted:
        missing.append(Missing.EXPANSION if decision_path.wanted[-1] == EXPAND else Missing.RE_RETRIEVAL)
    return missing

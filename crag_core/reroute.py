"""The same recorded run under another policy: decision, knowledge, and what is missing. Pure; no model is asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from crag_core.decide import decide
from crag_core.policy import Handling, Policy
from crag_core.refine import recompose
from crag_core.trace import Trace, context_key
from crag_core.types import Answer, CorrectionKind, Decision, Knowledge, WebOutcome


class Missing(StrEnum):
    """What this policy would need that the run never did; the value is said to people as it stands."""

    GRADES = "grades: this run skipped grading"
    STRIPS = "strip scores: this run never scored sentences"
    EXTRACTION = "extracted sentences: this run never asked a model for them"
    WEB = "web results: this run made no web search"
    EXPANSION = "a second retrieval with an expanded question"
    RE_RETRIEVAL = "another round of retrieval"
    ANSWER = "an answer from this evidence"


@dataclass(frozen=True)
class Reroute:
    """`answer` is the recorded one only if it was written from exactly this action and knowledge."""

    decision: Decision
    knowledge: Knowledge
    missing: tuple[Missing, ...]
    answer: Answer | None


def reroute(trace: Trace, policy: Policy) -> Reroute:
    """Decide `trace` again under `policy`. A run that has retrieved nothing yet counts as one that found nothing."""
    passages = trace.passages or ()
    decision = decide(policy, passages, trace.grades, trace.signals)
    knowledge = recompose(policy, decision, passages, trace.strips, trace.extractions, trace.web)
    key = context_key(trace.question, decision.action, knowledge.excerpts)
    answer = trace.answer if trace.answer and trace.answer.context_key == key else None
    missing = _missing_evidence(trace, policy, decision)
    if answer is None:
        missing.append(Missing.ANSWER)
    return Reroute(decision, knowledge, tuple(missing), answer)


def _missing_evidence(trace: Trace, policy: Policy, decision: Decision) -> list[Missing]:
    handling = policy.route(decision.action).passages
    missing = []
    if trace.grades is None and trace.passages and decision.rule is None and policy.reads_grades:
        missing.append(Missing.GRADES)
    if trace.strips is None and trace.passages and handling in (Handling.REFINE, Handling.EXTRACT):
        missing.append(Missing.STRIPS)
    if trace.extractions is None and trace.passages and handling is Handling.EXTRACT:
        missing.append(Missing.EXTRACTION)
    unsearched = trace.web is None or trace.web.outcome in (WebOutcome.PENDING, WebOutcome.APPROVED)
    if decision.wants(CorrectionKind.WEB_SEARCH) and unsearched:
        missing.append(Missing.WEB)
    if decision.wants(CorrectionKind.EXPAND):
        missing.append(Missing.EXPANSION)
    if decision.wants(CorrectionKind.RE_RETRIEVE):
        missing.append(Missing.RE_RETRIEVAL)
    return missing

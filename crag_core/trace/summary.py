"""A run as one flat record: the result metadata of description 000. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.text.words import estimate_tokens
from crag_core.base.types import CorrectionKind, StepName
from crag_core.decision.rounds import DecisionPath
from crag_core.decision.signals import weigh
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace


@dataclass(frozen=True)
class Summary:
    """`decision` is the policy's own name for the action, in capitals; `score` its overall score in 0..1.

    Where two signals decided, `score` is the best answering and `topical` the best topical score.

    `strategy` names the corrections that were carried out, joined by "+": query_expansion, re_retrieval, refinement,
    web_search, or "none". `original_count` and `final_count` count passages before and after. The four criteria are
    those of description 000, each in 0..1, None where it could not be measured. `retrieval_ms` covers everything but
    the answer. `score_after`: with a policy that weighs signals, the same sum over the evidence after an expansion.
    """

    decision: str
    action: str
    score: float | None
    confidence: float | None
    correction_applied: bool
    strategy: str
    original_count: int
    final_count: int
    tokens_used: int
    web_used: bool
    cache_hit: bool
    keyword_overlap: float | None
    coherence: float | None
    length_adequacy: float | None
    diversity: float | None
    retrieval_ms: float
    model_calls: int
    iterations: int
    rule: str | None
    score_after: float | None = None
    topical: float | None = None


def summarize(trace: Trace) -> Summary:
    """The run under its own policy."""
    routed = reroute(trace, trace.settings.policy)
    decision, decision_path, knowledge = routed.decision, routed.decision_path, routed.knowledge
    strategies = _strategies(trace, used_web=bool(knowledge.external))
    criteria = dict(trace.signals)
    grades = trace.grades or ()
    return Summary(
        decision=decision.label.upper().replace("-", "_"),
        action=decision.action.value,
        score=decision.score,
        confidence=decision.confidence,
        correction_applied=bool(strategies),
        strategy="+".join(strategies) or "none",
        original_count=len(trace.passages or ()),
        final_count=len({excerpt.passage.id for excerpt in knowledge.excerpts}),
        tokens_used=sum(estimate_tokens(excerpt.text) for excerpt in knowledge.excerpts),
        web_used=bool(knowledge.external),
        cache_hit=bool(grades) and all(grade.from_cache for grade in grades),
        keyword_overlap=criteria.get("keyword_overlap"),
        coherence=criteria.get("coherence"),
        length_adequacy=criteria.get("length_adequacy"),
        diversity=criteria.get("diversity"),
        retrieval_ms=1000 * trace.seconds_of({step.name for step in trace.steps} - _AFTER),
        model_calls=trace.usage.calls,
        iterations=len(decision_path.iterations),
        rule=decision.rule,
        score_after=_score_after(trace, decision_path),
        topical=decision.topical,
    )


_AFTER = {StepName.ANSWER, StepName.CHECK_ANSWER, StepName.SECOND_OPINION}
"""Steps that come after retrieval and its correction."""
_STRATEGIES = {
    CorrectionKind.EXPAND: "query_expansion",
    CorrectionKind.RE_RETRIEVE: "re_retrieval",
    CorrectionKind.REFINE: "refinement",
}


def _strategies(trace: Trace, *, used_web: bool) -> tuple[str, ...]:
    done = {correction.kind for correction in trace.corrections or ()}
    return tuple(name for kind, name in _STRATEGIES.items() if kind in done) + (("web_search",) if used_web else ())


def _score_after(trace: Trace, decision_path: DecisionPath) -> float | None:
    """The policy's weighted signals over the evidence that the expansion gave, if one was asked for and made."""
    last = decision_path.iterations[-1]
    path = (*last.path, str(last.decision.next_round))
    measured = next((found.signals for found in trace.rounds if found.path == path), ())
    score = weigh(measured, trace.settings.policy.weights)
    return None if score is None else round(score, 9)  # as the overall score is

"""A run as one flat record (the result metadata of description 000), and the figures it adds to many. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from crag_core.base.text.words import estimate_tokens
from crag_core.base.types.decisions import Action, CorrectionKind
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, Passage
from crag_core.base.types.steps import StepName, StepState
from crag_core.decision.decide import chunk_action, set_aside
from crag_core.decision.rounds import DecisionPath
from crag_core.trace.edits import edited
from crag_core.trace.grounding.ending import AnswerEnding
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace

_AFTER = {StepName.ANSWER, StepName.CHECK_ANSWER, StepName.SECOND_OPINION}
_STRATEGIES = {
    CorrectionKind.EXPAND: "query_expansion",
    CorrectionKind.READ: "whole_documents",
    CorrectionKind.RE_RETRIEVE: "re_retrieval",
    CorrectionKind.REFINE: "refinement",
}
_FROM_THE_WEB = frozenset({StepName.SEARCH, StepName.READ_PAGES})
UNTIL_DECIDED = (
    StepName.CLASSIFY,
    StepName.RETRIEVE,
    StepName.GRADE,
    StepName.JUDGE_TOGETHER,
    StepName.ROUTE,
    StepName.RETRIEVE_AGAIN,
)
"""Steps after which the decision may be another one."""


@dataclass(frozen=True)
class Summary:
    """`decision` is the policy's own name for the action, in capitals; `score` its overall score in 0..1.

    Plain RAG has `action` "", `score` None and the decision NOT_GRADED or NOTHING_FOUND. Where two signals decided,
    `score` is the best answering and `topical` the best topical score. `strategy` joins the corrections that were
    carried out by "+", or is "none"; counts are of passages. The four criteria are those of description 000, None where
    not measured. `retrieval_ms` covers everything but the answer. `chunk_actions`: the action of each chunk by its own
    score (description 004). `answered`: there is a whole answer with evidence behind it.
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
    topical: float | None = None
    chunk_actions: tuple[tuple[str, Action], ...] = ()
    ending: AnswerEnding = AnswerEnding.NOT_RUN
    answered: bool = False
    doubtful: bool = False
    from_memory: bool = False
    reason: str = ""


def summarize(trace: Trace) -> Summary:
    routed = reroute(trace, trace.settings.policy)
    decision, decision_path, knowledge = routed.decision, routed.decision_path, routed.knowledge
    strategies = _strategies(trace, used_web=bool(knowledge.external))
    criteria = dict(trace.signals)
    grades = trace.grades or ()
    return Summary(
        decision=decision.label.upper().replace("-", "_").replace(" ", "_"),
        action=decision.verdict.value if decision.verdict else "",
        score=decision.score if decision.verdict else None,
        confidence=decision.confidence if decision.verdict else None,
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
        topical=decision.topical,
        chunk_actions=_chunk_actions(edited(trace), decision_path),
        ending=routed.ending,
        answered=routed.ending.is_answer,
        doubtful=routed.is_doubtful,
        from_memory=decision.is_from_memory or routed.ending is AnswerEnding.FROM_MEMORY,
        reason=decision.reason,
    )


def _chunk_actions(trace: Trace, decision_path: DecisionPath) -> tuple[tuple[str, Action], ...]:
    policy = trace.settings.policy
    aside = set_aside(policy, decision_path.looked_at, trace.grades)
    found = ((one.id, chunk_action(policy, one, trace.grade_of(one.id), aside)) for one in decision_path.looked_at)
    return tuple((id_, action) for id_, action in found if action)


def _strategies(trace: Trace, *, used_web: bool) -> tuple[str, ...]:
    done = {correction.kind for correction in trace.corrections or ()}
    return tuple(name for kind, name in _STRATEGIES.items() if kind in done) + (("web_search",) if used_web else ())


# --- figures that a run adds to many ----------------------------------------------------------------------------------


class Ending(StrEnum):
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    WAITING = "waiting"


@dataclass(frozen=True)
class Measured:
    """One run in numbers; no text of a question or document is among them.

    `at` is when it was kept, in seconds since 1970. `decided_ms` is the time to the last decision, `retrieval_ms` to
    the assembled context, `provider_ms` what of that the web search took; None in a run that did not come so far.
    `improved` tells whether the best score of the evidence is higher than that of what was retrieved first
    ("corrections improving score", description 000): None where the action was CORRECT, nothing was corrected, or
    either side was never graded. `graded` counts grades that hold a score, `cached` those that the cache had. Calls,
    tokens and grades are those of the run itself: what it took over from another one is counted there.
    """

    at: float
    ending: Ending
    action: Action | None
    policy: str
    strategy: str
    score: float | None
    decided_ms: float | None
    retrieval_ms: float | None
    provider_ms: float | None
    total_ms: float
    searched: bool
    improved: bool | None
    graded: int
    ungraded: int
    cached: int
    calls: int
    prompt_tokens: int
    completion_tokens: int


def measure(trace: Trace, at: float) -> Measured:
    is_assembled = trace.context is not None
    summary = summarize(trace)
    usage = trace.own_usage
    grades = _own_grades(trace)
    ungraded = sum(grade.score is None for grade in grades)
    return Measured(
        at=at,
        ending=ending_of(trace),
        action=trace.decision.verdict if trace.decision else None,
        policy=trace.settings.policy.name,
        strategy=summary.strategy if is_assembled else "",
        score=trace.decision.score if trace.decision and trace.decision.verdict else None,
        decided_ms=1000 * trace.seconds_of(UNTIL_DECIDED) if trace.decision else None,
        retrieval_ms=summary.retrieval_ms if is_assembled else None,
        provider_ms=1000 * trace.seconds_of(_FROM_THE_WEB) if is_assembled else None,
        total_ms=1000 * trace.seconds,
        searched=trace.web is not None and trace.web.outcome.was_asked and not trace.web.from_cache,
        improved=_improved(trace) if is_assembled and summary.correction_applied else None,
        graded=len(grades) - ungraded,
        ungraded=ungraded,
        cached=sum(grade.from_cache for grade in grades),
        calls=usage.calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
    )


DOUBTFUL, FROM_MEMORY = "doubtful", "from memory"
_KINDS = {AnswerEnding.DOUBTFUL: DOUBTFUL, AnswerEnding.FROM_MEMORY: FROM_MEMORY}


def answer_kind(trace: Trace) -> str:
    """For metrics, logs and spans: the state of the answer, or that no evidence stands behind a whole one; "": none."""
    routed = reroute(trace, trace.settings.policy)
    return _KINDS.get(routed.ending) or (trace.answer.state.value if trace.answer else "")


def ending_of(trace: Trace) -> Ending:
    broken = trace.failure
    if broken:
        return Ending.STOPPED if broken.state is StepState.STOPPED else Ending.FAILED
    return Ending.WAITING if any(step.state is StepState.WAITING for step in trace.steps) else Ending.DONE


def _own_grades(trace: Trace) -> tuple[Grade, ...]:
    """Of corpus and web, each unless all grading there was another run's."""
    others = {step.name for step in trace.steps if step.taken_over}
    others -= {step.name for step in trace.steps if not step.taken_over}
    corpus, web = trace.grades or (), trace.web_grades or ()
    return (() if StepName.GRADE in others else corpus) + (() if StepName.GRADE_WEB in others else web)


def _improved(trace: Trace) -> bool | None:
    routed = reroute(trace, trace.settings.policy)
    if routed.decision.action is Action.CORRECT:
        return None
    before = best_score(trace, trace.passages or ())
    after = best_score(trace, (excerpt.passage for excerpt in routed.knowledge.excerpts))
    if before is None or (after is None and routed.knowledge.excerpts):
        return None
    return after is not None and after > before


def best_score(trace: Trace, passages: Iterable[Passage]) -> float | None:
    """The evaluator's best, by the part that decides where two signals do; None where nothing is graded."""
    name = ANSWERING if trace.settings.policy.compares_two_scores else ""
    grades = (trace.grade_of(passage.id) for passage in passages)
    return max((score for grade in grades if grade and (score := grade.part(name)) is not None), default=None)

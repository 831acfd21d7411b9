"""The figures that one run adds to many: route, benefit of correction, time and cost. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from crag_core.base.types import Action, Grade, Passage, StepName, StepState, WebOutcome
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace

_UNASKED = (WebOutcome.OFF, WebOutcome.COOLING, WebOutcome.PENDING, WebOutcome.APPROVED, WebOutcome.REFUSED)

_UNTIL_DECIDED = (StepName.RETRIEVE, StepName.GRADE, StepName.ROUTE, StepName.RETRIEVE_AGAIN)


class Ending(StrEnum):
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    WAITING = "waiting"


@dataclass(frozen=True)
class Measured:
    """One run in numbers; no text of a question or document is among them.

    `at` is when it was kept, in seconds since 1970. `strategy` is that of `Summary`. `decided_ms` is the time from the
    question to the last decision, `retrieval_ms` to the assembled context, `provider_ms` what of that the web search
    took, `total_ms` that of all steps; the first three are None in a run that did not come so far. `searched`: a
    provider on the web was asked.

    `improved` tells whether the evidence that the answer was to be written from is graded higher, in the mean, than
    what was retrieved first ("corrections improving score", description 000): None where the action was CORRECT,
    nothing was corrected, or either side was never graded; False too where nothing was left.

    `graded` counts grades that hold a score, `ungraded` those that could not be made or read, `cached` those of both
    that the cache had. With calls and tokens they are those of the run itself: what it took over from another one is
    counted there. Times are those of the record, in which the steps that were taken over have theirs.
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
    """The run under its own policy, as it was taken."""
    is_assembled = trace.context is not None
    summary = summarize(trace)
    usage = trace.own_usage
    grades = _own_grades(trace)
    ungraded = sum(grade.score is None for grade in grades)
    return Measured(
        at=at,
        ending=ending_of(trace),
        action=trace.decision.action if trace.decision else None,
        policy=trace.settings.policy.name,
        strategy=summary.strategy if is_assembled else "",
        score=trace.decision.score if trace.decision else None,
        decided_ms=1000 * trace.seconds_of(_UNTIL_DECIDED) if trace.decision else None,
        retrieval_ms=summary.retrieval_ms if is_assembled else None,
        provider_ms=1000 * trace.seconds_of({StepName.SEARCH}) if is_assembled else None,
        total_ms=1000 * trace.seconds,
        searched=trace.web is not None and trace.web.outcome not in _UNASKED,
        improved=_improved(trace) if is_assembled and summary.correction_applied else None,
        graded=len(grades) - ungraded,
        ungraded=ungraded,
        cached=sum(grade.from_cache for grade in grades),
        calls=usage.calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
    )


def ending_of(trace: Trace) -> Ending:
    broken = trace.failure
    if broken:
        return Ending.STOPPED if broken.state is StepState.STOPPED else Ending.FAILED
    return Ending.WAITING if any(step.state is StepState.WAITING for step in trace.steps) else Ending.DONE


def _own_grades(trace: Trace) -> tuple[Grade, ...]:
    """Of corpus and web, each unless all grading there was another run's."""
    others = {step.name for step in trace.steps if step.taken_over}
    others -= {step.name for step in trace.steps if not step.taken_over}
    web = (trace.web.grades if trace.web else None) or ()
    return (() if StepName.GRADE in others else trace.grades or ()) + (() if StepName.GRADE_WEB in others else web)


def _improved(trace: Trace) -> bool | None:
    routed = reroute(trace, trace.settings.policy)
    if routed.decision.action is Action.CORRECT:
        return None
    before = _mean_grade(trace, trace.passages or ())
    after = _mean_grade(trace, (excerpt.passage for excerpt in routed.knowledge.excerpts))
    if before is None or (after is None and routed.knowledge.excerpts):
        return None
    return after is not None and after > before


def _mean_grade(trace: Trace, passages: Iterable[Passage]) -> float | None:
    grades: dict[str, Grade | None] = {passage.id: trace.grade_of(passage.id) for passage in passages}
    scores = [grade.score for grade in grades.values() if grade is not None and grade.score is not None]
    return math.fsum(scores) / len(scores) if scores else None

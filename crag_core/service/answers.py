"""What the service says of a record: decision, chunks, evidence, the run in short. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from crag_core.base.types.decisions import Correction, Decision
from crag_core.base.types.knowledge import Excerpt
from crag_core.base.types.passages import Origin, Passage
from crag_core.decision.decide import chunk_action, set_aside
from crag_core.decision.policy import Policy
from crag_core.decision.stability import flips
from crag_core.service import schemas
from crag_core.trace.consolidation import conflict_lines
from crag_core.trace.reroute import caution
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from crag_core.view.run_view import RunView, view_run

_HALF = re.compile("[\ud800-\udfff]")
Fields = dict[str, Any]
_UNDECIDED = schemas.Decision(
    action=None, label="Asks back", score=None, topical=None, reason="nothing was retrieved for it yet", rule=None,
    corrections=[],
)  # fmt: skip


def routed(trace: Trace, seconds: float, *, kept: bool, with_record: bool) -> schemas.RouteResponse:
    record = record_of(trace) if with_record else None
    view = view_run(trace)
    left = {one.id for one in view.routed.decision_path.kept}
    return schemas.RouteResponse(**_decided(view, left), seconds=seconds, kept=kept, record=record)


def rerouted(trace: Trace, policy: Policy) -> schemas.RerouteResponse:
    view = view_run(trace, policy)
    answer = view.routed.answer
    return schemas.RerouteResponse(
        **_decided(view, _used(view)),
        missing=[one.value for one in view.routed.missing],
        sources=_sources(view),
        answer=None if answer is None else whole(view.cited(answer.shown)),
        ending=view.routed.ending,
        doubtful=view.routed.is_doubtful,
    )


def answered(trace: Trace, *, kept: bool, with_record: bool) -> schemas.QueryResponse:
    """Of a run that came to its end."""
    view = view_run(trace)
    answer = trace.answer
    message = (answer.message if answer else "") or caution(trace, view.routed)[1]
    return schemas.QueryResponse(
        **_decided(view, _used(view)),
        query=whole(trace.question),
        asked=whole(trace.asked),
        asks_back=whole(trace.asks_back),
        answer=whole(view.cited(answer.text)) if answer and answer.shown == answer.text else "",
        state=answer.state if answer else None,
        ending=view.routed.ending,
        doubtful=view.routed.is_doubtful,
        message=whole(message),
        sources=_sources(view),
        consolidation=_consolidation(view),
        metadata=_metadata(trace),
        steps=[
            schemas.Step(name=step.name, state=step.state, seconds=step.seconds, summary=whole(step.summary))
            for step in trace.steps
        ],
        kept=kept,
        record=record_of(trace) if with_record else None,
    )


def whole(text: str) -> str:
    """Half a character of a pair, which UTF-8 cannot write, becomes the replacement character."""
    return _HALF.sub("\ufffd", text)


def record_of(trace: Trace) -> Fields:
    return dict(json.loads(whole(trace.to_json())))


def _used(view: RunView) -> set[str]:
    return {excerpt.passage.id for excerpt in view.routed.knowledge.excerpts}


def _decided(view: RunView, kept: set[str]) -> Fields:
    path, policy, trace = view.routed.decision_path, view.policy, view.changed
    chunks = {one.id: one for one in (*path.looked_at, *trace.web_passages)}
    aside = set_aside(policy, path.looked_at, trace.grades)
    return {
        "id": whole(trace.id),
        "decision": _UNDECIDED if trace.asks_back else _decision(path.decision),
        "chunks": [
            _chunk(trace, policy, one, view.labels[one.id].number, one.id in kept, aside) for one in chunks.values()
        ],
        "flips": [
            schemas.Flip(**asdict(one))
            for one in (flips(view.stability, policy) if path.decision.verdict and not trace.asks_back else ())
        ],
        "policy": schemas.Policy(
            name=policy.name,
            lower=policy.lower,
            upper=policy.upper,
            cutoff=policy.cutoff,
            evaluator=whole(trace.settings.evaluator.name),
        ),
    }


def _decision(made: Decision) -> schemas.Decision:
    return schemas.Decision(
        action=made.verdict,
        label=made.label,
        score=made.score if made.verdict else None,
        topical=made.topical,
        reason=whole(made.reason),
        rule=made.rule,
        corrections=[_correction(one) for one in made.plan],
    )


def _correction(one: Correction) -> schemas.Correction:
    chunk = None if one.passage_id is None else whole(one.passage_id)
    return schemas.Correction(kind=one.kind, reason=whole(one.reason), chunk=chunk, query=whole(one.query))


def _chunk(
    trace: Trace, policy: Policy, passage: Passage, number: int, kept: bool, aside: Collection[str]
) -> schemas.Chunk:
    grade = trace.grade_of(passage.id)
    return schemas.Chunk(
        number=number,
        id=whole(passage.id),
        source=whole(passage.source),
        origin=passage.origin,
        url=passage.url and whole(passage.url),
        page=passage.page,
        score=grade.score if grade else None,
        parts={whole(name): value for name, value in (grade.parts if grade else ())},
        reason=whole(grade.reason) if grade else "",
        cause=whole(grade.cause) if grade else "not asked for",
        action=chunk_action(policy, passage, grade, aside) if passage.origin is Origin.CORPUS else None,
        kept=kept,
    )


def _sources(view: RunView) -> list[schemas.Excerpt]:
    return [
        _excerpt(number, one) for number, one in zip(view.excerpt_numbers, view.routed.knowledge.excerpts, strict=True)
    ]


def _consolidation(view: RunView) -> schemas.Consolidation | None:
    found = view.routed.knowledge.consolidation
    if found is None:
        return None
    return schemas.Consolidation(
        own_knowledge=[whole(text) for text in found.own],
        passages=[
            schemas.ConsolidatedPassage(
                text=whole(one.text),
                sources=[view.excerpt_numbers[place - 1] for place in one.excerpts],
                from_memory=bool(one.memory),
            )
            for one in found.pieces
        ],
        conflicts=list(conflict_lines(found, view.excerpt_numbers)),
    )


def _excerpt(number: int, one: Excerpt) -> schemas.Excerpt:
    passage = one.passage
    return schemas.Excerpt(
        number=number,
        chunk=whole(passage.id),
        text=whole(one.text),
        source=whole(passage.source),
        origin=passage.origin,
        url=passage.url and whole(passage.url),
        page=passage.page,
    )


def _metadata(trace: Trace) -> schemas.Metadata:
    made = summarize(trace)
    return schemas.Metadata(
        crag_decision=made.decision,
        crag_score=made.score,
        crag_correction_strategy=made.strategy,
        crag_web_search_used=made.web_used,
        original_count=made.original_count,
        final_count=made.final_count,
        tokens_used=made.tokens_used,
        retrieval_time_ms=made.retrieval_ms,
        cache_hit=made.cache_hit,
        model_calls=made.model_calls,
    )

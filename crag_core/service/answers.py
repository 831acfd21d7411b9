"""What the service says of a record: decision, chunks, evidence, the run in short. Pure."""

from __future__ import annotations

import json
from typing import Any

from crag_core.app.uploads import whole
from crag_core.base.types.decisions import Decision
from crag_core.base.types.passages import Passage
from crag_core.decision.policy import Policy
from crag_core.decision.stability import flips
from crag_core.service import schemas
from crag_core.trace.reroute import caution
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from crag_core.view.chunk_cards import ChunkCard, chunk_cards, snippet_cards
from crag_core.view.run_view import RunView, view_run

Fields = dict[str, Any]


def routed(trace: Trace, seconds: float, *, kept: bool, with_record: bool) -> schemas.RouteResponse:
    view = view_run(trace)
    left = {one.id for one in view.routed.decision_path.kept}
    record = record_of(trace) if with_record else None
    return schemas.RouteResponse(**_decided(view, left), seconds=seconds, kept=kept, record=record)


def rerouted(trace: Trace, policy: Policy) -> schemas.RerouteResponse:
    view = view_run(trace, policy)
    answer = view.routed.answer
    return schemas.RerouteResponse(
        **_evidenced(view),
        missing=[one.value for one in view.routed.missing],
        answer=None if answer is None else view.cited(answer.shown),
    )


def answered(trace: Trace, *, kept: bool, with_record: bool) -> schemas.QueryResponse:
    """Of a run that came to its end."""
    view, answer = view_run(trace), trace.answer
    made = summarize(trace)
    return schemas.QueryResponse(
        **_evidenced(view),
        query=trace.question,
        asked=trace.asked,
        asks_back=trace.asks_back,
        answer=view.cited(answer.text) if answer and answer.shown == answer.text else "",
        state=answer.state if answer else None,
        message=(answer.message if answer else "") or caution(trace, view.routed)[1],
        metadata=schemas.Metadata(
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
        ),
        kept=kept,
        record=record_of(trace) if with_record else None,
    )


def record_of(trace: Trace) -> Fields:
    return dict(json.loads(whole(trace.to_json())))


def _evidenced(view: RunView) -> Fields:
    """A decision, and the excerpts that an answer may cite."""
    excerpts = view.routed.knowledge.excerpts
    sources = [
        schemas.Excerpt(number=number, chunk=one.passage.id, text=one.text, **_place(one.passage))
        for number, one in zip(view.excerpt_numbers, excerpts, strict=True)
    ]
    said = {"ending": view.routed.ending, "doubtful": view.routed.is_doubtful}
    return {**_decided(view, {one.passage.id for one in excerpts}), "sources": sources, **said}


def _decided(view: RunView, kept: set[str]) -> Fields:
    path, policy, trace = view.routed.decision_path, view.policy, view.changed
    cards = {card.passage.id: card for card in (*chunk_cards(view), *snippet_cards(view))}
    ids = dict.fromkeys(one.id for one in (*path.looked_at, *trace.web_passages))
    is_judged = bool(path.decision.verdict) and not trace.asks_back
    return {
        "id": trace.id,
        "decision": _asks_back() if trace.asks_back else _decision(path.decision),
        "chunks": [_chunk(cards[id_], kept=id_ in kept) for id_ in ids],
        "flips": list(map(schemas.Flip.model_validate, flips(view.stability, policy) if is_judged else ())),
        "policy": schemas.Policy(
            name=policy.name,
            lower=policy.lower,
            upper=policy.upper,
            cutoff=policy.cutoff,
            evaluator=trace.settings.evaluator.name,
        ),
    }


def _asks_back() -> schemas.Decision:
    reason = "nothing was retrieved for it yet"
    return schemas.Decision(
        action=None, label="Asks back", score=None, topical=None, reason=reason, rule=None, corrections=[]
    )


def _decision(made: Decision) -> schemas.Decision:
    return schemas.Decision(
        action=made.verdict,
        label=made.label,
        score=made.score if made.verdict else None,
        topical=made.topical,
        reason=made.reason,
        rule=made.rule,
        corrections=[
            schemas.Correction(kind=one.kind, reason=one.reason, chunk=one.passage_id, query=one.query)
            for one in made.plan
        ],
    )


def _chunk(card: ChunkCard, *, kept: bool) -> schemas.Chunk:
    grade = card.counted
    return schemas.Chunk(
        number=card.label.number,
        id=card.passage.id,
        **_place(card.passage),
        score=grade.score if grade else None,
        parts=dict(grade.parts) if grade else {},
        reason=grade.reason if grade else "",
        cause=grade.cause if grade else "not asked for",
        action=card.action,
        kept=kept,
    )


def _place(passage: Passage) -> Fields:
    return {"source": passage.source, "origin": passage.origin, "url": passage.url, "page": passage.page}

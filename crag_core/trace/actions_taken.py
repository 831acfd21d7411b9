"""The corrections that a run carried out, each with reason and query."""

from __future__ import annotations

from dataclasses import replace

from crag_core.base.types import Correction, CorrectionKind, Decision, Round, WebOutcome, WebSearch
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace

_SEARCHED = (WebOutcome.USED, WebOutcome.EMPTY, WebOutcome.FAILED, WebOutcome.RATE_LIMITED, WebOutcome.TIMED_OUT)
_ROUND = {CorrectionKind.EXPAND, CorrectionKind.RE_RETRIEVE}


def carried_out(trace: Trace, routed: Reroute) -> tuple[Correction, ...]:
    """The corrections of every iteration in order, as they were really made.

    A retrieval or search that was wanted but not made is left out; the reason of a search says what came of it.
    Only the last iteration keeps, refines and answers.
    """
    rounds = {found.path: found for found in trace.rounds}
    done: list[Correction] = []
    for iteration in routed.decision_path.iterations[:-1]:
        done += [one for one in iteration.decision.plan if one.kind is CorrectionKind.DISCARD]
        done += _retrieved(iteration.decision, rounds[(*iteration.path, str(iteration.decision.next_round))])
    last = routed.decision_path.iterations[-1]
    following = rounds.get((*last.path, str(last.decision.next_round)))
    for wanted in last.decision.plan:
        if wanted.kind in _ROUND:
            done += _retrieved(last.decision, following) if following else []
        elif wanted.kind in (CorrectionKind.REWRITE, CorrectionKind.WEB_SEARCH):
            done += _searched(wanted, trace.web)
        elif wanted.kind is CorrectionKind.REFINE:
            done.append(_refined(wanted, trace, routed))
        elif wanted.kind is CorrectionKind.KEEP and following:  # an expansion widens what the decision looked at
            done.append(replace(wanted, reason=f"use {len(routed.decision_path.kept)} chunks as they are"))
        else:
            done.append(wanted)
    return tuple(done)


def _refined(wanted: Correction, trace: Trace, routed: Reroute) -> Correction:
    """Passages that went in whole all the same were not refined; the notes of the knowledge say why."""
    whole = [excerpt for excerpt in routed.knowledge.internal if not excerpt.strip_ids]
    if not whole:
        return replace(wanted, query=trace.question)
    return Correction(CorrectionKind.KEEP, f"use {len(whole)} chunks as they are")


def _retrieved(decision: Decision, found: Round) -> list[Correction]:
    query = found.retrievals[-1].query
    return [
        replace(one, reason=f"{one.reason}; {found.query_by}", query=query)
        for one in decision.plan
        if one.kind in _ROUND
    ]


def _searched(wanted: Correction, web: WebSearch | None) -> list[Correction]:
    if web is None or web.outcome not in _SEARCHED:
        return []
    if wanted.kind is CorrectionKind.REWRITE:
        return [replace(wanted, reason=f"{wanted.reason}; {web.query_by}", query=web.query)]
    came = f"{len(web.passages)} results" if web.passages else web.outcome.value
    return [replace(wanted, reason=f"{wanted.reason}; {came}", query=web.query)]

"""What-if edits: the record with passages dropped or pinned. Pure."""

from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Extraction, Strip
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage, Round
from crag_core.base.types.web import WebOutcome, WebSearch
from crag_core.decision.refine import decompose
from crag_core.decision.signals import SignalMeter
from crag_core.trace.opinions import with_grades
from crag_core.trace.trace import Trace

PINNED = "pinned by you"

_About = TypeVar("_About", Grade, Strip, Extraction)


def edited(trace: Trace) -> Trace:
    """The record that `trace.edits` make of it, itself without edits; `trace` where there are none.

    Dropped passages are gone everywhere. Pinned ones are graded 1.0, by every evaluator; each of their strips scores
    1.0 and is extracted, wherever strips and extractions were made at all. Ids that the record does not hold count for
    nothing. What was done (decision, context, answer, steps) stays as taken.
    """
    if not trace.edits:
        return trace
    left = _without(trace, frozenset(trace.edits.dropped))
    return replace(_pinned(left, frozenset(trace.edits.pinned)), edits=Edits())


def measured(trace: Trace, edits: Edits, meter: SignalMeter) -> Edits:
    """`edits` with the signals that the rest of the first retrieval gives; none where nothing of it was dropped."""
    first = trace.passages or ()
    rest = tuple(passage for passage in first if passage.id not in edits.dropped)
    return replace(edits, signals=meter.measure(trace.question, rest) if rest != first else ())


# --- dropped --------------------------------------------------------------------------------------------------------


def _without(trace: Trace, dropped: Collection[str]) -> Trace:
    if not dropped:
        return trace
    first = None if trace.passages is None else _others(trace.passages, dropped)
    return replace(
        trace,
        passages=first,
        signals=trace.signals if first == trace.passages else trace.edits.signals,
        rounds=tuple(_round_without(found, dropped) for found in trace.rounds),
        strips=_about_others(trace.strips, dropped),
        extractions=_about_others(trace.extractions, dropped),
        web=_web_without(trace.web, dropped) if trace.web else None,
        opinions=tuple(replace(one, grades=_about_others(one.grades, dropped) or ()) for one in trace.opinions),
    )


def _round_without(found: Round, dropped: Collection[str]) -> Round:
    rest = (replace(one, passages=_others(one.passages, dropped)) for one in found.retrievals)
    return replace(found, retrievals=tuple(rest))


def _web_without(web: WebSearch, dropped: Collection[str]) -> WebSearch:
    """A search that is left with no result counts as one that found nothing."""
    rest = _others(web.passages, dropped)
    if rest == web.passages:
        return web
    outcome = web.outcome if rest else WebOutcome.EMPTY
    return replace(web, outcome=outcome, passages=rest, strips=_about_others(web.strips, dropped))


def _others(passages: tuple[Passage, ...], dropped: Collection[str]) -> tuple[Passage, ...]:
    return tuple(passage for passage in passages if passage.id not in dropped)


def _about_others(said: tuple[_About, ...] | None, dropped: Collection[str]) -> tuple[_About, ...] | None:
    return None if said is None else tuple(one for one in said if one.passage_id not in dropped)


# --- pinned ---------------------------------------------------------------------------------------------------------


def _pinned(trace: Trace, ids: Collection[str]) -> Trace:
    web = trace.web
    corpus = tuple(passage for passage in trace.all_passages if passage.id in ids)
    results = tuple(passage for passage in trace.web_passages if passage.id in ids)
    if not corpus and not results:
        return trace
    strips = _scored_full(trace.strips, corpus)
    opinions = trace.opinions if trace.deciding else with_grades(trace, ())
    return replace(
        trace,
        strips=strips,
        extractions=_picked_whole(trace.extractions, strips or (), corpus),
        web=replace(web, strips=_scored_full(web.strips, results)) if web else None,
        opinions=tuple(replace(one, grades=_graded_full(one.grades, (*corpus, *results))) for one in opinions),
    )


def _graded_full(grades: tuple[Grade, ...], passages: tuple[Passage, ...]) -> tuple[Grade, ...]:
    """In two signals only where the evaluator tells one from the other."""
    parts = ((ANSWERING, 1.0), (TOPICAL, 1.0)) if any(grade.two_signals for grade in grades) else ()
    full = {passage.id: Grade(passage.id, 1.0, PINNED, parts) for passage in passages}
    known = {grade.passage_id for grade in grades}
    changed = tuple(full.get(grade.passage_id, grade) for grade in grades)
    return changed + tuple(grade for passage_id, grade in full.items() if passage_id not in known)


def _scored_full(strips: tuple[Strip, ...] | None, pinned: tuple[Passage, ...]) -> tuple[Strip, ...] | None:
    """Those of a pinned passage that was never split come in too: they and their scores are known."""
    if strips is None:
        return None
    full, known = {passage.id for passage in pinned}, {strip.passage_id for strip in strips}
    new = (strip for passage in pinned if passage.id not in known for strip in decompose(passage))
    return tuple(replace(one, score=1.0) if one.passage_id in full else one for one in (*strips, *new))


def _picked_whole(
    extractions: tuple[Extraction, ...] | None, strips: tuple[Strip, ...], passages: tuple[Passage, ...]
) -> tuple[Extraction, ...] | None:
    if extractions is None:
        return None
    whole: dict[str, list[int]] = {passage.id: [] for passage in passages}
    for strip in strips:
        if strip.passage_id in whole:
            whole[strip.passage_id].append(strip.index)
    others = tuple(one for one in extractions if one.passage_id not in whole)
    return others + tuple(Extraction(passage_id, tuple(indexes)) for passage_id, indexes in whole.items())

"""Tells a recorded run as a story."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from crag_core.base.text.display import against, clean, sentence, shortened
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.passages import Origin, Passage
from crag_core.base.types.web import WebOutcome
from crag_core.decision.policy import Policy
from crag_core.trace.grounding.ending import AnswerEnding
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE, citations, quotable, with_headers
from crag_core.trace.reroute import Missing
from crag_core.view.answer.answer_blocks import sources_of
from crag_core.view.answer.unanswered import nearest_miss, why_unanswered
from crag_core.view.chunk_cards import ChunkCard, chunk_cards, snippet_cards
from crag_core.view.record import round_rows
from crag_core.view.run_view import RunView, name_of
from crag_core.view.story import moves, words
from crag_core.view.story.moves import Move
from crag_core.view.story.scales import before_decision, graded, scales_of, shortened_scale
from crag_core.view.story.steps import Picture, Place, Story, StoryStep

_WAY = ("Question", "Search", "Grade", "Decide", "Documents", "Web", "Answer")
_AT = dict(
    zip(("question", "found", "graded", "decided", "documents", "web", "answer"), _WAY, strict=True),
    policies="Decide",
    bar="Decide",
)
_TITLES = {
    AnswerEnding.DOUBTFUL: "No sure answer",
    AnswerEnding.FROM_MEMORY: "An answer without a source",
    **dict.fromkeys((AnswerEnding.CUT, AnswerEnding.STOPPED, AnswerEnding.FAILED), "An answer that is not whole"),
}
_MOST_CHUNKS, _MOST_LINES = 6, 7
_EXCERPT, _SENTENCE, _LONGEST = 170, 260, 900  # characters
_MOST_CELLS, _LONGEST_HEAD, _LONGEST_CELL = 6, 40, 90
_QUOTED_ROW = re.compile(r"“([^“”]+)”( \[\d+\])?")

Cells = tuple[tuple[str, str], ...]


def tell(
    view: RunView,
    title: str = "",
    notes: Mapping[str, str] = MappingProxyType({}),
    about: str = "",
    move: Move | None = None,
    other: Policy | None = None,
    web_note: str = "",
    tells_ending: bool = False,
) -> Story:
    """The steps that the run came to, in order.

    `tells_ending`: the title does. `notes` are said on a step, by its id; `about` tells what was asked, `web_note`
    stands beside web pages. The last step moves a bar, as `move` says or to the nearest place that changes the
    decision; with `other` it is this policy reading the same scores.
    """
    told = [*_told(view, about, web_note), *_last(view, move, other)]
    ids = [one.id for one in told]
    steps = tuple(
        replace(one, note=clean(notes.get(one.id, one.note)), way=_way(view, ids, at)) for at, one in enumerate(told)
    )
    question = shortened(clean(view.trace.question), _LONGEST)
    return Story(clean(view.trace.id), clean(title) or "A run of your own", question, steps, tells_ending)


def _told(view: RunView, about: str, web_note: str) -> Iterator[StoryStep]:
    asked = {"kind": "question", "question": shortened(clean(view.trace.question), _LONGEST), "about": clean(about)}
    yield StoryStep("question", "A question", words.question_caption(view), asked)
    if view.trace.passages is not None:
        caption = words.found_caption(view)
        yield StoryStep("found", "What the search finds", caption, _chunks(view), _rounds(view))
    if not view.is_decided:
        yield _broken(view)
        return
    yield from _decided(view)
    if view.routed.decision_path.evidence:
        yield _documents(view)
    if view.routed.decision.may_search and not _is_web_off(view):
        yield _web(view, web_note)
    yield _answered(view)


def _broken(view: RunView) -> StoryStep:
    failure = view.trace.failure
    if view.not_graded_by and failure is None:
        return StoryStep("answer", "Not decided yet", f"{view.not_graded_by}.", _no_answer(""))
    why = " ".join(filter(None, (clean(failure.summary), clean(failure.hint)))) if failure else ""
    caption = f"This run ended before anything was decided. {why}".strip()
    return StoryStep("answer", "Here the run ended", caption, _no_answer(why))


# --- found, graded, decided -------------------------------------------------------------------------------------------


def _cards(view: RunView) -> tuple[ChunkCard, ...]:
    return tuple(card for card in chunk_cards(view) if not card.is_dropped)


def _chunks(view: RunView, state: str = "") -> Picture:
    cards = _cards(view)
    shown = [_chunk(card, state) for card in cards[:_MOST_CHUNKS]]
    return {"kind": "chunks", "chunks": shown, "more": max(len(cards) - _MOST_CHUNKS, 0)}


def _chunk(card: ChunkCard, state: str = "") -> dict[str, Any]:
    """By its best sentence. `state`: "aside", or ""."""
    scored = [(one.strip.score, with_headers(one.strip, card.passage)) for one in card.verdicts if one.strip.score]
    text = max(scored)[1] if scored else card.passage.text
    text = clean(quotable(text) or text.strip("# \n"))
    head = {"number": str(card.label.number), "source": clean(str(card.label.name)), "state": state}
    return head | {"text": shortened(text, _EXCERPT), "cells": _cells(text)}


def _cells(text: str) -> Cells:
    """(head, cell) of a row that is written as "head: cell; head: cell"; () for other text."""
    found: list[tuple[str, str]] = []
    for part in text.split("; "):
        head, colon, cell = part.partition(": ")
        if colon and len(head) <= _LONGEST_HEAD:
            found.append((head.replace("_", " "), shortened(cell, _LONGEST_CELL)))
        elif found:  # a cell may hold a semicolon
            found[-1] = (found[-1][0], shortened(f"{found[-1][1]}; {part}", _LONGEST_CELL))
        else:
            return ()
    return tuple(found[:_MOST_CELLS]) if len(found) > 1 else ()


def _rounds(view: RunView) -> str:
    rows = round_rows(view)
    told = "; ".join(f"{row.how} ({row.found})" for row in rows)
    return shortened(clean(f"It was searched {len(rows)} times: {told}."), _SENTENCE) if rows else ""


def _decided(view: RunView) -> Iterator[StoryStep]:
    decision, scales = view.routed.decision, scales_of(view)
    count = len(graded(scales[0])) if scales else 0
    if scales and not decision.rule:
        best = tuple(max(found) for scale in scales if (found := graded(scale)))
        caption = words.graded_caption(view, best, count, len(scales[0].scores) - count)
        shown = [shortened_scale(before_decision(one)) for one in scales]
        yield StoryStep(
            "graded", "Every chunk is graded", caption, {"kind": "scores", "scales": shown, "verdict": None}
        )
    verdict = words.verdict_of(decision)
    shown = [] if decision.rule or decision.score is None else list(map(shortened_scale, scales_of(view, asked=True)))
    grades = map(view.changed.grade_of, decision.deciding)
    notes = dict.fromkeys(sentence(clean(one.caution)) for one in grades if one and one.caution)
    yield StoryStep(
        "decided",
        f"Retrieval: {verdict.action}" if decision.verdict else "No check",
        words.decision_caption(view, count),
        {"kind": "scores", "scales": shown, "verdict": verdict},
        " ".join((*notes, *(["In this run the web is switched off."] if _is_web_off(view) else []))),
    )


def _is_web_off(view: RunView) -> bool:
    web = view.trace.web
    return view.routed.decision.may_search and web is not None and web.outcome is WebOutcome.OFF


# --- what is done with it ---------------------------------------------------------------------------------------------


def _documents(view: RunView) -> StoryStep:
    knowledge = view.routed.knowledge
    title = "Keep what helps" if knowledge.internal else "Set aside"
    if knowledge.internal and not any(excerpt.strip_ids for excerpt in knowledge.internal):
        title = "Used as they are"
    if Missing.STRIPS in view.routed.missing:
        title = "The documents"
    note = clean("; ".join(knowledge.notes))
    return StoryStep("documents", title, words.documents_caption(view), _sentences(view), note)


def _web(view: RunView, note: str) -> StoryStep:
    cards, web = snippet_cards(view), view.trace.web
    used = {excerpt.passage.id for excerpt in view.routed.knowledge.external}
    scores = {card.passage.id: card.compared[0].value for card in cards if card.compared}
    best = max(scores.values(), default=None)
    query = clean(web.query) if web and web.outcome is WebOutcome.USED else ""
    limits = (view.policy.lower, view.policy.upper)
    told = (scores.get(card.passage.id) for card in cards[:_MOST_CHUNKS])
    picture = {
        "kind": "web",
        "query": query,
        "snippets": [_chunk(card, "" if card.passage.id in used else "aside") for card in cards[:_MOST_CHUNKS]],
        "scores": ["" if score is None else against(score, *limits)[0] for score in told],
        "note": note if query else "",
    }
    return StoryStep("web", "Ask the web" if query else "The web", words.web_caption(view, best, len(used)), picture)


def _sentences(view: RunView) -> Picture:
    """Those of the chunk that gave the best kept sentence; all chunks where none is cut into sentences."""
    knowledge = view.routed.knowledge
    if not knowledge.internal:
        return _chunks(view, "" if Missing.STRIPS in view.routed.missing else "aside")
    cards = [card for card in _cards(view) if any(one.kept for one in card.verdicts)]
    if not cards or not any(excerpt.strip_ids for excerpt in knowledge.internal):
        return _chunks(view)
    card = max(cards, key=lambda one: max(v.strip.score or 0.0 for v in one.verdicts if v.kept))
    rows = []
    for row in card.sentences.rows:
        text = _without_headings(row.lines)
        score = "" if row.score is None else against(row.score, view.policy.cutoff)[0]
        rows.append({"text": shortened(text, _SENTENCE), "kept": bool(row.kept), "score": score, "cells": _cells(text)})
    # From the line before the first that is kept, so that it is among those that are shown.
    kept = next((at for at, row in enumerate(rows) if row["kept"]), 0)
    first = max(0, min(kept - 1, len(rows) - _MOST_LINES))
    shown = rows[first : first + _MOST_LINES]
    hidden, others = len(rows) - len(shown), len(cards) - 1
    more = [f"{words.many(hidden, 'more sentence')} of this chunk"] if hidden else []
    more += [f"sentences of {words.many(others, 'other chunk')} kept too"] if others else []
    chunk = _chunk(card) | {"text": "", "cells": ()}
    return {"kind": "sentences", "chunk": chunk, "sentences": shown, "more": words.capital("; ".join(more))}


def _without_headings(lines: tuple[tuple[str, bool], ...]) -> str:
    """The words of a sentence; those of its headings where it has no others."""
    said = [text for text, is_heading in lines if not is_heading] or [text for text, _ in lines]
    return " ".join(_row(text) for text in said)


def _row(text: str) -> str:
    is_row = text.startswith("|") and text.endswith("|")
    return " · ".join(cell.strip() for cell in text.strip("|").split("|")) if is_row else text


# --- the answer -------------------------------------------------------------------------------------------------------


def _answered(view: RunView) -> StoryStep:
    answer = view.routed.answer
    if answer is None or answer.state is AnswerState.CANNOT_ANSWER:
        return _unanswered(view, answer)
    excerpts = view.routed.knowledge.excerpts
    quoted = zip(sources_of(view, citations(answer.text, len(excerpts))), excerpts, strict=True)
    cited = [(one, excerpt.passage) for one, excerpt in quoted if one.is_cited]
    # A quotation need not be said twice.
    sources = [_source(one.number, of, "" if answer.writer == EXTRACTIVE else clean(one.quoted)) for one, of in cited]
    ending = view.routed.ending
    text = "\n".join(filter(None, (clean(line) for line in view.cited(answer.text).splitlines())))
    row = _QUOTED_ROW.fullmatch(text)
    picture = _no_answer("") | {
        "text": shortened(text, _LONGEST),
        "sources": sources,
        "tone": "correct" if ending.is_answer else "ambiguous",
        "cells": _cells(row[1]) if row else (),
    }
    caption = words.answer_caption(view, [source["is_web"] for source in sources])
    return StoryStep("answer", _TITLES.get(ending, "The answer, and its source"), caption, picture)


def _no_answer(why: str) -> Picture:
    """`nearest` came closest, and was not given as an answer; `cells` where the answer is one row of a table."""
    return {"kind": "answer", "text": "", "why": why, "sources": (), "tone": "plain", "nearest": None, "cells": ()}


def _source(number: int, passage: Passage, text: str) -> dict[str, Any]:
    """Of a web page the address tells more than its words."""
    is_web = passage.origin is Origin.WEB
    name = clean(str(name_of(passage)))
    return {"number": number, "name": name, "text": clean(passage.url or "") if is_web else text, "is_web": is_web}


def _unanswered(view: RunView, answer: Answer | None) -> StoryStep:
    picture = _no_answer(clean(why_unanswered(view, answer)) if answer else "")
    if answer and (near := nearest_miss(view)):
        text = shortened(clean(quotable(near.text) or near.text), _SENTENCE)
        picture["nearest"] = _source(0, near.passage, "") | {"text": text}
    title = "No answer, and it says so" if answer else "No answer yet"
    return StoryStep("answer", title, words.answer_caption(view, []), picture)


# --- the last step, and the way ---------------------------------------------------------------------------------------


def _last(view: RunView, move: Move | None, other: Policy | None) -> Iterator[StoryStep]:
    decision = view.routed.decision
    if not view.is_decided or decision.verdict is None or decision.rule or decision.score is None:
        return
    if other and (both := moves.policies_picture(view, other)):
        yield StoryStep("policies", "Another policy, the same scores", moves.policies_caption(both), both)
        return
    move = move or moves.nearest_move(view)
    if move and (drawn := moves.bar_picture(view, move)):
        yield StoryStep("bar", "Now move the bar", moves.bar_caption(drawn), drawn)


def _way(view: RunView, ids: list[str], at: int) -> tuple[Place, ...]:
    """How far the question has come at the step with this place in `ids`."""
    now = _WAY.index(_AT[ids[at]])
    is_later = ids[at] in ("bar", "policies")
    came, passed = {_AT[one] for one in ids}, {_AT[one] for one in ids[:at]}
    is_known = ids[at] not in ("question", "found", "graded") and view.is_decided
    knowledge = view.routed.knowledge
    nothing = {name for name, of in (("Documents", knowledge.internal), ("Web", knowledge.external)) if not of}
    places = []
    for number, name in enumerate(_WAY):
        is_passed = name in passed and (number < now or is_later)
        state = "now" if number == now else "done" if is_passed else "ahead"
        is_out = name not in came and (is_known or name == "Grade")
        if is_out or (state != "now" and is_known and name in nothing and name in passed):
            state = "off"
        places.append(Place(name, state))
    return tuple(places)

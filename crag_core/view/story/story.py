"""Tells a recorded run as a story."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from crag_core.base.text.display import against, clean, sentence, shortened
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.passages import ANSWERING, Origin, Passage
from crag_core.base.types.web import WebOutcome
from crag_core.decision.policy import Policy
from crag_core.trace.grounding.ending import AnswerEnding
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE, citations, quotable, with_headers
from crag_core.trace.reroute import Missing
from crag_core.view.answer.answer_blocks import sources_of
from crag_core.view.answer.unanswered import unanswered
from crag_core.view.chunk_cards import ChunkCard, chunk_cards, snippet_cards
from crag_core.view.record import round_rows
from crag_core.view.run_view import RunView, name_of
from crag_core.view.story import moves, words
from crag_core.view.story.moves import Move
from crag_core.view.story.scales import asked_scales, before_decision, best_of, scales_of, shortened_scale, ungraded
from crag_core.view.story.steps import (
    AnswerPicture,
    Chunk,
    ChunksPicture,
    Line,
    Picture,
    Place,
    QuestionPicture,
    ScoresPicture,
    SentencesPicture,
    Source,
    Story,
    StoryStep,
    WebPicture,
)

_WAY = ("Question", "Search", "Grade", "Decide", "Documents", "Web", "Answer")
_AT = {
    "question": "Question",
    "found": "Search",
    "graded": "Grade",
    "decided": "Decide",
    "documents": "Documents",
    "web": "Web",
    "answer": "Answer",
    "policies": "Decide",
    "bar": "Decide",
}
_TITLES = {AnswerEnding.DOUBTFUL: "No sure answer", AnswerEnding.FROM_MEMORY: "An answer without a source"}
_MOST_CHUNKS, _MOST_LINES = 6, 7
_EXCERPT, _SENTENCE, _LONGEST = 170, 260, 900  # characters
_MOST_CELLS, _LONGEST_HEAD, _LONGEST_CELL = 6, 40, 90
_QUOTED_ROW = re.compile(r"“([^“”]+)”( \[\d+\])?")
_Told = tuple[str, str, str, Picture, str]
"""Id, title, caption, picture and note of a step."""


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
    ids = [one[0] for one in told]
    steps = tuple(
        StoryStep(id_, heading, caption, picture, _way(view, id_, ids), clean(notes.get(id_, small)))
        for id_, heading, caption, picture, small in told
    )
    question = shortened(clean(view.trace.question), _LONGEST)
    return Story(clean(view.trace.id), clean(title) or "A run of your own", question, steps, tells_ending)


def _told(view: RunView, about: str, web_note: str) -> Iterator[_Told]:
    is_plain = view.routed.decision.verdict is None and view.trace.passages is not None
    is_from_memory = view.routed.decision.is_from_memory
    question = QuestionPicture(shortened(clean(view.trace.question), _LONGEST), clean(about))
    yield "question", "A question", words.question_caption(is_plain, is_from_memory), question, ""
    if view.trace.passages is None:
        yield _broken(view)
        return
    yield "found", "What the search finds", words.found_caption(view), _chunks(view), _rounds(view)
    if not view.is_decided:
        yield _broken(view)
        return
    yield from _decided(view)
    yield from _corrected(view, web_note)
    yield _answered(view)


def _broken(view: RunView) -> _Told:
    failure = view.trace.failure
    if view.not_graded_by and failure is None:
        return "answer", "Not decided yet", f"{view.not_graded_by}.", AnswerPicture("", "", (), "plain"), ""
    why = " ".join(filter(None, (clean(failure.summary), clean(failure.hint)))) if failure else ""
    caption = "This run ended before anything was decided."
    return "answer", "Here the run ended", f"{caption} {why}".strip(), AnswerPicture("", why, (), "plain"), ""


# --- found, graded, decided -------------------------------------------------------------------------------------------


def _cards(view: RunView) -> tuple[ChunkCard, ...]:
    return tuple(card for card in chunk_cards(view) if not card.is_dropped)


def _chunks(view: RunView, state: str = "") -> ChunksPicture:
    cards = _cards(view)
    shown = tuple(_chunk(card, state) for card in cards[:_MOST_CHUNKS])
    return ChunksPicture(shown, max(len(cards) - _MOST_CHUNKS, 0))


def _chunk(card: ChunkCard, state: str = "") -> Chunk:
    text = _excerpt(card)
    return Chunk(str(card.label.number), clean(str(card.label.name)), shortened(text, _EXCERPT), state, _cells(text))


def _excerpt(card: ChunkCard) -> str:
    scored = [(one.strip.score, with_headers(one.strip, card.passage)) for one in card.verdicts if one.strip.score]
    text = max(scored)[1] if scored else card.passage.text
    return clean(quotable(text) or text.strip("# \n"))


def _cells(text: str) -> tuple[tuple[str, str], ...]:
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


def _decided(view: RunView) -> Iterator[_Told]:
    decision, scales = view.routed.decision, scales_of(view)
    graded = len(scales[0].scores) - ungraded(scales[0]) if scales else 0
    if scales and not decision.rule:
        best = tuple(value for scale in scales if (value := best_of(scale)) is not None)
        caption = words.graded_caption(view, best, len(scales[0].scores), ungraded(scales[0]))
        shown = tuple(shortened_scale(before_decision(one)) for one in scales)
        yield "graded", "Every chunk is graded", caption, ScoresPicture(shown), ""
    verdict = words.verdict_of(decision)
    shown = () if decision.rule or decision.score is None else tuple(map(shortened_scale, asked_scales(view)))
    title = f"Retrieval: {verdict.action}" if decision.verdict else "No check"
    is_off = decision.may_search and view.trace.web is not None and view.trace.web.outcome is WebOutcome.OFF
    grades = map(view.changed.grade_of, decision.deciding)
    notes = dict.fromkeys(sentence(clean(one.caution)) for one in grades if one and one.caution)
    note = " ".join((*notes, *(["In this run the web is switched off."] if is_off else [])))
    yield "decided", title, words.decision_caption(view, graded), ScoresPicture(shown, verdict), note


# --- what is done with it ---------------------------------------------------------------------------------------------


def _corrected(view: RunView, web_note: str) -> Iterator[_Told]:
    decision, knowledge = view.routed.decision, view.routed.knowledge
    if view.routed.decision_path.evidence:
        title = "Set aside" if not knowledge.internal else "Keep what helps"
        if knowledge.internal and not any(excerpt.strip_ids for excerpt in knowledge.internal):
            title = "Used as they are"
        if Missing.STRIPS in view.routed.missing:
            title = "The documents"
        yield "documents", title, words.documents_caption(view), _sentences(view), clean("; ".join(knowledge.notes))
    if decision.may_search and not (view.trace.web and view.trace.web.outcome is WebOutcome.OFF):
        cards, web = snippet_cards(view), view.trace.web
        is_used = {excerpt.passage.id for excerpt in knowledge.external}
        scores = [card.grade.part(ANSWERING) for card in cards if card.grade and card.grade.score is not None]
        best = max((score for score in scores if score is not None), default=None)
        query = clean(web.query) if web and web.outcome is WebOutcome.USED else ""
        picture = WebPicture(
            query,
            tuple(_chunk(card, "" if card.passage.id in is_used else "aside") for card in cards[:_MOST_CHUNKS]),
            tuple(_score(view, card) for card in cards[:_MOST_CHUNKS]),
            web_note if query else "",
        )
        yield "web", "Ask the web" if query else "The web", words.web_caption(view, best, len(is_used)), picture, ""


def _score(view: RunView, card: ChunkCard) -> str:
    value = card.grade.part(ANSWERING) if card.grade else None
    return "" if value is None else against(value, view.policy.lower, view.policy.upper)[0]


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
        rows.append(Line(shortened(text, _SENTENCE), bool(row.kept), score, _cells(text)))
    first = _window(rows)
    shown = tuple(rows[first : first + _MOST_LINES])
    hidden = len(rows) - len(shown)
    others = len(cards) - 1
    more = [f"{words.many(hidden, 'more sentence')} of this chunk"] if hidden else []
    more += [f"sentences of {words.many(others, 'other chunk')} kept too"] if others else []
    return SentencesPicture(replace(_chunk(card), text="", cells=()), shown, words.capital("; ".join(more)))


def _without_headings(lines: tuple[tuple[str, bool], ...]) -> str:
    """The words of a sentence; those of its headings where it has no others."""
    said = [text for text, is_heading in lines if not is_heading] or [text for text, _ in lines]
    return " ".join(_row(text) for text in said)


def _row(text: str) -> str:
    is_row = text.startswith("|") and text.endswith("|")
    return " · ".join(cell.strip() for cell in text.strip("|").split("|")) if is_row else text


def _window(rows: list[Line]) -> int:
    """Where to begin so that the kept sentences are among those that are shown, the best first of all."""
    if len(rows) <= _MOST_LINES:
        return 0
    kept = [at for at, row in enumerate(rows) if row.kept]
    return max(0, min(kept[0] - 1, len(rows) - _MOST_LINES)) if kept else 0


# --- the answer -------------------------------------------------------------------------------------------------------


def _answered(view: RunView) -> _Told:
    answer = view.routed.answer
    if answer is None or answer.state is AnswerState.CANNOT_ANSWER:
        return _unanswered(view, answer)
    cited = citations(answer.text, len(view.routed.knowledge.excerpts))
    sources = tuple(
        _source(answer, one.number, excerpt.passage, clean(one.quoted))
        for one, excerpt in zip(sources_of(view, cited), view.routed.knowledge.excerpts, strict=True)
        if one.is_cited
    )
    from_web = bool(sources) and all(one.is_web for one in sources)
    caption = words.answer_caption(view, tuple(one.name for one in sources), from_web)
    ending = view.routed.ending
    title = _TITLES.get(ending, "The answer, and its source")
    text = "\n".join(filter(None, (clean(line) for line in view.cited(answer.text).splitlines())))
    tone = "correct" if ending.is_answer else "ambiguous"
    row = _QUOTED_ROW.fullmatch(text)
    cells = _cells(row[1]) if row else ()
    return "answer", title, caption, AnswerPicture(shortened(text, _LONGEST), "", sources, tone, cells=cells), ""


def _source(answer: Answer, number: int, passage: Passage, quoted: str) -> Source:
    """A quotation need not be said twice; of a web page the address tells more."""
    is_web = passage.origin is Origin.WEB
    text = clean(passage.url or "") if is_web else "" if answer.writer == EXTRACTIVE else quoted
    return Source(number, clean(str(name_of(passage))), text, is_web)


def _unanswered(view: RunView, answer: Answer | None) -> _Told:
    why = clean(answer.message) if answer else ""
    near = unanswered(view).nearest if answer else None
    nearest = None
    if near:
        text = shortened(clean(quotable(near.text) or near.text), _SENTENCE)
        nearest = Source(0, clean(str(name_of(near.passage))), text, near.passage.origin is Origin.WEB)
    title = "No answer, and it says so" if answer else "No answer yet"
    return "answer", title, words.answer_caption(view, (), False), AnswerPicture("", why, (), "plain", nearest), ""


# --- the last step, and the way ---------------------------------------------------------------------------------------


def _last(view: RunView, move: Move | None, other: Policy | None) -> Iterator[_Told]:
    decision = view.routed.decision
    if not view.is_decided or decision.verdict is None or decision.rule or decision.score is None:
        return
    if other and (both := moves.policies_picture(view, other)):
        yield "policies", "Another policy, the same scores", moves.policies_caption(both), both, ""
        return
    move = move or moves.nearest_move(view)
    drawn = moves.bar_picture(view, move) if move else None
    if drawn:
        yield "bar", "Now move the bar", moves.bar_caption(drawn), drawn, ""


def _way(view: RunView, id_: str, ids: list[str]) -> tuple[Place, ...]:
    now = _WAY.index(_AT[id_])
    is_later = id_ in ("bar", "policies")
    came = {_AT[one] for one in ids}
    passed = {_AT[one] for one in ids[: ids.index(id_)]}
    is_known = id_ not in ("question", "found", "graded") and view.is_decided
    places = []
    for at, name in enumerate(_WAY):
        state = "now" if at == now else "done" if name in passed and (at < now or is_later) else "ahead"
        if name not in came and (is_known or name not in ("Documents", "Web")):
            state = "off" if is_known or name == "Grade" else "ahead"
        if name == "Documents" and state in ("done", "ahead") and is_known and not view.routed.knowledge.internal:
            state = "off" if name in passed else state
        if name == "Web" and state == "done" and not view.routed.knowledge.external:
            state = "off"
        places.append(Place(name, state))
    return tuple(places)

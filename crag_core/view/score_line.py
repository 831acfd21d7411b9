"""Scores against thresholds as plain data: lines, rows, points, bands and marks. Decides and draws nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crag_core.base.text.display import against, clean
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Origin
from crag_core.decision.policy import Policy
from crag_core.decision.reasons import SCORE_WORDS
from crag_core.view import score_words
from crag_core.view.chunk_cards import ChunkCard, chunk_cards, snippet_cards
from crag_core.view.run_view import RunView
from crag_core.view.score_words import (
    CALLED,
    NOT_COMPARED,
    NOT_GRADED,
    QUESTIONS,
    Mark,
    marks_of,
    sentences,
)


@dataclass(frozen=True)
class Row:
    """A passage. `edit` is "pinned", "dropped" or ""; `title` and `remarks` are said when it is pointed at."""

    id: str
    number: str
    title: str
    name: str
    anchor: str
    is_web: bool
    edit: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """A row's score on one line as number and in words; None: not graded, or not to be compared with the thresholds."""

    value: float | None
    text: str
    decides: bool


@dataclass(frozen=True)
class Band:
    """What a score between two edges means; an edge is "zero", "lower", "upper" or "one".

    Without an action it leaves the question to the next line.
    """

    action: Action | None
    label: str
    low: str
    high: str


@dataclass(frozen=True)
class Line:
    """A score line with one point a row; `marks` are the names of the thresholds on it.

    `part` is the signal that it shows, "" where one number is compared with both thresholds; `title` is its name on the
    screen, `question` what it asks. `compared` is that number, or the best of the signal. `is_asked`: nothing before
    has settled the question.
    """

    part: str
    title: str
    question: str
    marks: tuple[str, ...]
    bands: tuple[Band, ...]
    points: tuple[Point, ...]
    compared: float | None
    compared_text: str
    is_asked: bool = True


@dataclass(frozen=True)
class Picture:
    """`marks` are lower and upper; `legend` pairs a kind of sign with its meaning; `table` starts with its header.

    `is_idle`: no chunk's own score has any part in the decision.
    """

    action: Action
    lines: tuple[Line, ...]
    rows: tuple[Row, ...]
    marks: tuple[Mark, Mark]
    legend: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]
    is_idle: bool


def picture(view: RunView) -> Picture | None:
    """Every passage that the policy looks at, dropped ones too, and every graded web result.

    None where there is none, for plain RAG, which looks at no score, and where nothing is graded yet.
    """
    policy, decision, cards = view.policy, view.routed.decision, _cards(view)
    if not cards or decision.verdict is None or view.not_graded_by:
        return None
    lines = _lines(view, cards)
    rows = tuple(_row(view, card, lines, at) for at, card in enumerate(cards))
    is_idle = decision.rule is not None or not policy.reads_grades
    return Picture(
        action=decision.action,
        lines=lines,
        rows=rows,
        marks=marks_of(policy, decision, view.stability),
        legend=_legend(lines, rows, is_idle),
        words=sentences(policy, decision, {row.id: row.number for row in rows}),
        table=_table(lines, rows),
        is_idle=is_idle,
    )


def why_no_picture(view: RunView) -> str:
    if view.routed.decision.is_from_memory:
        return "No document was read, so there is no score to compare."
    if view.not_graded_by:
        return f"{view.not_graded_by}, so there is no score to compare."
    if view.routed.decision.verdict is None and view.routed.decision_path.evidence:
        return "Plain RAG grades nothing, so there is no score to compare with a threshold."
    return "Nothing was retrieved, so there is no score to compare."


def _cards(view: RunView) -> tuple[ChunkCard, ...]:
    """A row of "not graded" would say nothing of the web, nor of documents that were read whole and not judged."""
    web = (card for card in snippet_cards(view) if card.counted and card.is_asked_for)
    first = {passage.id for passage in view.trace.passages or ()}
    own = (card for card in chunk_cards(view) if card.is_asked_for)
    judged = (one for one in own if one.counted or one.passage.id in first or "read_file" not in one.passage.found_by)
    return (*judged, *web)


def _describe(policy: Policy, value: float | None, part: str = "") -> str:
    limits = {ANSWERING: (policy.upper,), TOPICAL: (policy.lower,)}.get(part, (policy.lower, policy.upper))
    return NOT_GRADED if value is None else against(value, *limits)[0]


# --- lines ----------------------------------------------------------------------------------------------------------


def _lines(view: RunView, cards: Sequence[ChunkCard]) -> tuple[Line, ...]:
    """One line, or of two signals one each: answering against upper first, then topical against lower."""
    policy, decision = view.policy, view.routed.decision
    ambiguous = _band(policy, Action.AMBIGUOUS, "lower", "upper")
    incorrect = _band(policy, Action.INCORRECT, "zero", "lower")
    correct = _band(policy, Action.CORRECT, "upper", "one")
    if decision.score is None or decision.topical is None:
        compared = None if decision.rule else decision.score
        how = "" if compared is None else f"overall {_describe(policy, compared)}, {SCORE_WORDS[policy.score].means}"
        bands: tuple[Band, ...] = (incorrect, ambiguous, correct)
        if policy.lower > policy.upper:  # which decides nothing with one score
            bands = (replace(incorrect, high="upper"), correct)
        return (Line("", "", "", ("lower", "upper"), bands, _points(view, cards), compared, how),)
    unsettled = Band(None, f"{CALLED[TOPICAL]} decides", "zero", "upper")

    def line(part: str, best: float, mark: str, bands: tuple[Band, ...]) -> Line:
        title, points = CALLED[part].capitalize(), _points(view, cards, part, best)
        said = f"best {_describe(policy, best, part)}"
        return Line(part, title, QUESTIONS[part], (mark,), bands, points, best, said)

    first = line(ANSWERING, decision.score, "upper", (unsettled, correct))
    then = line(TOPICAL, decision.topical, "lower", (incorrect, replace(ambiguous, high="one")))
    if decision.action is Action.CORRECT:  # then the passage that answers settles it alone
        points = tuple(replace(point, decides=False) for point in then.points)
        then = replace(then, question="not needed", is_asked=False, points=points)
    return first, then


def _band(policy: Policy, action: Action, low: str, high: str) -> Band:
    return Band(action, clean(policy.bare_label(action)), low, high)


def _points(view: RunView, cards: Sequence[ChunkCard], part: str = "", best: float | None = None) -> tuple[Point, ...]:
    policy, decision = view.policy, view.routed.decision
    deciding = decision.deciding if score_words.decides_by_chunks(policy, decision) else ()
    points = []
    for card in cards:
        value = _value(card.counted, part)
        decides = card.passage.id in deciding and (best is None or value == best)
        message = score_words.ungraded_text(card.counted, policy, card.passage) or _describe(policy, value, part)
        if card.is_aside:
            value, message = None, f"{message}, {NOT_COMPARED}"
        points.append(Point(value, message, decides))
    return tuple(points)


def _value(grade: Grade | None, part: str) -> float | None:
    if grade is None:
        return None
    return grade.part(part) if part else grade.score


# --- rows, legend, table --------------------------------------------------------------------------------------------


def _row(view: RunView, card: ChunkCard, lines: tuple[Line, ...], at: int) -> Row:
    points = [(line.part, line.points[at]) for line in lines]
    remarks = (
        score_words.score_text([(part, point.text) for part, point in points]),
        score_words.deciding_text([part for part, point in points if point.decides], view.routed.decision),
        card.edit,
        points[0][1].text if points[0][1].value is None else "",
        score_words.reason_text(card.grade),
    )
    label = card.label
    return Row(
        id=card.passage.id,
        number=str(label.number),
        title=label.title,
        name=str(label.name),
        anchor=label.anchor,
        is_web=card.passage.origin is Origin.WEB,
        edit="dropped" if card.is_dropped else "pinned" if card.is_pinned else "",
        remarks=tuple(remark for remark in remarks if remark),
    )


def _legend(lines: tuple[Line, ...], rows: tuple[Row, ...], is_idle: bool) -> tuple[tuple[str, str], ...]:
    points, edits = [point for line in lines for point in line.points], {row.edit for row in rows}
    said = " ".join(point.text for point in points)
    signs = [
        ("corpus", "chunk: its own score decides nothing" if is_idle else "chunk", not all(row.is_web for row in rows)),
        ("web", "web result: never decides the route", any(row.is_web for row in rows)),
        ("hollow", "not graded", any(point.value is None for point in points) and NOT_COMPARED not in said),
        ("hollow", "not graded, or not compared", NOT_COMPARED in said),
        ("decides", "decides", any(point.decides for point in points)),
        ("pinned", "pinned by you", "pinned" in edits),
        ("dropped", "dropped by you", "dropped" in edits),
    ]
    return tuple((kind, meaning) for kind, meaning, is_there in signs if is_there)


def _table(lines: tuple[Line, ...], rows: tuple[Row, ...]) -> tuple[tuple[str, ...], ...]:
    head = ("Chunk", *(line.title or "Score" for line in lines), "Remarks")
    body = (
        (row.title, *(line.points[at].text for line in lines), ". ".join(row.remarks)) for at, row in enumerate(rows)
    )
    return (head, *body)

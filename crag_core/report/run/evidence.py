"""Every passage of a report: where it is from, how it was graded, and its whole text with what was kept of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crag_core.base.types import ANSWERING, TOPICAL, Grade, Origin, Passage, StripVerdict
from crag_core.decision.policy import Aggregation
from crag_core.report.run.sentences import Piece, pieces_of, why_struck
from crag_core.report.text import web_address
from crag_core.trace.injection_scan import warnings
from crag_core.view.run_view import Name, RunView, name_of, score_text

_RETRIEVERS = {"cosine": "cosine", "keyword": "keyword (BM25)", "rrf": "rank fusion", "retriever": "retriever"}
_DIGITS = {"rrf": 4, "keyword": 1}


@dataclass(frozen=True)
class Bar:
    """A score as a bar, with the thresholds that it is held against; all in percent."""

    name: str
    value: str
    at: float
    thresholds: tuple[float, ...]


@dataclass(frozen=True)
class Badge:
    text: str
    tone: str = ""


@dataclass(frozen=True)
class Card:
    """One passage. `struck` lists why sentences were struck out, each reason with its mark and count."""

    number: str
    anchor: str
    name: Name
    address: str | None
    url: str
    score: str
    badges: tuple[Badge, ...]
    bars: tuple[Bar, ...]
    reason: str
    notes: tuple[str, ...]
    pieces: tuple[Piece, ...]
    struck: tuple[tuple[str, str, int], ...]
    retrieval: str
    parts: tuple[tuple[str, str], ...]
    raw: str | None
    is_open: bool


def corpus_cards(view: RunView) -> tuple[Card, ...]:
    """Every corpus passage that the record holds, in the order of finding."""
    return tuple(_card(view, passage, str(rank)) for rank, passage in enumerate(view.trace.all_passages, 1))


def web_cards(view: RunView) -> tuple[Card, ...]:
    return tuple(_card(view, passage, f"web {rank}") for rank, passage in enumerate(view.web_passages, 1))


def _card(view: RunView, passage: Passage, number: str) -> Card:
    grade = view.trace.grade_of(passage.id)
    verdicts = [one for one in view.routed.knowledge.verdicts if one.strip.passage_id == passage.id]
    anchor = view.labels[passage.id].anchor
    reasons = why_struck(verdicts)
    badges = tuple(_badges(view, passage, verdicts))
    return Card(
        number=number,
        anchor=anchor,
        name=name_of(passage),
        address=web_address(passage.url),
        url=passage.url or "",
        score=_score(view, grade),
        badges=badges,
        bars=tuple(_bars(view, grade)),
        reason=_reason(grade),
        notes=tuple(_notes(view, passage)),
        pieces=pieces_of(passage.text, verdicts, reasons, anchor),
        struck=tuple((mark, reason, count) for reason, (mark, count) in reasons.items()),
        retrieval=_retrieval(passage),
        parts=tuple(_other_parts(grade)),
        raw=grade.raw if grade else None,
        is_open=bool({"used", "decides", "by hand"} & {badge.tone for badge in badges}),
    )


def _score(view: RunView, grade: Grade | None) -> str:
    """The number, or the two numbers, that the decision looked at."""
    both = grade.two_signals if grade else None
    if both and view.routed.decision.topical is not None:
        return "answering {:.2f}, topical {:.2f}".format(*both)
    return score_text(grade)


def _other_parts(grade: Grade | None) -> Iterator[tuple[str, str]]:
    for name, value in grade.parts if grade else ():
        if name not in (ANSWERING, TOPICAL):
            yield name.replace("_", " "), f"{value:.2f}"


def _badges(view: RunView, passage: Passage, verdicts: Sequence[StripVerdict]) -> Iterator[Badge]:
    edits, knowledge = view.trace.edits, view.routed.knowledge
    numbers = [n for n, excerpt in enumerate(knowledge.excerpts, 1) if excerpt.passage.id == passage.id]
    if passage.id in edits.dropped:
        yield Badge("dropped by hand: counts as never found", "by hand")
        return
    if passage.id in edits.pinned:
        yield Badge("pinned by hand: counts as graded 1.00", "by hand")
    if passage.id in view.routed.decision.deciding and view.is_decided:
        yield Badge("decides", "decides")
    kept = sum(verdict.kept for verdict in verdicts)
    how = "whole" if kept == len(verdicts) else f"{kept} of {len(verdicts)} sentences"
    if numbers:
        yield Badge(f"used, {how}, as {' '.join(f'[{number}]' for number in numbers)}", "used")
    else:
        yield Badge("not used")


def _bars(view: RunView, grade: Grade | None) -> Iterator[Bar]:
    """What the decision compares with the thresholds; a weighted sum leaves a passage's own score without any."""
    if grade is None or grade.score is None:
        return
    policy, signals = view.policy, grade.two_signals
    is_sum = policy.aggregation is Aggregation.SIGNALS
    has_two_limits = view.routed.decision.topical is not None
    if not (has_two_limits and signals):
        yield _bar("score", grade.score, *(() if is_sum else (policy.lower, policy.upper)))
    if signals:
        yield _bar(ANSWERING, signals[0], *([policy.upper] if has_two_limits else ()))
        yield _bar(TOPICAL, signals[1], *([policy.lower] if has_two_limits else ()))


def _bar(name: str, value: float, *thresholds: float) -> Bar:
    return Bar(name, f"{value:.2f}", round(100 * value, 1), tuple(round(100 * one, 1) for one in thresholds))


def _reason(grade: Grade | None) -> str:
    if grade is None:
        return ""
    if grade.score is None:
        return f"Could not be graded: {grade.cause}"
    if grade.two_signals:  # the trained evaluator says both numbers first, which the bars show
        return grade.reason.removeprefix("answering {:.2f}, topical {:.2f}".format(*grade.two_signals)).lstrip(", ")
    return grade.reason


def _notes(view: RunView, passage: Passage) -> Iterator[str]:
    yield from warnings(view.trace, passage)
    if passage.origin is Origin.WEB or passage.id in view.trace.edits.dropped:
        return
    trace, decision_path = view.trace, view.routed.decision_path
    if passage.id not in {one.id for one in trace.passages or ()}:
        found = next(
            (one for one in trace.rounds for way in one.retrievals if passage.id in {p.id for p in way.passages}), None
        )
        if found:
            yield f"Found by a later retrieval: {' → '.join(found.path)}."
    if passage.id not in {one.id for one in decision_path.looked_at}:
        yield "Found by a retrieval that this policy does not ask for."
    elif passage.id not in {one.id for one in decision_path.evidence}:
        yield "Looked at in an earlier round only."


def _retrieval(passage: Passage) -> str:
    scores = " · ".join(
        f"{_RETRIEVERS.get(name, name)} {value:.{_DIGITS.get(name, 2)}f}" for name, value in passage.scores
    )
    is_found = passage.found_by and passage.origin is Origin.CORPUS
    by = f"found by {', '.join(passage.found_by)}" if is_found else ""
    section = f"under {passage.section}" if passage.section else ""
    return " · ".join(part for part in (section, scores, by) if part)

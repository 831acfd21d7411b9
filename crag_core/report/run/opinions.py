"""Second opinions of a report: the grades of two evaluators side by side, and where each would send the question."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.text.display import counted, sentence
from crag_core.base.text.numbers import readable
from crag_core.base.types import EvaluatorCard, Grade
from crag_core.decision.policy import Policy
from crag_core.trace.opinions import Disagreement, Row, Verdict, disagreement
from crag_core.view.run_view import Name, RunView, score_text
from crag_core.view.verdict_lines import headline


@dataclass(frozen=True)
class Side:
    """One evaluator: the thresholds that it is judged by, and where its grades alone would send the question."""

    title: str
    thresholds: str
    action: str
    tone: str
    reason: str


@dataclass(frozen=True)
class Cell:
    score: str
    signals: str
    band: str
    reason: str


@dataclass(frozen=True)
class Line:
    number: str
    anchor: str
    name: Name
    cells: tuple[Cell, ...]
    gap: str
    is_apart: bool


@dataclass(frozen=True)
class Comparison:
    sides: tuple[Side, ...]
    told: str
    lines: tuple[Line, ...]


def comparisons(view: RunView) -> tuple[Comparison, ...]:
    """One for each further evaluator, each judged by thresholds that fit it; () when no other was asked."""
    own = view.trace.settings

    def suited(card: EvaluatorCard) -> Policy:
        return view.policy if card == own.evaluator else view.policy.suited_to(card, own.strip_evaluator)

    return tuple(_comparison(view, one) for one in disagreement(view.trace, suited))


def _comparison(view: RunView, found: Disagreement) -> Comparison:
    both = (found.main, found.other)
    return Comparison(tuple(map(_side, both)), _describe(found), tuple(_line(view, both, row) for row in found.rows))


def _side(verdict: Verdict) -> Side:
    card, policy, decision = verdict.evaluator, verdict.policy, verdict.decision
    title = f"{card.title}, {verdict.writer}" if card.calls_model else card.title
    low, high = readable(policy.lower, policy.upper)
    left = f" {counted(verdict.ungraded, 'passage')} still to be graded." if verdict.ungraded else ""
    reason = f"{sentence(decision.reason)}{left}"
    return Side(title, f"lower {low}, upper {high}", headline(decision), decision.action.lower(), reason)


def _describe(found: Disagreement) -> str:
    apart = f"They put {found.apart} of {counted(found.compared, 'passage')} in different bands."
    if found.correlation is None:
        return apart
    order = f"{found.correlation:.2f}".replace("-", "−")
    return f"{apart} Agreement of their order: {order} (Kendall's tau, from −1 to 1)."


def _line(view: RunView, both: tuple[Verdict, Verdict], row: Row) -> Line:
    cells = []
    for verdict, grade, band in zip(both, row.grades, row.bands, strict=True):
        name = verdict.policy.route(band).label if band else ""
        cells.append(Cell(score_text(grade), _signals(grade), name, _reason(grade)))
    label = view.labels[row.passage.id]
    gap = "–" if row.gap is None else f"{row.gap:.2f}"
    return Line(label.number, label.anchor, label.name, tuple(cells), gap, row.is_apart)


def _signals(grade: Grade | None) -> str:
    both = grade.two_signals if grade else None
    return "answering {:.2f}, topical {:.2f}".format(*both) if both else ""


def _reason(grade: Grade | None) -> str:
    if grade is None:
        return ""
    said = grade.cause if grade.score is None else grade.reason
    return "" if said == _signals(grade) else said

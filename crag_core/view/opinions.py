"""Two evaluators side by side: what each says of every passage, and where its grades alone lead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crag_core.base.text.display import counted, readable
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.decision.policy import Policy
from crag_core.trace.opinions import Disagreement, Row, Suited, Verdict, disagreement
from crag_core.view.run_view import Label, RunView, evaluator_name
from crag_core.view.score_words import NOT_GRADED, numbers_of, own_reason


@dataclass(frozen=True)
class Side:
    """One evaluator with the thresholds that it is read by; `is_decided`: it has graded what it decides by."""

    name: str
    thresholds: str
    verdict: Verdict
    is_decided: bool


@dataclass(frozen=True)
class Cell:
    """`band` is where this grade alone would send the question; None where it is not graded."""

    score: str
    band: Action | None
    reason: str


@dataclass(frozen=True)
class OpinionRow:
    """`sign` is ≠ where the two put the passage in different bands."""

    label: Label
    sign: str
    grades: tuple[Grade | None, Grade | None]
    cells: tuple[Cell, ...]
    gap: str


@dataclass(frozen=True)
class Comparison:
    sides: tuple[Side, Side]
    summary: str
    rows: tuple[OpinionRow, ...]


def comparisons(view: RunView, suited: Suited) -> tuple[Comparison, ...]:
    """One for each further evaluator, judged by the policy that `suited` gives; () when no other was asked."""
    main = view.trace.settings.evaluator
    found = disagreement(view.trace, lambda card: view.policy if card == main else suited(card))
    return tuple(_comparison(view, one) for one in found)


def _comparison(view: RunView, found: Disagreement) -> Comparison:
    sides = _side(found.main, found.rows, 0), _side(found.other, found.rows, 1)
    has_two = view.policy.compares_two_scores
    policies = [side.verdict.policy for side in sides]
    rows = tuple(
        OpinionRow(
            view.labels[row.passage.id],
            "≠" if row.is_apart else "",
            row.grades,
            tuple(
                _cell(grade, band, of, has_two) for grade, band, of in zip(row.grades, row.bands, policies, strict=True)
            ),
            "–" if row.gap is None else f"{row.gap:.2f}",
        )
        for row in found.rows
    )
    return Comparison(sides, " ".join(_summary(found, sides)), rows)


def _side(verdict: Verdict, rows: tuple[Row, ...], which: int) -> Side:
    low, high = readable(verdict.policy.lower, verdict.policy.upper)
    is_decided = not verdict.ungraded or any(row.grades[which] for row in rows)
    return Side(evaluator_name(verdict.evaluator, verdict.writer), f"lower {low}, upper {high}", verdict, is_decided)


def _cell(grade: Grade | None, band: Action | None, policy: Policy, has_two: bool) -> Cell:
    if grade is None:
        return Cell("–", None, "")
    if grade.score is None:
        return Cell(NOT_GRADED, band, grade.cause)
    numbers = numbers_of(grade, policy, has_two=has_two)
    said = numbers[0].text if len(numbers) == 1 else ", ".join(f"{one.name} {one.text}" for one in numbers)
    return Cell(said, band, own_reason(grade) if len(numbers) > 1 else grade.reason)


def _summary(found: Disagreement, sides: tuple[Side, Side]) -> Iterator[str]:
    same = found.main.decision.action is found.other.decision.action
    route = "same route" if same else "different route"
    marked = " (≠)" if found.apart else ""
    if all(side.is_decided for side in sides):
        yield f"{found.apart} of {counted(found.compared, 'chunk')} in different bands{marked}; {route}."
    if found.correlation is not None:
        yield f"Rank correlation {found.correlation:.2f}."
    for side in sides:
        if side.verdict.ungraded:
            yield f"{side.name} has not graded {counted(side.verdict.ungraded, 'chunk')}."

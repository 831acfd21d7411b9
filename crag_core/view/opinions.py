"""Two evaluators side by side: what each says of every passage, and where its grades alone lead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from crag_core.base.text.display import counted, readable, sentence
from crag_core.base.types.decisions import Action, Decision
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage
from crag_core.decision.decide import chunk_action
from crag_core.decision.policy import Policy
from crag_core.trace.edits import edited
from crag_core.trace.opinions import with_evaluator
from crag_core.trace.reroute import decision_path_of
from crag_core.trace.trace import Trace
from crag_core.view.run_view import Label, RunView, evaluator_name
from crag_core.view.score_words import NOT_GRADED, numbers_of, own_reason

Suited = Callable[[EvaluatorCard], Policy]  # the policy with the thresholds to judge an evaluator by


@dataclass(frozen=True)
class Side:
    """One evaluator: its grades by chunk, and what they alone lead to, not for good where chunks are `ungraded`."""

    name: str
    thresholds: str
    evaluator: EvaluatorCard
    writer: str
    policy: Policy
    decision: Decision
    ungraded: int
    grades: dict[str, Grade]

    @property
    def is_decided(self) -> bool:
        return not self.ungraded or bool(self.grades)


@dataclass(frozen=True)
class Cell:
    """`band` is where this grade alone would send the question; None where it is not graded."""

    score: str
    band: Action | None
    reason: str


@dataclass(frozen=True)
class OpinionRow:
    """`sign` is ≠ where the two put the passage in different bands; `gap` is "–" unless both have a score."""

    label: Label
    sign: str
    cells: tuple[Cell, Cell]
    gap: str


@dataclass(frozen=True)
class Comparison:
    """`rows` with the largest gap first, those without one last."""

    sides: tuple[Side, Side]
    summary: str
    rows: tuple[OpinionRow, ...]


def comparisons(view: RunView, suited: Suited) -> tuple[Comparison, ...]:
    """One for each further evaluator, judged by the policy that `suited` gives; () when no other was asked.

    Told by the facts: what is dropped is left out, no pin counts. The decisions are those of the run as it is edited.
    """
    trace = view.trace
    facts = edited(replace(trace, edits=replace(trace.edits, pinned=())))
    main = _side(trace, facts.all_grades, view.policy)
    found = []
    for opinion in facts.other_opinions:
        by_this = with_evaluator(trace, opinion.evaluator.name, opinion.writer) or trace
        policy = view.policy if opinion.evaluator == main.evaluator else suited(opinion.evaluator)
        sides = main, _side(by_this, opinion.grades, policy)
        rows = _rows(view, facts.every_passage, sides)
        found.append(Comparison(sides, " ".join(_summary(sides, rows)), rows))
    return tuple(found)


def _side(trace: Trace, grades: tuple[Grade, ...], policy: Policy) -> Side:
    low, high = readable(policy.lower, policy.upper)
    card, writer = trace.settings.evaluator, trace.settings.writer
    path = decision_path_of(trace, policy)
    by_id = {grade.passage_id: grade for grade in grades}
    thresholds = f"lower {low}, upper {high}"
    name = evaluator_name(card, writer)
    return Side(name, thresholds, card, writer, policy, path.decision, len(path.ungraded), by_id)


def _rows(view: RunView, passages: Iterable[Passage], sides: tuple[Side, Side]) -> tuple[OpinionRow, ...]:
    has_two, alone = view.policy.compares_two_scores, [_alone(side) for side in sides]
    found: list[tuple[float, OpinionRow]] = []
    for passage in passages:
        grades = [side.grades.get(passage.id) for side in sides]
        if grades == [None, None]:
            continue
        bands = [chunk_action(policy, passage, grade) for policy, grade in zip(alone, grades, strict=True)]
        first, second = (
            _cell(grade, band, side.policy, has_two) for grade, band, side in zip(grades, bands, sides, strict=True)
        )
        scores = [grade.score for grade in grades if grade and grade.score is not None]
        gap = abs(scores[0] - scores[1]) if len(scores) == 2 else None
        sign = "≠" if None not in bands and bands[0] is not bands[1] else ""
        told = "–" if gap is None else f"{gap:.2f}"
        row = OpinionRow(view.labels[passage.id], sign, (first, second), told)
        found.append((-1.0 if gap is None else gap, row))
    return tuple(row for _, row in sorted(found, key=lambda one: one[0], reverse=True))


def _alone(side: Side) -> Policy:
    """The policy as it bands one passage. Where thresholds are those of a weighted sum, the evaluator's own serve."""
    policy, card = side.policy, side.evaluator
    if policy.scores_the_set:
        policy = policy.with_thresholds(card.lower, card.upper)
    kind = "two_signals" if policy.compares_two_scores else "best"
    return replace(policy, score=kind, ungraded=None, skip=(), low_variance_promotes=False)


def _cell(grade: Grade | None, band: Action | None, policy: Policy, has_two: bool) -> Cell:
    if grade is None:
        return Cell("–", None, "")
    if grade.score is None:
        return Cell(NOT_GRADED, band, grade.cause)
    numbers = numbers_of(grade, policy, has_two=has_two)
    said = numbers[0].text if len(numbers) == 1 else ", ".join(f"{one.name} {one.text}" for one in numbers)
    return Cell(said, band, own_reason(grade) if len(numbers) > 1 else grade.reason)


def _summary(sides: tuple[Side, Side], rows: tuple[OpinionRow, ...]) -> Iterator[str]:
    route = "same route" if sides[0].decision.action is sides[1].decision.action else "different route"
    apart, compared = sum(bool(row.sign) for row in rows), sum(row.gap != "–" for row in rows)
    if all(side.is_decided for side in sides):
        bands = f"{apart} of {counted(compared, 'chunk')} in different bands{' (≠)' if apart else ''}; {route}."
        yield bands if compared else sentence(route)
    for side in sides:
        if side.ungraded:
            yield f"{side.name} has not graded {counted(side.ungraded, 'chunk')}."

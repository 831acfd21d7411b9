"""How thresholds were chosen, as a page of its own for whoever has to agree to them."""

from __future__ import annotations

from collections.abc import Iterator

from crag_core.base.text.display import counted
from crag_core.experiments.labelled.questions import LABELS, Expected, Origin
from crag_core.experiments.thresholds.objective import Objective
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.experiments.thresholds.recommend import Recommendation
from crag_core.experiments.thresholds.threshold_board import ACTIONS, Array, Board, confusion, rate
from crag_core.report import tables
from crag_core.report.tables import Cell, Grid, Section, share_of
from crag_core.report.thresholds import view
from crag_core.report.thresholds.view import Names, describe_pair
from crag_core.view.score_words import threshold_names

_LEAD = (
    "Before a question is answered, CRAG Explorer searches documents for chunks and grades how well they fit. Two "
    "thresholds, numbers from 0 to 1, decide whether the question is answered from the documents (CORRECT), "
    "whether more is looked for (AMBIGUOUS), or whether what was found is set aside (INCORRECT). This page tells how "
    "these two numbers were chosen, and how far they can be trusted."
)
_HOLDS = "The thresholds hold for what they were chosen with. If any of this changes, they may not fit any more:"


def render_thresholds(preset: TunedPreset, board: Board, found: Recommendation, objective: Objective) -> str:
    """The page as HTML: `preset`, made on the questions of `board`, beside what is recommended for them under
    `objective`.

    `BadRecord`: `preset` is for another policy.
    """
    preset.applied_to(board.policy)
    actions, names = board.actions(preset.lower, preset.upper), threshold_names(board.policy)
    rates = rate(board, actions)
    rows = tuple(
        (Cell(one.name, one.meaning), Cell(one.value or "not measured", one.interval))
        for one in view.rate_figures(board, rates)
    )
    of_rates = Grid("Rates with exact intervals of 95%", ("Rate", "Share"), rows)
    effort = [view.describe_effort(rates)] if rates.questions else []
    sections = (
        Section("What was decided", facts=_decided(preset, board, found, names)),
        Section("Routes of the questions", grids=[_routes(board, actions)]),
        Section("How often it goes wrong", effort, grids=[of_rates]),
        Section("How sure this is", tuple(_trust(preset, found, objective, names)), (), _compared(found, names)),
        Section("What this does not say", [_HOLDS], _conditions(preset), points=tuple(_limits(board))),
    )
    return tables.render_tables("Thresholds", preset.name, preset.created, _LEAD, sections, "grades that were recorded")


def _decided(preset: TunedPreset, board: Board, found: Recommendation, names: Names) -> tuple[tuple[str, str], ...]:
    recommended = "these" if found.is_at(preset.lower, preset.upper) else describe_pair(found.lower, found.upper, names)
    return (
        ("Thresholds", describe_pair(preset.lower, preset.upper, names)),
        ("Recommended", "none" if found.why_not else "none but yours" if found.keep else recommended),
        ("Policy", board.policy.title),
        ("Evaluator", board.judge.title),
        ("Labelled questions", f"{preset.questions} of the set “{preset.labelled.strip() or tables.NO_NAME}”"),
        ("How they were chosen", preset.reason.strip() or "not recorded"),
    )


def _routes(board: Board, actions: Array) -> Grid:
    searched = board.web[range(len(board)), actions]
    rows = []
    for place, (expected, counts) in enumerate(zip(Expected, confusion(board, actions).tolist(), strict=True)):
        if total := sum(counts):
            web = int(searched[board.expected == place].sum())
            taken = (
                share_of(count, total, one in expected.actions) for one, count in zip(ACTIONS, counts, strict=True)
            )
            rows.append((Cell(LABELS[expected]), Cell(str(total)), *taken, share_of(web, total)))
    title = "Questions by label and by route; ✓ is what the label asks for"
    return Grid(title, ("Label", "All", *ACTIONS, "Web searched"), tuple(rows))


def _trust(preset: TunedPreset, found: Recommendation, objective: Objective, names: Names) -> Iterator[str]:
    if found.why_not:
        yield found.why_not
    yield from view.recommendation_lines(found, found.is_at(preset.lower, preset.upper), names)
    promised = found.guaranteed
    if promised is None:
        yield "No limit on mistakes is promised: the shares on this page are what was seen, with their intervals."
    elif promised.pair is not None:
        yield f"{promised.reason(names)} The promise is for questions like these. {promised.odds}"
        if not promised.covers(preset.lower, preset.upper):
            yield "This does not hold for the thresholds of this preset."
    if found.compared:
        yield f"Below, {view.compared_on(found)}. The cost is the mean of a question: {objective.priced}."


def _compared(found: Recommendation, names: Names) -> list[Grid]:
    told = view.compared_rows(found, names)
    parted = ([value.partition(" (") for value in row.values()] for row in told)
    rows = tuple(tuple(Cell(value, fine.removesuffix(")")) for value, _, fine in row) for row in parted)
    return [Grid("Thresholds beside others", tuple(told[0]), rows)] if told else []


def _limits(board: Board) -> Iterator[str]:
    if drafted := sum(case.asked.origin is Origin.DRAFTED for case in board.cases):
        yield f"{counted(drafted, 'question')} and their labels were drafted by the application."
    yield "Whether the documents answer a question is what its label says, and labels are the user's, not the truth."
    yield "Only the first search for chunks counts, not what a policy that searches again comes to."
    yield "Only the route of a question is judged, not the answer that is written in the end, nor the sentence cut-off."


def _conditions(preset: TunedPreset) -> tuple[tuple[str, str], ...]:
    """What the thresholds hold for, in the words of `Conditions.changed`."""
    made = preset.conditions
    found = {
        "The documents": made.corpus and f"as they were with the fingerprint {made.corpus}",
        "The evaluator": " ".join(filter(None, (made.evaluator, made.evaluator_version))),
        "The language model that grades": made.writer or "none",
        "The prompts": made.prompts or "none",
        "The embedding model": made.embedding,
        "The number of chunks": str(made.top_k),
        "The labels": preset.labels and f"those with the fingerprint {preset.labels}",
    }
    return tuple((name, value or "not recorded") for name, value in found.items())

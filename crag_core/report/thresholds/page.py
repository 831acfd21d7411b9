"""How thresholds were chosen, as a page of its own for whoever has to agree to them."""

from __future__ import annotations

from collections.abc import Iterator

from crag_core.base.text.display import counted, moment, readable
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
    """The page as HTML: `preset` on the questions of `board`, beside what is recommended for them under `objective`.

    `BadRecord`: `preset` is for another policy.
    """
    preset.applied_to(board.policy)
    actions = board.actions(preset.lower, preset.upper)
    rates = rate(board, actions)
    effort = view.describe_effort(rates) if rates.questions else "There is no question to count."
    rows = tuple(
        (Cell(one.name, one.meaning), Cell(one.value or "not measured", one.interval))
        for one in view.rate_figures(board, rates)
    )
    names = threshold_names(board.policy)
    of_rates = Grid("Rates with exact intervals of 95%", ("Rate", "Share"), rows)
    sections = (
        Section("What was decided", tuple(_decided(preset, board, found, names))),
        Section("Routes of the questions", grids=[_routes(board, actions)]),
        Section("How often it goes wrong", [effort], grids=[of_rates]),
        Section(
            "How sure this is", tuple(_trust(preset, found, objective, names)), (), _compared(preset, found, names)
        ),
        Section("What this does not say", [_HOLDS], _conditions(preset), points=tuple(_limits(board))),
    )
    return tables.render_tables("Thresholds", preset.name, preset.created, _LEAD, sections, "grades that were recorded")


def _decided(preset: TunedPreset, board: Board, found: Recommendation, names: Names) -> Iterator[str]:
    name = preset.conditions.evaluator
    evaluator = board.judge.title if name == board.judge.name else name
    pair = describe_pair(preset.lower, preset.upper, names)
    yield (
        f"{pair[:1].upper()}{pair[1:]}, for the policy {board.policy.title} with the evaluator {evaluator}, on "
        f"{preset.questions or 'an unknown number of'} questions of the set “{_set_of(preset)}”, "
        f"{moment(preset.created).strip() or tables.NO_DAY}. How they were chosen, as recorded: "
        f"{preset.reason.strip() or 'not recorded'}."
    )
    if found.is_at(preset.lower, preset.upper):
        if not found.keep and not found.misses:
            yield "These are the thresholds that are recommended for these questions."
    elif found.why_not:
        yield f"For these questions no thresholds can be recommended. {found.why_not}"
    elif found.keep:
        kept = view.recommendation_lines(found, names=names)[-1]
        yield f"For these questions: {kept} Those of this preset were set otherwise."
    else:
        are = "come nearest to the limit" if found.misses else "are recommended"
        yield (
            f"For these questions {describe_pair(found.lower, found.upper, names)} {are}. Those of this preset were "
            "set by hand or chosen in another way; what this page says of choosing holds for the recommended ones."
        )
    if preset.questions != len(board):
        yield f"The figures here are of {counted(len(board), 'question')}."
    if name != board.judge.name:
        yield "The figures here are of grades by another evaluator than the one the preset was chosen for."


def _set_of(preset: TunedPreset) -> str:
    return preset.labelled.strip() or tables.NO_NAME


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
    yield from view.recommendation_lines(found, found.is_at(preset.lower, preset.upper), names)
    promised = found.guaranteed
    if promised is None:
        yield "No limit on mistakes is promised: the shares on this page are what was seen, with their intervals."
    elif promised.pair is None:
        yield promised.reason()
    else:
        yield f"{promised.reason(names)} The promise is for questions like these. {promised.odds}"
        if not promised.covers(preset.lower, preset.upper):
            yield "This does not hold for the thresholds of this preset."
    if found.compared:
        yield f"Below, {view.compared_on(found)}. The cost of a question is the mean: {objective.describe()}."


def _compared(preset: TunedPreset, found: Recommendation, names: Names) -> list[Grid]:
    told, rows = view.compared_rows(found, names), []
    for (name, *texts), one in zip(map(dict.values, told), found.compared, strict=True):
        is_own = max(abs(one.lower - preset.lower), abs(one.upper - preset.upper)) < 1e-6
        shown = (text.removesuffix(")").partition(" (") for text in texts)
        rows.append((Cell(name, "this preset" if is_own else ""), *(Cell(value, ends) for value, _, ends in shown)))
    return [Grid("Thresholds beside others", tuple(told[0]), tuple(rows))] if rows else []


def _limits(board: Board) -> Iterator[str]:
    if drafted := sum(case.asked.origin is Origin.DRAFTED for case in board.cases):
        yield f"{counted(drafted, 'question')} and their labels were drafted by the application."
    yield "Whether the documents answer a question is what its label says, and labels are the user's, not the truth."
    yield "Only the first search for chunks counts, not what a policy that searches again comes to."
    yield "Only the route of a question is judged, not the answer that is written in the end, nor the sentence cut-off."


def _conditions(preset: TunedPreset) -> tuple[tuple[str, str], ...]:
    """What the thresholds hold for, in the words of `Conditions.changed`; and the set."""
    made = preset.conditions
    version = f", version {made.evaluator_version}" if made.evaluator_version else ""
    labels = f", with the fingerprint {preset.labels}" if preset.labels else ""
    found = {
        "The documents": made.corpus and f"as they were with the fingerprint {made.corpus}",
        "The evaluator": f"{made.evaluator}{version}",
        "The language model that grades": made.writer or "none",
        "The prompts": made.prompts or "none",
        "The embedding model": made.embedding,
        "The number of chunks": str(made.top_k),
        "The sentence cut-off": readable(preset.cutoff)[0],
        "The labelled questions": f"{_set_of(preset)}{labels}",
    }
    return tuple((name, value or "not recorded") for name, value in found.items())

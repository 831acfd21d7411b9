"""How thresholds were chosen, as a page of its own for whoever has to agree to them."""

from __future__ import annotations

from collections import Counter
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
from crag_core.report.thresholds.view import describe_pair

_LEAD = (
    "Before a question is answered, CRAG Explorer searches documents for chunks and grades how well they fit. Two "
    "thresholds, numbers from 0 to 1, decide whether the question is answered from the documents (CORRECT), "
    "whether more is looked for (AMBIGUOUS), or whether what was found is set aside (INCORRECT). This page tells how "
    "these two numbers were chosen, and how far they can be trusted."
)
_ORIGINS = {
    Origin.UPLOADED: "from a file",
    Origin.FEEDBACK: "from people's feedback on answers",
    Origin.DRAFTED: "drafted by the application",
    Origin.WRITTEN: "written by hand",
    Origin.LOG: "from a log",
}


def render_thresholds(preset: TunedPreset, board: Board, found: Recommendation, objective: Objective) -> str:
    """The page as HTML: `preset` on the questions of `board`, beside what is recommended for them under `objective`.

    `BadRecord`: `preset` is for another policy.
    """
    preset.applied_to(board.policy)
    actions = board.actions(preset.lower, preset.upper)
    rates = rate(board, actions)
    rows = tuple(
        (Cell(one.name, one.meaning), Cell(one.value or "not measured", one.interval))
        for one in view.rate_figures(board, rates)
    )
    sections = (
        Section("What was decided", tuple(_decided(preset, board, found))),
        Section("Routes of the questions", grids=[_routes(board, actions)]),
        Section(
            "How often it goes wrong",
            [view.describe_effort(rates)] if rates.questions else ["There is no question to count."],
            grids=[Grid("Rates with exact intervals of 95%", ("Rate", "Share"), rows)],
        ),
        Section("How sure this is", tuple(_trust(preset, found, objective)), grids=_compared(preset, found)),
        Section(
            "What this does not say",
            ["The thresholds hold for what they were chosen with. If any of this changes, they may not fit any more:"],
            _conditions(preset),
            points=tuple(_limits(board)),
        ),
    )
    return tables.render_tables("Thresholds", preset.name, preset.created, _LEAD, sections, "grades that were recorded")


def _decided(preset: TunedPreset, board: Board, found: Recommendation) -> Iterator[str]:
    name = preset.conditions.evaluator
    evaluator = board.judge.title if name == board.judge.name else name
    pair, named = describe_pair(preset.lower, preset.upper), preset.labelled.strip() or tables.NO_NAME
    yield (
        f"{pair.capitalize()}, for the policy {board.policy.title} with the evaluator {evaluator}, on "
        f"{preset.questions or 'an unknown number of'} questions of the set “{named}”, "
        f"{moment(preset.created).strip() or tables.NO_DAY}. How they were chosen, as recorded: "
        f"{preset.reason.strip() or 'not recorded'}."
    )
    if found.is_at(preset.lower, preset.upper):
        if not found.keep and not found.misses:
            yield "These are the thresholds that are recommended for these questions."
    elif found.why_not:
        yield f"For these questions no thresholds can be recommended. {found.why_not}"
    elif found.keep:
        yield f"For these questions: {view.recommendation_lines(found)[-1]} Those of this preset were set otherwise."
    else:
        are = "come nearest to the limit" if found.misses else "are recommended"
        yield (
            f"For these questions {describe_pair(found.lower, found.upper)} {are}. Those of this preset were set by "
            "hand or chosen in another way; what this page says of choosing holds for the recommended ones."
        )
    if preset.questions != len(board):
        yield f"The figures here are of {counted(len(board), 'question')}."
    if name != board.judge.name:
        yield "The figures here are of grades by another evaluator than the one the preset was chosen for."


def _routes(board: Board, actions: Array) -> Grid:
    searched = board.web[range(len(board)), actions]
    rows = []
    for place, (expected, counts) in enumerate(zip(Expected, confusion(board, actions).tolist(), strict=True)):
        if total := sum(counts):
            taken = [
                share_of(count, total, action in expected.actions)
                for action, count in zip(ACTIONS, counts, strict=True)
            ]
            web = int(searched[board.expected == place].sum())
            rows.append((Cell(LABELS[expected]), Cell(str(total)), *taken, share_of(web, total)))
    title = "Questions by label and by route; ✓ is what the label asks for"
    return Grid(title, ("Label", "All", *ACTIONS, "Web searched"), tuple(rows))


def _trust(preset: TunedPreset, found: Recommendation, objective: Objective) -> Iterator[str]:
    yield from view.recommendation_lines(found, found.is_at(preset.lower, preset.upper))
    promised = found.guaranteed
    if promised is None:
        yield "No limit on mistakes is promised: the shares on this page are what was seen, with their intervals."
    elif promised.pair is None:
        yield promised.reason
    else:
        yield f"{promised.reason} The promise is for questions like these. {promised.odds}"
        if not promised.covers(preset.lower, preset.upper):
            yield "This does not hold for the thresholds of this preset."
    if found.compared:
        yield f"Below, {view.compared_on(found)}. The cost of a question is the mean: {objective.describe()}."


def _compared(preset: TunedPreset, found: Recommendation) -> tuple[Grid, ...]:
    rows = []
    for (name, *texts), one in zip(view.compared_rows(found), found.compared, strict=True):
        is_own = max(abs(one.lower - preset.lower), abs(one.upper - preset.upper)) < 1e-6
        shown = (text.removesuffix(")").partition(" (") for text in texts)
        rows.append((Cell(name, "this preset" if is_own else ""), *(Cell(value, ends) for value, _, ends in shown)))
    return (Grid("Thresholds beside others", view.COMPARED, tuple(rows)),) if rows else ()


def _limits(board: Board) -> Iterator[str]:
    cases = [case.asked for case in board.cases]
    origins = Counter(asked.origin for asked in cases)
    came = ", ".join(f"{origins[origin]} {source}" for origin, source in _ORIGINS.items() if origins[origin])
    if cases:
        yield (
            "Whether the documents answer a question is what its label says, and labels are the user's, not the truth. "
            f"Questions and labels: {came}."
        )
    if apart := sum(bool(asked.without) for asked in cases):
        yield f"{counted(apart, 'question')} without an answer only because the chunks with it were left out."
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
        "The labelled questions": f"{preset.labelled or tables.NO_NAME}{labels}",
    }
    return tuple((name, value or "not recorded") for name, value in found.items())

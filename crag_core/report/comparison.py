"""Configurations side by side on one labelled set: a table of every measure, and a page of its own with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from crag_core.base.text.display import counted, limit_text, readable
from crag_core.base.types.decisions import Action
from crag_core.decision.policy import STAND_IN, Doubtful
from crag_core.experiments.comparison import table as measured
from crag_core.experiments.comparison.metrics import Measure, Unit
from crag_core.experiments.comparison.table import Table, figure
from crag_core.experiments.labelled.questions import LABELS, Expected
from crag_core.experiments.statistics.intervals import DRAWS, Estimate
from crag_core.report.tables import NO_NAME, Cell, Grid, Row, Section, render_tables
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.trace import RunSettings

BETTER, WORSE, DIFFERENT, UNCLEAR = "correct", "incorrect", "either", "open"
"""Tones, which name the colour; DIFFERENT is certain, and neither better nor worse."""
VERDICTS = {BETTER: "better", WORSE: "worse", DIFFERENT: "different", UNCLEAR: ""}
_DIRECTIONS = {1: "more is better", -1: "less is better", 0: "neither is better"}
_LEAD = (
    "A question can be answered from chunks that are found for it in documents. Corrective RAG (CRAG) grades these "
    "chunks first, and answers from them, looks for more, or sets them aside. This page tells what became of the same "
    "questions under several configurations, which do this in different ways or not at all."
)
_MAKING = (
    "Intervals hold 95%. That of a share of questions is exact (Clopper and Pearson 1934). For other figures, and for "
    f"gains, as many questions as there are were drawn with replacement, {DRAWS:,} times, and all configurations were "
    "worked out from the same draws. Where draws cannot tell, the interval is the exact one; without an interval, the "
    "questions tell none.",
    "Of many differences that are none, about one in twenty leaves 0 out of its interval by chance.",
    "Whether the documents answer a question is what its label says. Labels are the user's, not the truth.",
    "A score of one's own evaluator is no proof: it says that the evaluator likes what was kept, not that the answer "
    "is right. An answer that only quotes is always supported.",
    "With web search off, nothing can take the place of evidence that was set aside.",
    "Seconds are those of the machine and the hour of the runs.",
)


@dataclass(frozen=True)
class Comparison:
    """What a page needs beside the table: `labelled` is the name of the set, `created` a time of day.

    `configurations` has a line for each by name, `command` makes the page again; "" where there is none.
    """

    labelled: str
    created: str
    configurations: Mapping[str, str]
    command: str = ""


def render_comparison(table: Table, about: Comparison) -> str:
    """The page as HTML: every figure is one of `table`, and every gain is over its first configuration."""
    sections = tuple(_sections(table, about))
    return render_tables("Comparison", about.labelled, about.created, _LEAD, sections, "runs that were recorded")


def _sections(table: Table, about: Comparison) -> Iterator[Section]:
    names = f"{counted(len(table.names), 'configuration')} on {counted(len(table.questions), 'question')}"
    labels = [asked.expected for asked in table.questions]
    kinds = [f"{labels.count(one)} {LABELS[one]}" for one in Expected if one in labels]
    lines = [f"{names} of the set “{about.labelled.strip() or NO_NAME}”.", *kinds]
    if table.left_out:
        verb = "is" if table.left_out == 1 else "are"
        lines.append(
            f"{counted(table.left_out, 'question')} {verb} left out everywhere on this page: not finished by every "
            "configuration."
        )
    facts = [(name, about.configurations.get(name) or "not described") for name in table.names]
    yield Section("What was compared", lines, facts)
    if not table.rows:
        yield Section("Every measure", ["Nothing was measured."])
    else:
        yield Section("Every measure", [_reading(table)], grids=[measures(table)])
        yield Section("Routes", grids=[_routes(table)])
    yield Section("How the figures are made", points=_MAKING)
    if about.command:
        yield Section("To make this page again", ["With the same documents, set and version:"], command=about.command)


def _reading(table: Table) -> str:
    text = "Each value with its interval. A dash: no question counts."
    if len(table.names) == 1:
        return text
    return (
        f"{text} Below it what is gained over {table.names[0]} on the same questions; gains of shares are in "
        "percentage points. Better and worse are said only where the interval leaves no difference out."
    )


def _routes(table: Table) -> Grid:
    rows: list[Row] = []
    for name in table.names:
        rows.append((Cell(name),))
        for expected, counts in table.confusion(name).items():
            taken = (Cell(str(count), is_wanted=action in expected.actions) for action, count in counts.items())
            rows.append((Cell(LABELS[expected]), Cell(str(sum(counts.values()))), *taken))
    return Grid("Questions by label and by route; ✓ is what the label asks for", ("Label", "All", *Action), tuple(rows))


# --- every measure ----------------------------------------------------------------------------------------------------


def measures(table: Table) -> Grid:
    """Every measure with its interval, and below it what is gained over the first configuration."""
    rows: list[Row] = []
    for group, members in groupby(table.rows, lambda row: row.measure.group):
        rows += [(Cell(group),), *map(_measure, members)]
    return Grid("Measures of each configuration", ("Measure", *table.names), tuple(rows))


def _measure(row: measured.Row) -> Row:
    measure, is_alike = row.measure, len({cell.counted for cell in row.cells}) == 1
    about = f"{measure.description}; {_DIRECTIONS[measure.better]}"
    cells = [Cell(measure.title, f"{about}. {counted(row.cells[0].counted, 'question')}" if is_alike else about)]
    for cell in row.cells:
        value, interval = describe_found(cell.found, measure.unit)
        among = "" if is_alike else counted(cell.counted, "question")
        tone = tone_of(measure, cell)
        gain = describe_gain(cell, measure.unit, VERDICTS[tone])
        cells.append(Cell(value, "; ".join(filter(None, (interval, among))), gain, tone))
    return tuple(cells)


def tone_of(measure: Measure, cell: measured.Cell) -> str:
    """Only a gain whose interval leaves 0 out is better or worse."""
    if cell.gain is None or not cell.is_certain:
        return UNCLEAR
    if not measure.better:
        return DIFFERENT
    return BETTER if (cell.gain.low > 0) is (measure.better > 0) else WORSE


def describe_found(found: Estimate | None, unit: Unit) -> tuple[str, str]:
    """The value and its interval, "" where there is none to show."""
    if found is None:
        return "–", ""
    ends = f"{figure(found.low, unit)} to {figure(found.high, unit)}" if found.has_interval else ""
    return figure(found.value, unit), ends


def describe_gain(cell: measured.Cell, unit: Unit, verdict: str = "") -> str:
    """With its interval, of shares in percentage points without the word; "" for the first configuration."""
    if cell.gain is None:
        return ""
    value = "no difference" if cell.is_same else _size(cell.gain.value, unit)
    ends = f"({_end(cell.gain.low, unit)} to {_end(cell.gain.high, unit)})" if cell.gain.has_interval else ""
    return " ".join(filter(None, (value, verdict, ends)))


def _size(size: float, unit: Unit) -> str:
    """What rounds to 0 has no sign."""
    text = figure(size, unit, signed=True).removesuffix("%")
    return text if float(text) else text.lstrip("+")


def _end(end: float, unit: Unit) -> str:
    """An end that would round to 0 and is not 0 says so: it makes a gain certain or not."""
    text = _size(end, unit)
    if end == 0 or float(text):
        return text
    return "just above 0" if end > 0 else "just below 0"


def described(made: RunSettings, searched: str = "") -> str:
    """A configuration in one line; `searched` names the web providers, "" for none."""
    policy, answers = made.policy, f"answers written by {made.writer}"
    if made.writer == EXTRACTIVE:
        answers = "answers are quotations, without a language model"
    parts = [f"policy {policy.title}", f"evaluator {made.evaluator.title}"]
    if policy.is_plain:
        parts = [f"policy {policy.title}", "nothing is graded"]
    else:
        lower, upper, cutoff = (readable(one)[0] for one in policy.thresholds)
        parts += [f"lower {lower}, upper {upper}, sentence cut-off {cutoff}", limit_text(policy.refinement.top)]
    if policy.doubtful is Doubtful.ABSTAIN:
        parts.append("abstains where it is in doubt")
    if made.writer == EXTRACTIVE and policy.needs_model:
        parts.append(f"{STAND_IN}: {policy.without_model[:1].lower()}{policy.without_model[1:].rstrip('.')}")
    web = f"web searched through {searched}" if searched else "web search off"
    checked = [] if made.support == WORDS else [f"sentences of answers judged by {made.support}"]
    return "; ".join((*parts, answers, *checked, web, counted(made.top_k, "chunk") + " a question"))

"""The stage at which each question of a log went wrong, as a page of its own for somebody who has no application."""

from __future__ import annotations

from collections.abc import Iterator

from crag_core.base.text.display import counted, readable
from crag_core.base.types.decisions import Action
from crag_core.experiments.logs.findings import Findings
from crag_core.experiments.logs.record import LogRecord
from crag_core.experiments.logs.stages import MEANS, TITLES, Finding, Stage, Verdict
from crag_core.report import tables
from crag_core.report.tables import Cell, Grid, Row, Section, share_of

MOST = 200
"""Records that are listed, wrong ones first; the CSV has all."""
_LEAD = (
    "A RAG system retrieves chunks for a question and answers from them. This page names, for each question of its "
    "log, the first stage that lost the right answer. Chunks and answers are those of the log; grades, kept sentences "
    "and routes are those of the policy below."
)
_READING = (
    "Right answers are looked for by words, numbers and names. An answer in other words for the same thing can be "
    "missed.",
    "“Wrong” and “right” are said only where the log says what is right. Otherwise a record is doubtful, by scores and "
    "by what of its answer stands in the chunks, or plausible.",
    "Only the first stage that lost the answer is named. Another policy, or other thresholds, move records between "
    "stages.",
)


def render_stages(log: str, found: Findings, evaluator: str, created: str) -> str:
    """The page as HTML: counts by stage, and the records that went wrong, with their questions and answers."""
    return tables.render_tables(
        "Log", log, created, _LEAD, tuple(_sections(found, evaluator)), "a log that was graded",
        holds="It holds questions and answers of the log.",
    )  # fmt: skip


def _sections(found: Findings, evaluator: str) -> Iterator[Section]:
    unknown = "" if found.is_known else " The log does not say what is right, so records are doubtful at most."
    lower, upper, cutoff = readable(*found.policy.thresholds)
    facts = (
        ("Policy", f"{found.policy.title}, lower {lower}, upper {upper}, sentence cut-off {cutoff}"),
        ("Evaluator", evaluator),
        ("Retrieval", ", ".join(f"{found.routes[action]} {action}" for action in Action)),
    )
    counts = f"{counted(len(found.pairs), 'record')}.{unknown}"
    yield Section("Which stage failed?", [counts], facts, [_stages(found)])
    faults = sorted((pair for pair in found.pairs if pair[1].stage is not Stage.NONE), key=_rank)
    left_out = max(len(faults) - MOST, 0)
    lines = [f"The first {MOST}; {left_out} more are left out here."] if left_out else [] if faults else ["None."]
    rows = tuple(_record(record, finding) for record, finding in faults[:MOST])
    head = ("Question", "Stage", "Why", "Answer in the log", "Right answer")
    grids = [Grid("Records, wrong ones first", head, rows)] if rows else []
    yield Section("Records that went wrong, or may have", lines, grids=grids)
    yield Section("How to read this", points=_READING)


def _stages(found: Findings) -> Grid:
    rows = []
    for stage, counts in found.stages.items():
        count = sum(counts.values())
        of = (Cell(str(counts[one]) if counts[one] else "–") for one in Verdict)
        rows.append((Cell(TITLES[stage], MEANS[stage]), share_of(count, len(found.pairs)), *of))
    return Grid("Records by stage", ("Stage", "Records", *(one.value for one in Verdict)), tuple(rows))


def _record(record: LogRecord, finding: Finding) -> Row:
    route = f", retrieval {finding.action}" if finding.action else ""
    names = ", ".join(dict.fromkeys((record.id, f"row {record.row}")))  # a record without an id is called by its row
    where = f"{names}, {counted(len(record.contexts), 'chunk')}{route}"
    stage = Cell(TITLES[finding.stage], finding.verdict.value)
    texts = (finding.reason, record.answer or "none", " | ".join(record.references) or "–")
    return Cell(record.question, where), stage, *(Cell("", text) for text in texts)


def _rank(pair: tuple[LogRecord, Finding]) -> tuple[int, int]:
    """Wrong before doubtful, then in the order of a run."""
    return list(Verdict).index(pair[1].verdict), list(Stage).index(pair[1].stage)

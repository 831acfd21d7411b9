"""The findings of a comparison in words: the same few points each time, a loss as plainly as a gain."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.text.display import counted
from crag_core.experiments.comparison.metrics import Unit
from crag_core.experiments.comparison.table import Row, Table
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.experiments.store.result_files import figure
from crag_core.report.comparison.results import (
    BETTER,
    UNCLEAR,
    VERDICTS,
    WORSE,
    describe_found,
    describe_gain,
    is_none,
    tone_of,
)

_POINTS = {
    "answered_unanswerable": "Questions that the documents do not answer, and that got an answer without a known one",
    "abstained_answerable": "Questions that the documents answer, and that got no answer",
    "contains": "Questions with a known answer that stands in the answer given",
    "irrelevant_before": "Share of the text found that has nothing to do with the question",
    "irrelevant_after": "Share of the text given to the answer that has nothing to do with the question",
    "right": "Questions that took the way their label asks for",
    "calls": "Calls of a language model a question",
}
_SECONDS = "Seconds within which half of the questions were done"
_MISSING = "not measured"


@dataclass(frozen=True)
class Finding:
    """`tone` names the colour and the shape."""

    tone: str
    verdict: str
    point: str
    text: str


@dataclass(frozen=True)
class Findings:
    """One configuration against the first."""

    name: str
    summary: str
    points: tuple[Finding, ...]


def findings_of(table: Table) -> tuple[Findings, ...]:
    """For each configuration but the first; () without a question."""
    return tuple(_against_first(table, place) for place in range(1, len(table.names))) if table.rows else ()


def _against_first(table: Table, place: int) -> Findings:
    measured = (_finding(point, table.row(name), table.names, place) for name, point in _POINTS.items())
    points = (*measured, _seconds(*(_half(table, table.names[at]) for at in (place, 0))))
    return Findings(table.names[place], _summary([one.verdict for one in points]), points)


def _summary(verdicts: list[str]) -> str:
    counts = {verdict: verdicts.count(verdict) for verdict in (*VERDICTS.values(), _MISSING)}
    parts = ", ".join(f"{verdict} in {count}" for verdict, count in counts.items() if count)
    return f"Of {counted(len(verdicts), 'point')}: {parts}."


def _finding(point: str, row: Row | None, names: tuple[str, ...], place: int) -> Finding:
    if row is None:
        return Finding(UNCLEAR, _MISSING, point, "No question counts for it.")
    first, cell, unit = row.cells[0], row.cells[place], row.measure.unit
    if cell.found is None or first.found is None or cell.gain is None:
        lacking = names[0] if first.found is None else names[place]
        return Finding(UNCLEAR, _MISSING, point, f"Under {lacking} no question counts for it.")
    tone = tone_of(row.measure, cell)
    text = _describe(figure(cell.found.value, unit), figure(first.found.value, unit), cell.gain, unit, tone)
    among = counted(cell.counted, "question")
    if cell.counted != first.counted:
        among += f" under {names[place]} and {first.counted} under {names[0]}, not the same ones"
    return Finding(tone, VERDICTS[tone], point, f"{text} Of {among}.")


def _describe(value: str, first: str, gain: Estimate, unit: Unit, tone: str) -> str:
    points = " points" if unit is Unit.SHARE else ""
    if is_none(gain):
        return f"{value} under both, whatever questions are drawn (0 to 0)."
    if tone == UNCLEAR:
        return f"{value} here, {first} there; the difference may be {describe_gain(gain, unit).interval}{points}."
    is_more = gain.low > 0
    size = describe_gain(gain if is_more else Estimate(-gain.value, -gain.high, -gain.low), unit, signed=False)
    return (
        f"{value} instead of {first}, which is {size.value}{points} {'more' if is_more else 'less'} ({size.interval})."
    )


def _seconds(found: Estimate | None, first: Estimate | None) -> Finding:
    """Better or worse only where the two intervals do not touch: their difference has none of its own."""
    if found is None or first is None:
        return Finding(UNCLEAR, _MISSING, _SECONDS, "No question counts for it.")
    tone = BETTER if found.high < first.low else WORSE if found.low > first.high else UNCLEAR
    one, other = (
        f"{shown.value} ({shown.interval})" for shown in (describe_found(each, Unit.SECONDS) for each in (found, first))
    )
    text = f"{one} here, {other} there: the intervals touch."
    if tone != UNCLEAR:
        text = f"{one} instead of {other}: the intervals do not touch."
    return Finding(tone, VERDICTS[tone], _SECONDS, text)


def _half(table: Table, name: str) -> Estimate | None:
    paths = table.paths(name)
    return paths[-1].p50 if paths else None

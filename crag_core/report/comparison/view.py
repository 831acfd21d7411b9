"""A comparison as plain data, for the Compare page and the report: values, gains over the first and findings."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.text.display import counted
from crag_core.experiments.comparison.metrics import MEASURES, Measure, Unit
from crag_core.experiments.comparison.table import Cell, Row, Table, figure
from crag_core.experiments.statistics.intervals import Estimate

BETTER, WORSE, DIFFERENT, UNCLEAR = "correct", "incorrect", "either", "open"
"""Tones, which name the colour and the shape; DIFFERENT is certain, and neither better nor worse."""
VERDICTS = {BETTER: "better", WORSE: "worse", DIFFERENT: "different", UNCLEAR: "no clear difference"}

DIRECTIONS = {1: "more is better", -1: "less is better", 0: "neither is better"}
_PART = "… "
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
class Shown:
    value: str
    interval: str = ""


def tone_of(measure: Measure, cell: Cell) -> str:
    """Only a gain whose interval leaves 0 out is better or worse."""
    if cell.gain is None or not cell.is_certain:
        return UNCLEAR
    if not measure.better:
        return DIFFERENT
    return BETTER if (cell.gain.low > 0) is (measure.better > 0) else WORSE


def title_of(measure: Measure) -> str:
    """In full: "… of answerable questions" says of what only below the title before it."""
    if not measure.title.startswith(_PART):
        return measure.title
    earlier = [one.title for one in MEASURES[: MEASURES.index(measure)] if not one.title.startswith(_PART)]
    return f"{earlier[-1]} {measure.title.removeprefix(_PART)}"


def describe_found(found: Estimate | None, unit: Unit) -> Shown:
    if found is None:
        return Shown("–")
    ends = f"{figure(found.low, unit)} to {figure(found.high, unit)}" if found.has_interval else ""
    return Shown(figure(found.value, unit), ends)


def describe_gain(cell: Cell, unit: Unit) -> Shown:
    """Of shares in percentage points, without the word."""
    if cell.gain is None:
        return Shown("–")
    found = _describe_gain(cell.gain, unit)
    return Shown("no difference", found.interval) if cell.is_same else found


def _describe_gain(gain: Estimate, unit: Unit, signed: bool = True) -> Shown:
    ends = (_describe_end(end, unit, signed) for end in (gain.low, gain.high))
    return Shown(_describe_size(gain.value, unit, signed), " to ".join(ends) if gain.has_interval else "")


def _describe_size(size: float, unit: Unit, signed: bool) -> str:
    """What rounds to 0 has no sign."""
    text = figure(size, unit, signed).removesuffix("%")
    return text if float(text) else text.lstrip("+")


def _describe_end(end: float, unit: Unit, signed: bool) -> str:
    """An end that would round to 0 and is not 0 says so: it makes a gain certain or not."""
    text = _describe_size(end, unit, signed)
    if end == 0 or float(text):
        return text
    return "just above 0" if end > 0 else "just below 0"


def drawn_rows(table: Table) -> list[Row]:
    """The shares in which some configuration differs from the first."""
    return [row for row in _shares(table) if _differs(row)]


def _shares(table: Table) -> tuple[Row, ...]:
    return tuple(row for row in table.rows if row.measure.unit is Unit.SHARE)


def _differs(row: Row) -> bool:
    return any(cell.gain and not cell.is_same for cell in row.cells)


# --- findings ---------------------------------------------------------------------------------------------------------


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
    text = _describe(figure(cell.found.value, unit), figure(first.found.value, unit), cell, unit, tone)
    among = counted(cell.counted, "question")
    if cell.counted != first.counted:
        among += f" under {names[place]} and {first.counted} under {names[0]}, not the same ones"
    return Finding(tone, VERDICTS[tone], point, f"{text} Of {among}.")


def _describe(value: str, first: str, cell: Cell, unit: Unit, tone: str) -> str:
    gain, points = cell.gain, " points" if unit is Unit.SHARE else ""
    assert gain is not None
    if tone == UNCLEAR:
        both = f"{value} under both, on every question the same" if cell.is_same else f"{value} here, {first} there"
        room = describe_gain(cell, unit).interval
        return f"{both}; the difference may be {room}{points}." if room else f"{both}."
    is_more = gain.low > 0
    size = _describe_gain(gain if is_more else Estimate(-gain.value, -gain.high, -gain.low), unit, signed=False)
    room = f" ({size.interval})" if size.interval else " on every question"
    return f"{value} instead of {first}, which is {size.value}{points} {'more' if is_more else 'less'}{room}."


def _seconds(found: Estimate | None, first: Estimate | None) -> Finding:
    """Better or worse only where the two intervals do not touch: their difference has none of its own."""
    if found is None or first is None:
        return Finding(UNCLEAR, _MISSING, _SECONDS, "No question counts for it.")
    tone = BETTER if found.high < first.low else WORSE if found.low > first.high else UNCLEAR
    one, other = (
        f"{shown.value} ({shown.interval or 'too few questions for an interval'})"
        for shown in (describe_found(each, Unit.SECONDS) for each in (found, first))
    )
    can_tell = found.has_interval and first.has_interval
    text = f"{one} here, {other} there{': the intervals touch' if can_tell else ''}."
    if tone != UNCLEAR:
        text = f"{one} instead of {other}: the intervals do not touch."
    return Finding(tone, VERDICTS[tone], _SECONDS, text)


def _half(table: Table, name: str) -> Estimate | None:
    paths = table.paths(name)
    return paths[-1].p50 if paths else None

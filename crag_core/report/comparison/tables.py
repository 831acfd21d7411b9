"""The tables of a comparison: every measure by groups, the ways that questions took, and the seconds of each way."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from crag_core.base.text.display import counted
from crag_core.base.types import Action
from crag_core.experiments.comparison.metrics import Group, Unit
from crag_core.experiments.comparison.table import Cell, Path, Row, Table
from crag_core.experiments.labelled.questions import Expected
from crag_core.report.comparison.results import (
    UNCLEAR,
    VERDICTS,
    Told,
    describe_found,
    describe_gain,
    describe_value,
    title_of,
    tone_of,
)
from crag_core.report.thresholds.rates import LABELS

_DIRECTIONS = {1: "more is better", -1: "less is better", 0: "neither is better"}


@dataclass(frozen=True)
class Shown:
    """A measure of one configuration; `among` is "" where all configurations have as many questions."""

    found: Told
    among: str
    gain: Told | None
    tone: str
    verdict: str


@dataclass(frozen=True)
class Line:
    """`among` is "" where configurations differ in how many questions count."""

    title: str
    told: str
    among: str
    cells: tuple[Shown, ...]


@dataclass(frozen=True)
class Way:
    """Questions of one label by what was done; `cells` are (count, whether the label asks for it)."""

    label: str
    count: int
    cells: tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class Timed:
    label: str
    count: int
    half: Told
    most: Told
    calls: str


@dataclass(frozen=True)
class Routes:
    """What one configuration did."""

    name: str
    ways: tuple[Way, ...]
    times: tuple[Timed, ...]


def groups_of(table: Table) -> tuple[tuple[Group, tuple[Line, ...]], ...]:
    grouped = groupby(table.rows, key=lambda row: row.measure.group)
    return tuple((group, tuple(map(_line, rows))) for group, rows in grouped)


def routes_of(table: Table) -> tuple[Routes, ...]:
    """For each configuration; () without a question."""
    if not table.questions:
        return ()
    return tuple(
        Routes(name, tuple(_way(*one) for one in table.confusion(name).items()), tuple(map(_timed, table.paths(name))))
        for name in table.names
    )


def _line(row: Row) -> Line:
    counts = {cell.counted for cell in row.cells}
    among = counted(counts.pop(), "question") if len(counts) == 1 else ""
    message = f"{row.measure.told}; {_DIRECTIONS[row.measure.better]}"
    return Line(title_of(row.measure), message, among, tuple(_shown(row, cell, not among) for cell in row.cells))


def _shown(row: Row, cell: Cell, counts_differ: bool) -> Shown:
    unit, tone = row.measure.unit, tone_of(row.measure, cell)
    return Shown(
        found=describe_found(cell.found, unit),
        among=counted(cell.counted, "question") if counts_differ else "",
        gain=describe_gain(cell.gain, unit) if cell.gain else None,
        tone=tone,
        verdict="" if tone == UNCLEAR else VERDICTS[tone],
    )


def _way(expected: Expected, done: dict[Action, int]) -> Way:
    cells = tuple((count, action in expected.actions) for action, count in done.items())
    return Way(LABELS[expected], sum(done.values()), cells)


def _timed(path: Path) -> Timed:
    half, most = (describe_found(one, Unit.SECONDS) for one in (path.p50, path.p95))
    return Timed(path.label, path.count, half, most, describe_value(path.calls, Unit.COUNT))

"""A comparison table as text, CSV and JSON."""

from __future__ import annotations

from typing import Any

from crag_core.base.serialization import to_plain
from crag_core.base.text.csv_cells import written
from crag_core.experiments.comparison.metrics import Unit
from crag_core.experiments.comparison.table import Cell, Path, Row, Table
from crag_core.experiments.statistics.intervals import Estimate

CSV_COLUMNS = (
    *("group", "measure", "title", "unit", "better", "configuration", "value", "low", "high", "questions"),
    *("gain", "gain_low", "gain_high", "change", "change_low", "change_high"),
)


def to_csv(table: Table) -> str:
    """A line for every measure of every configuration; numbers in full, empty where there is none, no formulas."""
    rows: list[tuple[object, ...]] = [CSV_COLUMNS]
    for row in table.rows:
        for name, cell in zip(table.names, row.cells, strict=True):
            measure = row.measure
            head = (measure.group.value, measure.name, measure.title, measure.unit.value, measure.better, name)
            rows.append((*head, *_ends(cell.found), cell.counted, *_ends(cell.gain), *_ends(cell.change)))
    return written(rows)


def to_data(table: Table) -> dict[str, Any]:
    """Ready for JSON."""
    return {
        "questions": len(table.questions),
        "left_out": table.left_out,
        "configurations": list(table.names),
        "measures": [_row(table, row) for row in table.rows],
        "paths": {name: [to_plain(path) for path in table.paths(name)] for name in table.names},
        "confusion": {
            name: {expected.value: counts for expected, counts in table.confusion(name).items()} for name in table.names
        },
    }


def to_text(table: Table) -> str:
    """For a terminal: values with intervals, and below each what it gains over the first where that is certain."""
    width = max(20, *(len(name) + 2 for name in table.names))
    lines = [f"{'':<44}" + "".join(f"{name:>{width}}" for name in table.names)]
    group = ""
    for row in table.rows:
        if row.measure.group != group:
            group = row.measure.group
            lines += ["", group]
        lines.append(
            f"{row.measure.title[:43]:<44}" + "".join(f"{_describe(row, cell):>{width}}" for cell in row.cells)
        )
        if any(cell.is_certain for cell in row.cells):
            lines.append(f"{'':<44}" + "".join(f"{_gained(row, cell):>{width}}" for cell in row.cells))
    lines += ["", "Seconds from question to answer, half of them and 95 in 100 at most"]
    for name in table.names:
        lines += [f"  {name}: " + "; ".join(_path(path) for path in table.paths(name))]
    return "\n".join(lines)


def figure(value: float, unit: Unit, signed: bool = False) -> str:
    """A share as percent, the others as numbers; never a minus before zeros."""
    kind = "+z" if signed else "z"
    if unit == Unit.SHARE:
        return f"{value:{kind}.1%}"
    return f"{value:{kind}.0f}" if abs(value) >= 100 else f"{value:{kind}.2f}"


def _describe(row: Row, cell: Cell) -> str:
    if cell.found is None:
        return "–"
    unit = row.measure.unit
    return f"{figure(cell.found.value, unit)} ({figure(cell.found.low, unit)}–{figure(cell.found.high, unit)})"


def _gained(row: Row, cell: Cell) -> str:
    return figure(cell.gain.value, row.measure.unit, signed=True) if cell.gain and cell.is_certain else ""


def _path(path: Path) -> str:
    times = " and ".join(f"{found.value:.2f}" for found in (path.p50, path.p95) if found)
    return f"{path.label} {path.count}: {times} s, {path.calls:.1f} calls"


def _row(table: Table, row: Row) -> dict[str, Any]:
    measure = row.measure
    return {
        "name": measure.name,
        "title": measure.title,
        "group": measure.group.value,
        "unit": measure.unit.value,
        "better": measure.better,
        "told": measure.description,
        "cells": {name: to_plain(cell) for name, cell in zip(table.names, row.cells, strict=True)},
    }


def _ends(found: Estimate | None) -> tuple[float | str, ...]:
    return (found.value, found.low, found.high) if found else ("", "", "")

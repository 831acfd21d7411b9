"""The comparison table: every metric of each configuration, and its gain over the first, paired by question.

Also as text for a terminal, as CSV and as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crag_core.base.serialization import to_plain
from crag_core.base.text.csv_cells import written
from crag_core.base.types.decisions import Action
from crag_core.experiments.comparison.metrics import MEASURES, Measure, Unit
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.statistics.intervals import Estimate, Ratio, Resamples

Outcomes = Mapping[str, Outcome]
"""By the key of the question."""
CSV_COLUMNS = (
    *("group", "measure", "title", "unit", "better", "configuration", "value", "low", "high", "questions"),
    *("gain", "gain_low", "gain_high"),
)


@dataclass(frozen=True)
class Cell:
    """A measure of one configuration; `gain` is over the first one, None for itself.

    `counted` questions have a part in it. `is_same`: every question says the same under both.
    """

    found: Estimate | None
    counted: int
    gain: Estimate | None = None
    is_same: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether the interval of the gain leaves 0 out."""
        return self.gain is not None and (self.gain.low > 0 or self.gain.high < 0)


@dataclass(frozen=True)
class Row:
    """`cells` has one for each configuration, in their order."""

    measure: Measure
    cells: tuple[Cell, ...]


class Table:
    """`results` by the name of their configuration, the one to compare with first.

    Only questions that every configuration has finished are compared; `left_out` counts the others. `found` has the
    outcomes of `questions` by configuration, in their order.
    """

    def __init__(self, questions: Sequence[LabelledQuestion], results: Mapping[str, Outcomes]) -> None:
        self.names = tuple(results)
        self.questions = tuple(
            asked for asked in questions if all(_is_done(found, asked) for found in results.values())
        )
        self.left_out = len(questions) - len(self.questions)
        self.found = {name: [found[asked.key] for asked in self.questions] for name, found in results.items()}

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every measure that some configuration has; () without a question or a configuration."""
        if not self.questions or not self.names:
            return ()
        rows = (self._row(measure) for measure in MEASURES)
        return tuple(row for row in rows if any(cell.found is not None for cell in row.cells))

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.measure.name == name), None)

    def confusion(self, name: str) -> dict[Expected, dict[Action, int]]:
        """Questions by what was expected and what was done, of the labels that occur."""
        table = {expected: dict.fromkeys(Action, 0) for expected in Expected}
        for asked, found in zip(self.questions, self.found[name], strict=True):
            if found.action is not None:
                table[asked.expected][found.action] += 1
        return {expected: counts for expected, counts in table.items() if any(counts.values())}

    @cached_property
    def _resamples(self) -> Resamples:
        return Resamples(len(self.questions))

    def _row(self, measure: Measure) -> Row:
        ratios = [self._ratio(measure, name) for name in self.names]
        first = ratios[0]
        return Row(measure, tuple(self._cell(ratio, None if ratio is first else first) for ratio in ratios))

    def _cell(self, ratio: Ratio, first: Ratio | None) -> Cell:
        found = self._resamples.estimate(ratio)
        if first is None:
            return Cell(found, ratio.counted)
        is_same = bool((ratio.parts == first.parts).all() and (ratio.wholes == first.wholes).all())
        return Cell(found, ratio.counted, self._resamples.difference(ratio, first), is_same)

    def _ratio(self, measure: Measure, name: str) -> Ratio:
        pairs = zip(self.questions, self.found[name], strict=True)
        counts = np.array([measure.counts(asked, found) or (0.0, 0.0) for asked, found in pairs], dtype=float)
        return Ratio(counts[:, 0], counts[:, 1], *measure.bounds)


def _is_done(found: Outcomes, asked: LabelledQuestion) -> bool:
    return asked.key in found and not found[asked.key].failed


# --- as text, CSV and JSON --------------------------------------------------------------------------------------------


def to_csv(table: Table) -> str:
    """A line for every measure of every configuration; numbers in full, empty where there is none, no formulas."""
    rows: list[tuple[object, ...]] = [CSV_COLUMNS]
    for row in table.rows:
        for name, cell in zip(table.names, row.cells, strict=True):
            measure = row.measure
            head = (measure.group.value, measure.name, measure.title, measure.unit.value, measure.better, name)
            rows.append((*head, *_ends(cell.found), cell.counted, *_ends(cell.gain)))
    return written(rows)


def to_data(table: Table) -> dict[str, Any]:
    return {
        "questions": len(table.questions),
        "left_out": table.left_out,
        "configurations": list(table.names),
        "measures": [
            {
                **{name: getattr(row.measure, name) for name in ("name", "title", "group", "unit", "better")},
                "told": row.measure.description,
                "cells": {name: _plain(cell) for name, cell in zip(table.names, row.cells, strict=True)},
            }
            for row in table.rows
        ],
        "confusion": {
            name: {expected.value: counts for expected, counts in table.confusion(name).items()} for name in table.names
        },
    }


def to_text(table: Table) -> str:
    """For a terminal: questions that count, values with intervals, and below each what it gains over the first where
    that is certain."""
    width = max(22, *(len(name) + 2 for name in table.names))
    lines = [f"{'':<44}" + "".join(f"{name:>{width}}" for name in table.names)]
    group = ""
    for row in table.rows:
        if row.measure.group != group:
            group = row.measure.group
            lines += ["", group]
        counts = "/".join(dict.fromkeys(str(cell.counted) for cell in row.cells))
        cells = "".join(f"{_describe(row, cell):>{width}}" for cell in row.cells)
        lines.append(f"{row.measure.title[: 41 - len(counts)]} ({counts})".ljust(44) + cells)
        if any(cell.is_certain for cell in row.cells):
            lines.append(f"{'':<44}" + "".join(f"{_gained(row, cell):>{width}}" for cell in row.cells))
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
    value, *ends = (figure(one, row.measure.unit) for one in (cell.found.value, cell.found.low, cell.found.high))
    return f"{value} ({'–'.join(ends)})" if cell.found.has_interval else value


def _gained(row: Row, cell: Cell) -> str:
    if cell.gain is None or not cell.is_certain:
        return ""
    gained = figure(cell.gain.value, row.measure.unit, signed=True)
    return f"{gained.removesuffix('%')} points" if row.measure.unit is Unit.SHARE else gained


def _plain(cell: Cell) -> dict[str, Any]:
    """None for ends that the questions do not tell, which JSON has no number for."""
    plain = to_plain(cell)
    for estimate in filter(lambda one: isinstance(one, dict), plain.values()):
        estimate.update({name: one if math.isfinite(one) else None for name, one in estimate.items()})
    return dict(plain)


def _ends(found: Estimate | None) -> tuple[float | str, ...]:
    """Empty where there is none: ends that the questions do not tell are no numbers."""
    numbers = (found.value, found.low, found.high) if found else ()
    return tuple(one if math.isfinite(one) else "" for one in numbers) or ("", "", "")

"""The picture of a comparison: what each configuration gains over the first, with intervals, on one scale for all."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.experiments.comparison.metrics import Measure, Unit
from crag_core.experiments.comparison.table import Cell, Row, Table
from crag_core.report.comparison.results import is_none, title_of

_SCALES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Picture:
    """What one configuration gains, by measure; the line goes from -`scale` to `scale`."""

    name: str
    cells: tuple[tuple[Measure, Cell], ...]
    scale: float

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(place, label)."""
        ends = [part * self.scale for part in (-1.0, -0.5, 0.0, 0.5, 1.0)]
        return [(self.place(end), f"{100 * end:+g}" if end else "0") for end in ends]

    def place(self, gain: float) -> float:
        """In percent of the width."""
        return round(50 + 50 * gain / self.scale, 2)


def pictures_of(table: Table) -> tuple[Picture, ...]:
    """One for each configuration but the first, with the same rows; () where no share differs."""
    rows = [row for row in _shares(table) if _differs(row)]
    ends = [abs(end) for row in rows for cell in row.cells if cell.gain for end in (cell.gain.low, cell.gain.high)]
    if not ends:
        return ()
    scale = next(scale for scale in _SCALES if max(ends) <= scale)
    return tuple(
        Picture(name, tuple((row.measure, row.cells[place]) for row in rows), scale)
        for place, name in enumerate(table.names)
        if place
    )


def same_of(table: Table) -> tuple[str, ...]:
    """The shares in which no configuration differs from the first; they are not drawn."""
    return tuple(title_of(row.measure) for row in _shares(table) if not _differs(row))


def _shares(table: Table) -> tuple[Row, ...]:
    return tuple(row for row in table.rows if row.measure.unit is Unit.SHARE)


def _differs(row: Row) -> bool:
    return any(cell.gain and not is_none(cell.gain) for cell in row.cells)

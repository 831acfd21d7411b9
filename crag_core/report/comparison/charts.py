"""The picture of a comparison: what each configuration gains over the first, with intervals, on one scale for all."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.experiments.comparison.metrics import Unit
from crag_core.experiments.comparison.table import Cell, Row, Table
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.report.comparison.results import UNCLEAR, VERDICTS, Told, describe_gain, is_none, title_of, tone_of

_SCALES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_TICKS = (-1.0, -0.5, 0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Gain:
    """`low`, `at` and `high` are percentages of the width, 50 is no gain; they are None where none was measured.

    `better` is 1 where more is better, -1 where less is, 0 where neither.
    """

    title: str
    tone: str
    verdict: str
    told: Told
    better: int
    low: float | None = None
    at: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Picture:
    """What one configuration gains; `ticks` are (place, label)."""

    name: str
    gains: tuple[Gain, ...]
    ticks: tuple[tuple[float, str], ...]


def pictures_of(table: Table) -> tuple[Picture, ...]:
    """One for each configuration but the first, with the same rows; () where no share differs."""
    rows = [row for row in _shares(table) if _differs(row)]
    ends = [abs(end) for row in rows for cell in row.cells if cell.gain for end in _ends(cell.gain)]
    if not ends:
        return ()
    scale = next(scale for scale in _SCALES if max(ends) <= scale)
    ticks = tuple((_place(at), f"{100 * at * scale:+g}" if at else "0") for at in _TICKS)
    return tuple(
        Picture(name, tuple(_gain(row, row.cells[place], scale) for row in rows), ticks)
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


def _gain(row: Row, cell: Cell, scale: float) -> Gain:
    measure, gain, title = row.measure, cell.gain, title_of(row.measure)
    if gain is None:
        return Gain(title, UNCLEAR, "not measured", Told("–"), measure.better)
    tone = tone_of(measure, cell)
    low, at, high = (_place(end / scale) for end in _ends(gain))
    return Gain(title, tone, VERDICTS[tone], describe_gain(gain, measure.unit), measure.better, low, at, high)


def _ends(gain: Estimate) -> tuple[float, float, float]:
    return gain.low, gain.value, gain.high


def _place(share: float) -> float:
    return round(50 + 50 * share, 2)

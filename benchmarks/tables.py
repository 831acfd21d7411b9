"""Tables for people (Markdown) and for programs (plain values), from the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.measures import Estimate

Cell = Estimate | float | str | None


@dataclass(frozen=True)
class Table:
    """Rows by title, each with cells by column; a cell that a row lacks was not measured."""

    title: str
    rows: Mapping[str, Mapping[str, Cell]]

    def __str__(self) -> str:
        columns = list(dict.fromkeys(name for row in self.rows.values() for name in row))
        lines = [[self.title, *columns]]
        lines += [[title, *(_shown(row.get(name)) for name in columns)] for title, row in self.rows.items()]
        widths = [max(len(line[place]) for line in lines) for place in range(len(columns) + 1)]
        drawn = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
            for line in lines
        ]
        return "\n".join([drawn[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *drawn[1:]])

    def plain(self) -> dict[str, Any]:
        """Ready for JSON: {row: {column: value}}, an estimate as {value, low, high}."""
        return {
            title: {name: asdict(cell) if isinstance(cell, Estimate) else cell for name, cell in row.items()}
            for title, row in self.rows.items()
        }


def _shown(cell: Cell) -> str:
    if cell is None:
        return "–"
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)

"""Tables as lines of text, each with the headers of its cells."""

from __future__ import annotations

import re
from itertools import groupby


def table_to_text(rows: list[list[str]], headed: bool = True) -> str:
    """One line per row: "header: value; header: value", so that a row keeps its meaning without the table.

    Without a header row, cells are separated by bars. Cells that a merge repeats are shown once.
    """
    rows = [[" ".join(cell.split()) for cell in row] for row in rows]
    rows = [row for row in rows if any(row)]
    if not rows:
        return ""
    if headed and all(len(row) == 2 for row in rows) and _is_value(rows[0][1]) and not _is_numbered(*rows[0]):
        return "\n".join(f"{key}: {value}".strip(": ") for key, value in rows)
    if not headed or len(rows) == 1 or len(rows[0]) == 1:
        return "\n".join(" | ".join(cell for cell, _ in groupby(row) if cell) for row in rows)
    header = [cell or f"column {number}" for number, cell in enumerate(rows[0], 1)]
    return "\n".join(pair_cells(header, row) for row in rows[1:])


def pair_cells(header: list[str], row: list[str]) -> str:
    """Empty cells are left out; a row longer than its header numbers what is left over."""
    names = header + [f"column {number}" for number in range(len(header) + 1, len(row) + 1)]
    return "; ".join(f"{name}: {cell}" for name, cell in zip(names, row, strict=False) if cell)


def _is_value(cell: str) -> bool:
    """In a table of two columns: too long or too exact for a header, so the first column holds the names."""
    return len(cell) > 40 or any(letter.isdigit() for letter in cell)


def _is_numbered(first: str, second: str) -> bool:
    """ "Column 1" beside "Column 2": the digits tell headers apart."""
    words = [re.sub(r"\d+", "", cell).strip() for cell in (first, second)]
    return words[0] == words[1] != ""

"""Tables and sheets as lines of text, each with the headers of its cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

_YEAR = re.compile(r"(?:19|20)\d\d")


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


class Cell(NamedTuple):
    """What a cell shows. `is_text` is False for numbers, dates and truth values."""

    text: str = ""
    is_text: bool = True


EMPTY = Cell()
Rows = list[Sequence[Cell]]


def sheet_to_text(rows: Iterable[Sequence[Cell]]) -> str:
    """One line per row with its headers, a blank line between tables.

    Empty rows separate tables, and so do empty columns between two tables side by side. A part without a header of its
    own continues under the header of the part above.
    """
    header: dict[int, str] = {}
    shown = []
    for is_filled, run in groupby(rows, key=lambda row: any(cell.text for cell in row)):
        if is_filled:
            block = list(run)
            for columns in _split_columns(block):
                text, header = _show_block(block, columns, header)
                shown.append(text)
    return "\n\n".join(filter(None, shown))


def _split_columns(block: Rows) -> list[list[int]]:
    """The columns that are filled, split where an empty one separates two tables."""
    used = sorted({at for row in block for at, cell in enumerate(row) if cell.text})
    parts = [[at for _, at in run] for _, run in groupby(enumerate(used), key=lambda pair: pair[1] - pair[0])]
    joined = [parts[0]]
    for part in parts[1:]:
        # A column alone, or columns that begin with figures, belong to the names on their left.
        if len(part) > 1 and len(joined[-1]) > 1 and _names_rows(block, part[0]) and _names_rows(block, joined[-1][0]):
            joined.append(part)
        else:
            joined[-1] = joined[-1] + part
    return joined


def _names_rows(block: Rows, column: int) -> bool:
    below = [cell for row in block for cell in (_at(row, column),) if cell.text][1:]
    return bool(below) and all(cell.is_text for cell in below)


def _show_block(block: Rows, columns: list[int], above: dict[int, str]) -> tuple[str, dict[int, str]]:
    """The text of one table, and the header for what follows."""
    rows = [[_at(row, column) for column in columns] for row in block]
    rows = [row for row in rows if any(cell.text for cell in row)]
    lines = []
    # Titles: one cell, often merged over the table, above the real header.
    while rows and _is_line(rows[0]):
        lines.append(next(cell.text for cell in rows.pop(0) if cell.text))
    if not rows:
        return "\n".join(lines), above
    # Names below names, without a title between, look like a header and are the next rows of the same table.
    goes_on = not lines and set(columns) <= set(above) and all(cell.is_text for row in rows for cell in row)
    named, body = ([], rows) if goes_on else _take_header(rows)
    texts = [[cell.text for cell in row] for row in body]
    if named and not body:
        lines.append(" | ".join(name for name, _ in groupby(named) if name))
    elif not named and set(columns) <= set(above) and len(columns) > 1:
        named = [above[column] for column in columns]
    elif not named and len(columns) == 2:
        return "\n".join(
            [*lines, *(": ".join(filter(None, (name.rstrip(":"), value))) for name, value in texts)]
        ), above
    elif not named:
        return "\n".join([*lines, table_to_text(texts, headed=False)]), above
    lines.extend(pair_cells(named, text) for text in texts)
    return "\n".join(lines), {**above, **dict(zip(columns, named, strict=True))}


def _take_header(rows: list[list[Cell]]) -> tuple[list[str], list[list[Cell]]]:
    """The names of the columns, none if there is no header, and the rows below.

    A header that groups others (a merged "2020" above "Sales" and "Costs") is put before each of them.
    """
    if not _is_header(rows[0], rows[1:]):
        return [], rows
    names = [cell.text for cell in rows[0]]
    rows = rows[1:]
    if len(rows) > 1 and _is_grouped(names) and _is_header(rows[0], rows[1:]):
        names = [
            " ".join(dict.fromkeys(filter(None, (name, cell.text)))) for name, cell in zip(names, rows[0], strict=True)
        ]
        rows = rows[1:]
    return [name or f"column {number}" for number, name in enumerate(names, 1)], rows


def _is_header(row: list[Cell], below: list[list[Cell]]) -> bool:
    """Texts, or years and dates above columns of something else."""
    filled = [(at, cell) for at, cell in enumerate(row) if cell.text]
    if len(filled) < 2 or row[0].text.endswith(":"):
        return False
    return all(cell.is_text or _stands_out(cell, [other[at] for other in below]) for at, cell in filled)


def _stands_out(cell: Cell, below: list[Cell]) -> bool:
    kind = _shape(cell)
    return kind != "figure" and all(_shape(other) != kind for other in below)


def _shape(cell: Cell) -> str:
    if cell.is_text:
        return "text"
    if _YEAR.fullmatch(cell.text):
        return "year"
    return "date" if re.search(r"\d{4}-\d\d|[A-Z][a-z]{2} \d{4}", cell.text) else "figure"


def _is_line(row: list[Cell]) -> bool:
    """One text in a row, once or over merged cells, and no figure."""
    said = {cell for cell in row if cell.text}
    return len(said) == 1 and said.pop().is_text


def _is_grouped(names: list[str]) -> bool:
    return any(name and name == other for name, other in pairwise(names))


def _at(row: Sequence[Cell], column: int) -> Cell:
    return row[column] if column < len(row) else EMPTY

"""Rows of a printed table, each with the headers of its cells, also where the table goes on overleaf. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from crag_core.retrieval.readers.pdf.lines import Line, is_prose
from crag_core.retrieval.readers.tables import is_header, pair_cells, shape_of
from crag_core.retrieval.readers.text import glue_lines

Parts = Sequence[Line]
"""What of a line stands between wide gaps, from left to right."""
Row = tuple[Line, Parts]

WIDE_GAP = 1.2  # type sizes; words of justified lines are closer

_LEAST_CELLS = 3
_MOST_HEADS = 3  # lines of a header
_MOST_READ = 30  # rows below it, to know it by
_CLOSE = 1.7  # type sizes between the lines of a header, or of a first cell: another row begins with its own
_LOOSE = 2.5  # between those of a bold header, or of other cells
_FURTHEST = 4.0  # type sizes between rows of one table
_MOST_BETWEEN = 3  # lines between them, such as the name of a section
_MOST_OVERLEAF = 6  # the same, and the foot and the head of a page


def join_rows(rows: Sequence[Row]) -> list[Row]:
    """`is_row` for those with cells below or above cells; PDFium cuts some of them at a gap, and they are joined."""
    joined: list[list[Row]] = []
    for line, parts in rows:
        if joined and _is_beside(joined[-1][-1][0], line):
            joined[-1].append((line, parts))
        else:
            joined.append([(line, parts)])
    cells = [[part for _, parts in pieces for part in parts] for pieces in joined]
    found: list[Row] = []
    for at, (pieces, parts) in enumerate(zip(joined, cells, strict=True)):
        if _is_aligned(parts, cells[max(0, at - 1) : at] + cells[at + 1 : at + 2]):
            first, last = pieces[0][0], pieces[-1][0]
            text = " ".join(line.text.strip() for line, _ in pieces)
            found.append((replace(first, text=text, right=last.right, ends_bold=last.ends_bold, is_row=True), parts))
        else:
            found += pieces
    return found


def _is_beside(line: Line, other: Line) -> bool:
    return abs(line.y - other.y) < 0.1 * line.size and other.left - line.right > WIDE_GAP * line.size


def _is_aligned(parts: Parts, beside: Sequence[Parts]) -> bool:
    """Whether a row of three parts or more stands below or above one whose parts begin or end where its own do."""
    return len(parts) >= _LEAST_CELLS and any(
        len(parts) == len(others)
        and all(
            min(abs(a.left - b.left), abs(a.right - b.right)) < a.size / 2 for a, b in zip(parts, others, strict=True)
        )
        for others in beside
    )


class TableRows:
    """Reads the pages of one document in order."""

    def __init__(self) -> None:
        self._table: _Table | None = None
        self._between = 0  # lines since the last of the table
        self._first = ""  # cell of its last row

    def name_cells(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of a page; those of tables as "header: cell; header: cell", those of headers left out."""
        found: list[Row] = []
        floor: float | None = None  # of the table on this page
        is_overleaf = True
        at = 0
        while at < len(rows):
            line, parts = rows[at]
            if floor is not None and (self._between > _MOST_BETWEEN or floor - line.y > _FURTHEST * line.size):
                floor = None
            ahead = rows[at : at + _MOST_HEADS + _MOST_READ]
            if not (taken := self._take_header(ahead, is_inside=floor is not None)):
                named = self._name_row(ahead, floor) if floor is not None or is_overleaf else None
                taken = named[1] if named else 0
                found.append((named[0], [named[0]]) if named else (line, parts))
            if taken:
                floor, is_overleaf, self._between = min(row.y for row, _ in ahead[:taken]), False, 0
            else:
                self._between += 1
            at += taken or 1
        return found

    def _name_row(self, ahead: Sequence[Row], floor: float | None) -> tuple[Line, int] | None:
        """The next row, and of how many lines; overleaf the table goes on with a row that has all cells."""
        if not self._table:
            return None
        taken = self._table.take(ahead, math.inf if floor is None else floor)
        cells = self._table.join([parts for _, parts in ahead[:taken]])
        count = sum(map(bool, cells))
        is_whole = count == len(cells) and self._between <= _MOST_OVERLEAF
        if count < 2 or not (floor is not None or is_whole):
            return None
        self._first = cells[0] = cells[0] or self._first
        text = pair_cells(self._table.names, cells)
        return replace(ahead[0][0], text=text, y=min(line.y for line, _ in ahead[:taken]), is_row=True), taken

    def _take_header(self, ahead: Sequence[Row], is_inside: bool) -> int:
        """How many lines are the header of another table, or of this one again."""
        for lines in range(1, min(_MOST_HEADS, len(ahead) - 1) + 1):
            header = [parts for _, parts in ahead[:lines]]
            found = _find_table(header, ahead[lines:])
            if not found:
                continue
            table, body = found
            is_bold = _is_bold(header) and not _is_bold([ahead[lines][1]])
            # Names of a column of figures, where no row of the table above could be meant.
            is_told = not is_inside and any(
                name and all(shape_of(row[at]) != "text" for row in body) for at, name in enumerate(table.names)
            )
            if is_bold or is_told or (self._table and table.names == self._table.names):
                self._table, self._first = table, ""
                return lines
        return 0


@dataclass(frozen=True)
class _Table:
    """Its headers, one for each column, and where the columns begin and end."""

    names: list[str]
    edges: Sequence[tuple[float, float]]

    def place(self, parts: Parts) -> list[int]:
        """The column of each part; none where a part is in no column or in two, or where two are in one."""
        found = [columns[0] for columns in self._span(parts) if len(columns) == 1]
        return found if len(found) == len(parts) and found == sorted({*found}) else []

    def _span(self, parts: Parts) -> list[list[int]]:
        """The columns that each part is above, below or in."""
        return [
            [at for at, (left, right) in enumerate(self.edges) if part.left < right and left < part.right]
            for part in parts
        ]

    def join(self, lines: Sequence[Parts], may_span: bool = False) -> list[str]:
        """What lines say in each column; nothing where one of them is not in the columns, or spans some."""
        cells = [""] * len(self.edges)
        for parts in lines:
            spans = self._span(parts) if may_span else [[at] for at in self.place(parts)]
            columns = [at for span in spans for at in span]
            if not all(spans) or not columns or len({*columns}) < len(columns):
                return []
            for span, part in zip(spans, parts, strict=True):
                for at in span:
                    text = part.text.strip()
                    cells[at] = glue_lines(cells[at], text) if cells[at] else text
        return cells

    def take(self, ahead: Sequence[Row], ceiling: float) -> int:
        """How many lines make the next row, below `ceiling`: cell after cell, each from its first line to its last.

        A row may lack its first cell alone, where that of the row above spans both.
        """
        column, above, floor = -1, ahead[0][0], ahead[0][0].y
        for taken, (line, parts) in enumerate(ahead):
            places = self.place(parts)
            if not places or line.y >= ceiling or floor - line.y > _FURTHEST * line.size or not _is_alike(above, line):
                return taken
            spacing = _LOOSE if column > 0 else _CLOSE
            goes_on = places[0] == column and 0 < above.y - line.y < spacing * line.size
            begins = places[0] == 0 or places == [*range(1, len(self.edges))]
            if not (places[0] > column if taken else begins) and not goes_on:
                return taken
            column, above, floor = places[-1], line, min(floor, line.y)
        return len(ahead)


def _find_table(header: Sequence[Parts], below: Sequence[Row]) -> tuple[_Table, list[list[str]]] | None:
    """The table below a header, and the cells it is known by: rows of one line, or one of several below bold names."""
    width = len(below[0][1]) if below[0][0].is_row else len(header[-1])
    body = [parts for _, parts in takewhile(lambda row: row[0].is_row and len(row[1]) == width, below)]
    gap = header[-1][0].y - below[0][0].y
    if width < _LEAST_CELLS or len(header[0]) < 2 or not _is_close(header) or gap > _FURTHEST * below[0][0].size:
        return None
    if body and all(map(is_prose, zip(*body, strict=True))):
        return None
    if body:
        columns = zip(*(parts for parts in (*header, *body) if len(parts) == width), strict=True)
        edges = [(min(part.left for part in column), max(part.right for part in column)) for column in columns]
    elif _is_bold(header):
        starts = [part.left - part.size / 2 for part in header[-1]]
        edges = [*pairwise((*starts, math.inf))]
    else:
        return None
    table = _Table([], edges)
    table = replace(table, names=table.join(header, may_span=len(header) > 1))
    if body:
        cells = [[part.text.strip() for part in parts] for parts in body]
    else:
        cells = [table.join([parts for _, parts in below[: table.take(below, header[-1][0].y)]])]
    is_table = sum(map(bool, table.names)) >= width - 1 and all(map(all, cells)) and is_header(table.names, cells)
    return (table, cells) if is_table else None


def _is_alike(line: Line, other: Line) -> bool:
    return abs(line.size - other.size) < 0.1 * line.size


def _is_close(rows: Sequence[Parts]) -> bool:
    """Lines of one header: of one size, below one another."""
    spacing = _LOOSE if _is_bold(rows) else _CLOSE
    return all(
        _is_alike(row[0], below[0]) and 0 < row[0].y - below[0].y < spacing * row[0].size
        for row, below in pairwise(rows)
    )


def _is_bold(rows: Sequence[Parts]) -> bool:
    return all(part.bold for parts in rows for part in parts)

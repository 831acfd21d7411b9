"""Rows of a printed table, each with the headers of its cells, also where the table goes on overleaf. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from crag_core.retrieval.readers.pdf.lines import Line, is_prose
from crag_core.retrieval.readers.tables import is_header, pair_cells, shape_of
from crag_core.retrieval.readers.text import glue_lines

Parts = Sequence[Line]
"""What of a line stands between wide gaps, from left to right."""
Row = tuple[Line, Parts]

WIDE_GAP = 1.2  # type sizes; words of justified lines are closer
NARROW_GAP = 0.5  # in bold and between figures, which prose is not

_TIGHT = 0.15  # letters of one word are closer
_LEAST_CELLS = 3
_MOST_HEADS = 8  # lines of a header
_MOST_READ = 30  # rows below it, to know it by
_CLOSE = 1.7  # type sizes between the lines of a header, or of a first cell: another row begins with its own
_LOOSE = 2.5  # between those of a bold header, or of other cells
_FURTHEST = 4.0  # type sizes between rows of one table
_MOST_BETWEEN = 3  # lines between them, such as the name of a section
_MOST_OVERLEAF = 6  # the same, and the foot and the head of a page


def join_rows(rows: Sequence[Row]) -> list[Row]:
    """`is_row` for those with cells below or above cells; PDFium cuts some of them at a gap, and they are joined."""
    joined: list[list[Row]] = []
    for line, parts in _join_words(rows):
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


def _join_words(rows: Sequence[Row]) -> Iterator[Row]:
    """Lines that PDFium cuts between letters or words, as in some page headers, are whole."""
    above: Row | None = None
    for line, parts in rows:
        gap = line.left - above[0].right if above else math.inf
        if above and _is_level(above[0], line) and -_TIGHT * line.size < gap < WIDE_GAP * line.size:
            *before, last = above[1]
            middle = _joined(last, parts[0])
            above = _joined(above[0], line), [*before, middle, *parts[1:]]
        else:
            if above:
                yield above
            above = line, parts
    if above:
        yield above


def _joined(line: Line, other: Line) -> Line:
    space = " " * (other.left - line.right > _TIGHT * line.size)
    text = f"{line.text.rstrip()}{space}{other.text}"
    return replace(line, text=text, right=other.right, ends_bold=other.ends_bold)


def _is_level(line: Line, other: Line) -> bool:
    return abs(line.y - other.y) < 0.1 * line.size


def _is_beside(line: Line, other: Line) -> bool:
    return _is_level(line, other) and other.left - line.right > WIDE_GAP * line.size


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
    if not _is_header_block(header) or header[-1][0].y - below[0][0].y > _FURTHEST * below[0][0].size:
        return None
    width = len(below[0][1])
    body = [parts for _, parts in takewhile(lambda row: row[0].is_row and len(row[1]) == width, below)]
    if body and all(map(is_prose, zip(*body, strict=True))):
        return None
    if body:
        columns = zip(*(parts for parts in (*header, *body) if len(parts) == width), strict=True)
        table = _Table(
            [], [(min(part.left for part in column), max(part.right for part in column)) for column in columns]
        )
        cells = [[part.text.strip() for part in parts] for parts in body]
    elif _is_bold(header):
        table = _Table([], _grow(_columns_of(header), below))
        taken = table.take(below, min(part.y for parts in header for part in parts))
        cells = [table.join([parts for _, parts in below[:taken]])]
    else:
        return None
    table = replace(table, names=table.join(header, may_span=len(header) > 1))
    width = len(table.edges)
    is_whole = width >= _LEAST_CELLS and sum(map(bool, table.names)) >= width - 1 and all(map(all, cells))
    return (table, cells) if is_whole and is_header(table.names, cells) else None


def _is_header_block(rows: Sequence[Parts]) -> bool:
    """One line, or lines of one size below one another; in bold a cell may be beside the lines of another."""
    is_bold = _is_bold(rows)
    drops = [above[0].y - below[0].y for above, below in pairwise(rows)]
    if len(rows[0]) < 2 and not (is_bold and drops and drops[0] <= 0):
        return False
    reach = (_LOOSE if is_bold else _CLOSE) * rows[0][0].size
    return all(_is_alike(rows[0][0], parts[0]) for parts in rows) and all(
        (-reach if is_bold else 0) < drop < reach for drop in drops
    )


def _columns_of(header: Sequence[Parts]) -> list[tuple[float, float]]:
    """From left to right; what stands above one another is one column."""
    found: list[tuple[float, float]] = []
    for part in sorted((part for parts in header for part in parts), key=lambda part: part.left):
        if found and part.left < found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], part.right)
        else:
            found.append((part.left, part.right))
    return found


def _grow(edges: list[tuple[float, float]], below: Sequence[Row]) -> list[tuple[float, float]]:
    """The columns with their cells, which may be wider; as far as each part of the lines is in one."""
    for line, parts in below:
        wider = edges.copy()
        for part in parts:
            gaps = [max(left - part.right, part.left - right) for left, right in wider]
            if sum(gap < 0 for gap in gaps) > 1 or not _is_alike(below[0][0], line):
                return edges
            at = gaps.index(min(gaps))
            wider[at] = (min(wider[at][0], part.left), max(wider[at][1], part.right))
        edges = wider
    return edges


def _is_alike(line: Line, other: Line) -> bool:
    return abs(line.size - other.size) < 0.1 * line.size


def _is_bold(rows: Sequence[Parts]) -> bool:
    return all(part.bold for parts in rows for part in parts)

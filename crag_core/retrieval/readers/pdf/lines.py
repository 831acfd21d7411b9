"""The lines of a printed page by their positions: columns one after the other, lines joined into paragraphs. Pure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from crag_core.retrieval.readers.text import glue_lines, is_row, starts_item

# PDFium replaces a hyphen and the line break after it by U+FFFE.
BROKEN = "\ufffe"
_LEAST_ROWS = 3
_LEAST_WORDS = 3.5  # in a line of a column, on the average
_LEAST_PROSE = 0.3  # of the lines of a column begin with a small letter: cells of tables rarely do
_AMOUNT = re.compile(r"\d[.,]\d+\s*$")


@dataclass(frozen=True)
class Line:
    """One printed line. Lengths are in points; `y` is its baseline and grows upwards.

    `word` is the width of the first word; `is_row`: wide gaps divide it, as in a table.
    """

    text: str
    left: float
    right: float
    y: float
    word: float
    size: float
    bold: bool
    ends_bold: bool
    is_row: bool = False


def by_columns(rows: Sequence[tuple[Line, Sequence[Line]]]) -> list[Line]:
    """The lines of a page, each given with its parts between wide gaps; column after column where prose is drawn row by
    row, and as they are elsewhere, as in tables."""
    found: list[Line] = []
    at = 0
    while at < len(rows):
        columns: list[list[Line]] = [[] for _ in rows[at][1]]
        starts = [part.left for part in rows[at][1]]
        end = at
        while end < len(rows) and (places := _columns_of(rows[end][1], starts, rows[end - 1][0] if end > at else None)):
            for place, part in zip(places, rows[end][1], strict=True):
                columns[place].append(part)
            end += 1
        if len(columns) > 1 and all(map(is_prose, columns)):
            found += [part for column in columns for part in column]
        else:
            end = at + 1
            found.append(rows[at][0])
        at = end
    return found


def _columns_of(parts: Sequence[Line], starts: Sequence[float], above: Line | None) -> list[int]:
    """The column of each part of a row below `above`; none where a part is in no column, or the row apart."""
    size = parts[0].size
    drop = above.y - parts[0].y if above else size
    if not 0 < drop <= 3 * size:
        return []
    places = [min(range(len(starts)), key=lambda column: abs(starts[column] - part.left)) for part in parts]
    fits = (
        abs(starts[place] - part.left) <= 2 * size and part.right < (*starts, math.inf)[place + 1]
        for place, part in zip(places, parts, strict=True)
    )
    return places if all(fits) and len({*places}) == len(places) else []


def is_prose(lines: Sequence[Line]) -> bool:
    small = sum(line.text.lstrip()[:1].islower() for line in lines)
    words = sum(len(line.text.split()) for line in lines)
    return (
        len(lines) >= _LEAST_ROWS
        and small >= _LEAST_PROSE * len(lines)
        and words >= _LEAST_WORDS * len(lines)
        and not any(is_row(line.text) for line in lines)
    )


def find_spacing(pages: Sequence[Sequence[Line]]) -> float:
    """The usual line spacing of the whole document, as a multiple of the type size."""
    gaps = sorted(
        (line.y - below.y) / below.size
        for lines in pages
        for line, below in pairwise(lines)
        if line.size == below.size > 0 and line.y - below.y > 0.5
    )
    # The lower quartile, because rows of tables are further apart than lines of prose and may be more.
    return gaps[len(gaps) // 4] if gaps else 1.2


def flow_lines(lines: Sequence[Line], spacing: float) -> str:
    """Paragraphs in one line each with a blank line between; items and rows line by line. In doubt a break stays."""
    if not lines:
        return ""
    edges = _find_edges(lines, spacing)
    pieces, opens = [lines[0].text.strip()], True
    for line, below, edge in zip(lines, lines[1:], edges, strict=False):
        text, is_apart = below.text.strip(), _is_apart(line, below, spacing)
        opens = is_apart or not _goes_on(line, below, edge, spacing, opens)
        if opens:
            pieces.append(f"\n\n{text}" if is_apart else f"\n{text}")
        else:
            pieces[-1] = glue_lines(pieces[-1], text)
    return "".join(pieces)


def _find_edges(lines: Sequence[Line], spacing: float) -> list[float]:
    """For each line the right edge it could have filled.

    That is the longest line of its block (between two gaps or column changes), or where most lines with the same left
    margin end, if that is further right: a block of two short lines is not a paragraph.
    """
    edges: list[float] = []
    block = [lines[0]]
    for line, below in zip(lines, [*lines[1:], None], strict=True):
        if below is None or _is_apart(line, below, spacing):
            edges += [max(member.right for member in block)] * len(block)
            block = []
        if below is not None:
            block.append(below)
    rights = defaultdict(list)
    for line in lines:
        rights[round(line.left / 4)].append(line.right)
    usual = {margin: sorted(found)[int(len(found) * 0.85)] for margin, found in rights.items() if len(found) >= 5}
    return [max(edge, usual.get(round(line.left / 4), edge)) for line, edge in zip(lines, edges, strict=True)]


def _is_apart(line: Line, below: Line, spacing: float) -> bool:
    leading = spacing * below.size
    drop = line.y - below.y
    if line.text.endswith(BROKEN):
        return False
    if drop < -0.5 * leading:
        # Up again: the next column. A sentence runs on only when it plainly does.
        return not (below.text.lstrip()[:1].islower() and not line.text.rstrip().endswith((".", ":", "!", "?")))
    differs = abs(line.size - below.size) > 0.05 * max(line.size, below.size)
    heading = line.bold and line.ends_bold and not below.bold
    return differs or heading or drop > 1.22 * leading


def _goes_on(line: Line, below: Line, edge: float, spacing: float, opens: bool) -> bool:
    leading = spacing * below.size
    if line.text.endswith(BROKEN):
        return True
    if starts_item(below.text) or any(one.is_row or is_row(one.text) for one in (line, below)):
        return False
    if line.y - below.y < -0.5 * leading:
        return True
    ended = line.text.rstrip().endswith((".", ":", ";", "!", "?"))
    if ended and below.bold and not line.ends_bold:
        return False
    if _AMOUNT.search(line.text) and not below.text.lstrip()[:1].islower():
        return False
    shift = below.left - line.left
    if shift > 0.4 * leading and not (opens and starts_item(line.text)):
        return False
    if shift < -0.4 * leading and not opens:
        return False
    # The break was forced when the next line's first word would not have fitted.
    return line.right + below.word > edge - 0.5 * leading

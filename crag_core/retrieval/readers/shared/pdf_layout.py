"""Joins the lines of a printed page into paragraphs by their positions. Pure: uses no PDF library."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from crag_core.retrieval.readers.shared.markdown_text import glue_lines, is_row, starts_item

_AMOUNT = re.compile(r"\d[.,]\d+\s*$")


@dataclass(frozen=True)
class Line:
    """One printed line. Lengths are in points; `y` and `end_y` are its first and last baseline and grow upwards.

    They differ where PDFium joined two lines at a hyphenated word. `word` is the width of the first word.
    """

    text: str
    left: float
    right: float
    y: float
    end_y: float
    word: float
    size: float
    bold: bool
    ends_bold: bool


def find_spacing(pages: Sequence[Sequence[Line]]) -> float:
    """The usual line spacing of the whole document, as a multiple of the type size."""
    gaps = sorted(
        (line.end_y - below.y) / below.size
        for lines in pages
        for line, below in pairwise(lines)
        if line.size == below.size > 0 and line.end_y - below.y > 0.5
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
        text = below.text.strip()
        if _is_apart(line, below, spacing):
            pieces.append(f"\n\n{text}")
            opens = True
        elif _goes_on(line, below, edge, spacing, opens):
            pieces[-1] = glue_lines(pieces[-1], text)
            opens = False
        else:
            pieces.append(f"\n{text}")
            opens = True
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
    return [max(edge, usual.get(round(line.left / 4), 0.0)) for line, edge in zip(lines, edges, strict=True)]


def _is_apart(line: Line, below: Line, spacing: float) -> bool:
    leading = spacing * below.size
    drop = line.end_y - below.y
    if drop < -0.5 * leading:
        # Up again: the next column. A sentence runs on only when it plainly does.
        return not (below.text.lstrip()[:1].islower() and not line.text.rstrip().endswith((".", ":", "!", "?")))
    differs = abs(line.size - below.size) > 0.05 * max(line.size, below.size)
    heading = line.bold and line.ends_bold and not below.bold
    return differs or heading or drop > 1.22 * leading


def _goes_on(line: Line, below: Line, edge: float, spacing: float, opens: bool) -> bool:
    leading = spacing * below.size
    if starts_item(below.text) or is_row(line.text) or is_row(below.text):
        return False
    if line.end_y - below.y < -0.5 * leading:
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

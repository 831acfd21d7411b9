"""Lines of a printed page back into paragraphs, by where they stand on the page. Pure: sees no PDF library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from crag_core.retrieval.readers.prose import glue_lines, is_row, starts_item


@dataclass(frozen=True)
class Line:
    """One printed line. Lengths are in points; `y` is the baseline and grows upwards."""

    text: str
    left: float
    right: float
    y: float
    size: float
    bold: bool
    ends_bold: bool


def flow_lines(lines: Sequence[Line]) -> str:
    """Paragraphs one line each with a blank line between; items and rows line by line.

    In doubt a break stays: it costs little, while a table row glued to the next costs its meaning.
    """
    lines = [line for line in lines if line.text.strip()]
    if not lines:
        return ""
    leading = _find_leading(lines)
    edges = _find_edges(lines, leading)
    pieces, opens = [lines[0].text.strip()], True
    for line, below, edge in zip(lines, lines[1:], edges, strict=False):
        text = below.text.strip()
        if _is_apart(line, below, leading):
            pieces.append(f"\n\n{text}")
            opens = True
        elif _goes_on(line, below, edge, leading, opens):
            pieces[-1] = glue_lines(pieces[-1], text)
            opens = False
        else:
            pieces.append(f"\n{text}")
            opens = True
    return "".join(pieces)


def _find_leading(lines: Sequence[Line]) -> float:
    gaps = [line.y - below.y for line, below in zip(lines, lines[1:], strict=False) if line.size == below.size]
    return median([gap for gap in gaps if gap > 0.5] or [12.0])


def _find_edges(lines: Sequence[Line], leading: float) -> list[float]:
    """For each line the right edge of its block: the longest line between two gaps or column changes."""
    edges: list[float] = []
    block = [lines[0]]
    for line, below in zip(lines, [*lines[1:], None], strict=True):
        if below is None or _is_apart(line, below, leading):
            edges += [max(member.right for member in block)] * len(block)
            block = []
        if below is not None:
            block.append(below)
    return edges


def _is_apart(line: Line, below: Line, leading: float) -> bool:
    drop = line.y - below.y
    if drop < -0.5 * leading:
        # Up again: the next column. A sentence runs on only when it plainly does.
        return not (below.text.lstrip()[:1].islower() and not line.text.rstrip().endswith((".", ":", "!", "?")))
    differs = abs(line.size - below.size) > 0.05 * max(line.size, below.size)
    heading = line.bold and line.ends_bold and not below.bold
    return differs or heading or drop > 1.22 * leading


def _goes_on(line: Line, below: Line, edge: float, leading: float, opens: bool) -> bool:
    if starts_item(below.text) or is_row(line.text) or is_row(below.text):
        return False
    if line.y - below.y < -0.5 * leading:
        return True
    shift = below.left - line.left
    if shift > 0.4 * leading and not (opens and starts_item(line.text)):
        return False
    if shift < -0.4 * leading and not opens:
        return False
    # The break was forced when the next line's first word would not have fitted.
    words = below.text.split(maxsplit=1)
    first = (below.right - below.left) * len(words[0]) / max(len(below.text.strip()), 1)
    return line.right + first > edge - 0.5 * leading

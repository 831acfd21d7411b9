"""Tables within a text in the forms in which readers hand them on: as they stand, or every row with the heads of its
cells."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.tables import pair_cells
from crag_core.retrieval.readers.text import read_csv

LEAST_ROWS, LEAST_COLUMNS = 4, 3
"""Of a table in a text, its head counted in; fewer are a list, or prose with commas."""
LONGEST_HEAD = 40
MOSTLY = 0.5
"""A text is a CSV export where more than this share of its lines is tables of separated values."""
_RULE = re.compile(r"[\s|:-]*-[\s|:-]*")
_JOINED = ("; ", " | ", ", ")

Lines = Mapping[str, str]
"""What has become of a line."""


def draw_form(text: str, random: Random) -> tuple[str, Lines]:
    """`text` as it stands, with heads in every row, or, where it is a CSV export, as the application reads it."""
    if not any(find_tables(text)) or random.random() < 0.4:
        return text, {}
    return (is_export(text) and random.random() < 0.6 and as_read(text)) or carry_heads(text, random.choice(_JOINED))


def is_export(text: str) -> bool:
    """Whether most of it is separated values."""
    rows = sum(len(lines) for lines, _ in find_tables(text) if "|" not in lines[0])
    return rows > MOSTLY * len([line for line in text.split("\n") if line.strip()])


def carry_heads(text: str, joined: str = "; ") -> tuple[str, Lines]:
    """Every row of its tables as "head: cell; head: cell"; the row of the heads is left out."""
    became: dict[str, str] = {}
    gone: set[str] = set()
    for lines, cells in find_tables(text):
        heads = [cell or f"column {number}" for number, cell in enumerate(cells[0], 1)]
        gone.add(lines[0])
        for line, row in zip(lines[1:], cells[1:], strict=True):
            if _RULE.fullmatch(line):
                gone.add(line)
            else:
                became[line] = pair_cells(heads, row).replace("; ", joined)
    return "\n".join(became.get(line, line) for line in text.split("\n") if line not in gone), became


def find_tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """The lines and the cells of every run of lines with the same number of columns."""
    lines, at = text.split("\n"), 0
    while at < len(lines):
        best: list[list[str]] = []
        for sign in "|;\t,":
            rows = _run(lines, at, sign)
            if len(rows) > len(best):
                best = rows
        if len(best) >= LEAST_ROWS and all(len(cell) <= LONGEST_HEAD for cell in best[0]):
            yield lines[at : at + len(best)], best
            at += len(best)
        else:
            at += 1


def _run(lines: Sequence[str], at: int, sign: str) -> list[list[str]]:
    rows: list[list[str]] = []
    for line in lines[at:]:
        cells = _cells(line, sign)
        if len(cells) < LEAST_COLUMNS or (rows and len(cells) != len(rows[0])):
            break
        rows.append(cells)
    return rows


def _cells(line: str, sign: str) -> list[str]:
    if sign not in line:
        return []
    if sign == "|":
        return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
    return [" ".join(cell.split()) for cell in next(csv.reader([line], delimiter=sign, skipinitialspace=True), [])]


def as_read(text: str) -> tuple[str, Lines] | None:
    """As the application's reader of CSV hands it on; None where its lines cannot be told."""
    try:
        pages = read_csv(text.encode(), "")
    except DocumentRefused:
        return None
    shown = [line for line in pages[0].text.split("\n") if line]
    lines = [line for line in text.split("\n") if line.strip(" ,;\t|")]
    # One row, that of the heads, is gone: the first after which every row begins with the same name.
    if len(shown) != len(lines) - 1:
        return None
    head = next((n for n, (line, one) in enumerate(zip(lines, shown, strict=False)) if line.strip(" ,;\t|") != one), 0)
    return pages[0].text, dict(zip(lines[:head] + lines[head + 1 :], shown, strict=True))

"""Plain text, Markdown and CSV."""

from __future__ import annotations

import csv
import io
import re

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.shared.decoding import decode_text
from crag_core.retrieval.readers.shared.markdown_text import join_lines, normalise_text
from crag_core.retrieval.readers.shared.tables import pair_cells

_DELIMITERS = ",;\t|"
_FIGURE = re.compile(r"[-+]?[$€£]?\d[\d.,]*%?$")


def read_text(content: bytes, name: str) -> tuple[Page, ...]:
    """Markdown too: a single line break means a space there as well, and headings keep their marks."""
    return (Page(join_lines(normalise_text(decode_text(content)))),)


def read_csv(content: bytes, name: str) -> tuple[Page, ...]:
    """Every row becomes a line that carries its headers, so that no chunk holds bare figures."""
    text = normalise_text(decode_text(content))
    try:
        rows = [
            [" ".join(cell.split()) for cell in row]
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=_find_delimiter(text), skipinitialspace=True)
        ]
    except csv.Error as error:
        raise DocumentRefused(
            f"{name}: expected rows of comma-separated values, found {error}.",
            hint="Open it in a spreadsheet program and export it as CSV again, or rename it to .txt.",
        ) from error
    rows = [row for row in rows if any(row)]
    if not rows:
        return ()
    lines = []
    # Spreadsheets exported with a title row: one cell above the real header.
    while len(rows) > 1 and sum(map(bool, rows[0])) == 1 < sum(map(bool, rows[1])):
        lines.append(next(filter(None, rows.pop(0))))
    # A first row with a figure in it is no header.
    has_header = not any(_FIGURE.match(cell) for cell in rows[0])
    first = rows.pop(0) if has_header else [""] * len(rows[0])
    header = [cell or f"column {number}" for number, cell in enumerate(first, 1)]
    # A file of nothing but a header still says what it is about.
    lines += [pair_cells(header, row) for row in rows] if rows else ["; ".join(header)]
    return (Page("\n".join(lines)),)


def _find_delimiter(text: str) -> str:
    """The delimiter that cuts the first lines into the most columns of the same number, outside quotes."""
    lines = [re.sub(r'"[^"]*"', "", line) for line in text.splitlines()[:50] if line.strip()]

    def count_columns(delimiter: str) -> tuple[int, int]:
        counts = [line.count(delimiter) for line in lines]
        usual = max(set(counts), key=counts.count, default=0)
        return (counts.count(usual) if usual else 0, usual)

    return max(_DELIMITERS, key=count_columns)

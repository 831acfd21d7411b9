"""Plain text, Markdown and CSV."""

from __future__ import annotations

import csv
import io
import re

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.decoding import decode_text
from crag_core.retrieval.readers.markdown_text import join_lines, normalise_text
from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.tables import show_markdown_tables, show_rows

_DELIMITERS = ",;\t|"


def read_text(content: bytes, name: str) -> tuple[Page, ...]:
    return (Page(join_lines(normalise_text(decode_text(content)))),)


def read_markdown(content: bytes, name: str) -> tuple[Page, ...]:
    """A single line break means a space there as well, headings keep their marks, and rows of tables get headers."""
    return (Page(join_lines(show_markdown_tables(normalise_text(decode_text(content))))),)


def read_csv(content: bytes, name: str) -> tuple[Page, ...]:
    """Every row becomes a line that carries its headers, so that no chunk holds bare figures."""
    text = normalise_text(decode_text(content))
    try:
        rows = [*csv.reader(io.StringIO(text, newline=""), delimiter=_find_delimiter(text), skipinitialspace=True)]
    except csv.Error as error:
        raise DocumentRefused(
            f"{name}: expected rows of comma-separated values, found {error}.",
            hint="Open it in a spreadsheet program and export it as CSV again, or rename it to .txt.",
        ) from error
    return (Page(show_rows(rows)),)


def _find_delimiter(text: str) -> str:
    """The delimiter that cuts the first lines into the most columns of the same number, outside quotes."""
    lines = [re.sub(r'"[^"]*"', "", line) for line in text.splitlines()[:50] if line.strip()]

    def count_columns(delimiter: str) -> tuple[int, int]:
        counts = [line.count(delimiter) for line in lines]
        usual = max(set(counts), key=counts.count, default=0)
        return (counts.count(usual) if usual else 0, usual)

    return max(_DELIMITERS, key=count_columns)

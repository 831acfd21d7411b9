"""Builds paragraphs, list items and tables of an RTF document from its text in file order."""

from __future__ import annotations

import re

from crag_core.retrieval.readers.shared.markdown_text import join_blocks
from crag_core.retrieval.readers.shared.table_text import table_to_text

_BULLET = re.compile(r"\A[\u00b7\u2022\u25aa\u25cf\u25cb\u25e6\u00a7\uf0b7\uf0a7\u2013o-]\t\s*")
_NUMBER = re.compile(r"\A\(?(\d{1,3})[.)]\t\s*")


class Layout:
    """Takes text and the ends of paragraphs, cells and rows; `finish` returns the document."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._rows: list[list[str]] = []
        self._cells: list[str] = []
        self._cell: list[str] = []
        self._letters: list[str] = []
        self._level = 0
        self._merges: list[str] = []
        self._merge = ""

    def add(self, text: str, level: int = 0) -> None:
        """`level` is that of a heading, 0 for all other text."""
        self._letters.append(text)
        if text.strip():
            self._level = level

    def end_paragraph(self, is_in_table: bool) -> None:
        text, level = self._take_text(), self._level
        self._level = 0
        if is_in_table:
            self._cell.append(text)
            return
        self._end_table()
        item = _NUMBER.sub(r"\1. ", _BULLET.sub("- ", text))
        self._blocks.append(f"{'#' * level} {' '.join(text.split())}" if level and text else item)

    def take_table(self, word: str, is_in_table: bool) -> None:
        match word:
            case "cell":
                self._end_cell()
            case "row":
                self._end_row()
            case "trowd":
                if not is_in_table and any(self._letters):
                    self.end_paragraph(False)
                self._merges, self._merge = [], ""
            case "cellx":
                self._merges.append(self._merge)
                self._merge = ""
            # The cell whose edge comes next shows what the one on its left or above it shows.
            case "clmrg" | "clvmrg":
                self._merge = word

    def finish(self) -> str:
        # A file that was cut short ends inside a paragraph or a row.
        if any(self._letters) or self._cell:
            if self._cells or self._cell:
                self._end_cell()
            else:
                self.end_paragraph(False)
        self._end_table()
        return join_blocks(self._blocks)

    def _end_cell(self) -> None:
        self._cells.append(" ".join(filter(None, (*self._cell, self._take_text()))))
        self._cell = []

    def _end_row(self) -> None:
        for at, towards in enumerate(self._merges[: len(self._cells)]):
            if towards == "clmrg" and at:
                self._cells[at] = self._cells[at - 1]
            elif towards == "clvmrg" and self._rows and at < len(self._rows[-1]):
                self._cells[at] = self._rows[-1][at]
        self._rows.append(self._cells)
        self._cells = []

    def _end_table(self) -> None:
        if self._cells:
            self._end_row()
        if self._rows:
            self._blocks.append(table_to_text(self._rows))
            self._rows = []

    def _take_text(self) -> str:
        # Letters beyond 16 bits come as two halves.
        text = "".join(self._letters).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
        self._letters = []
        return text.strip()

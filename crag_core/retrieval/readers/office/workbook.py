"""Excel workbooks: a page of text for each visible sheet.

Hidden sheets are left out: whoever opens the file must be able to find what an answer cites.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from crag_core.retrieval.readers.limits import MAX_PARTS, CellCount, check_count
from crag_core.retrieval.readers.office.number_formats import format_value
from crag_core.retrieval.readers.office.sheet_grid import EMPTY, Cell, sheet_to_text
from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.shared.markdown_text import normalise_text
from crag_core.retrieval.readers.shared.zip_packages import Package

# Of a sheet in Excel; a file may claim more.
_MAX_ROWS = 1_048_576
# No "<" inside a tag, or a file of nothing but opened ones takes hours.
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\b[^<>]*?\bref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
_UNCALCULATED = re.compile(
    rb'<c\b[^<>]*?\br="([A-Z]{1,3})(\d{1,7})"[^<>]*>\s*<f\b(?:[^<>]*/>|[^<>]*>([^<]*)</f>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>'
)


def read_xlsx(content: bytes, name: str) -> tuple[Page, ...]:
    package = Package(content, name, "an Excel workbook (.xlsx)")
    package.check_xml()
    import openpyxl

    with package.checked():
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
        check_count(name, len(sheets), MAX_PARTS, "sheets")
        count = CellCount(name)
        return tuple(Page(_show_sheet(sheet, package, count)) for sheet in sheets)


def _show_sheet(sheet: Any, package: Package, count: CellCount) -> str:
    # The size that a file states for its sheets is often wrong, and openpyxl would truncate them.
    sheet.reset_dimensions()
    # In read-only mode openpyxl gives neither merged cells nor formulas without a value.
    source = package.read(sheet._worksheet_path)
    merged = [_Merged(match) for match in _MERGED.finditer(source)]
    formulas = {(int(row), _column(letters)): code for letters, row, code in _UNCALCULATED.findall(source)}
    del source
    text = sheet_to_text(_fill_merged(_read_rows(sheet, formulas, count), merged, count))
    return normalise_text(f"# {sheet.title}\n\n{text}") if text else ""


def _read_rows(sheet: Any, formulas: dict[tuple[int, int], bytes], count: CellCount) -> Iterator[list[Cell]]:
    for number, row in enumerate(sheet.iter_rows(), 1):
        check_count(count.name, number, _MAX_ROWS, "rows on a sheet")
        cells = [_read_cell(cell) for cell in row]
        for at, cell in enumerate(cells, 1):
            if cell is EMPTY and (number, at) in formulas:
                cells[at - 1] = _show_formula(formulas[number, at])
        count.add(len(cells) + 1, sum(cell is not EMPTY for cell in cells))
        yield cells


def _read_cell(cell: Any) -> Cell:
    value = cell.value
    if value is None:
        return EMPTY
    shown = " ".join(format_value(value, cell.number_format).split())
    return Cell(shown, isinstance(value, str)) if shown else EMPTY


def _show_formula(code: bytes) -> Cell:
    """Files from programs other than spreadsheets hold formulas that were never calculated."""
    written = html.unescape(code.decode("utf-8", "replace")).strip()
    return Cell(f"={written}" if written else "(not calculated)", False)


class _Merged:
    """A range of merged cells, and what it shows, known after its first row."""

    def __init__(self, match: re.Match[bytes]) -> None:
        self.top, self.bottom = int(match[2]), int(match[4])
        self.left, self.right = _column(match[1]), _column(match[3])
        self.shown = EMPTY


def _fill_merged(rows: Iterator[list[Cell]], merged: list[_Merged], count: CellCount) -> Iterator[Sequence[Cell]]:
    """Every cell of a merged range gets its text, so that rows and headers keep it."""
    waiting = sorted(merged, key=lambda one: one.top, reverse=True)
    open_now: list[_Merged] = []
    for number, row in enumerate(rows, 1):
        while waiting and waiting[-1].top <= number:
            one = waiting.pop()
            one.shown = row[one.left - 1] if one.top == number and one.left <= len(row) else EMPTY
            if one.shown is not EMPTY:
                open_now.append(one)
        for one in open_now:
            row.extend([EMPTY] * (one.right - len(row)))
            row[one.left - 1 : one.right] = [one.shown] * (one.right - one.left + 1)
        if open_now:
            count.add(sum(one.right - one.left for one in open_now), 0)
            open_now = [one for one in open_now if one.bottom > number]
        yield row


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number

"""Excel workbooks: a page of text for each visible sheet, values as a spreadsheet program displays them.

Hidden sheets are left out: whoever opens the file must be able to find what an answer cites.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from crag_core.retrieval.readers.page import MAX_PARTS, CellCount, Page, check_count
from crag_core.retrieval.readers.shared.markdown_text import normalise_text
from crag_core.retrieval.readers.shared.tables import EMPTY, Cell, sheet_to_text
from crag_core.retrieval.readers.shared.zip_packages import Package

# Of a sheet in Excel; a file may claim more.
_MAX_ROWS = 1_048_576
# No "<" inside a tag, or a file of nothing but opened ones takes hours.
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\b[^<>]*?\bref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
_UNCALCULATED = re.compile(
    rb'<c\b[^<>]*?\br="([A-Z]{1,3})(\d{1,7})"[^<>]*>\s*<f\b(?:[^<>]*/>|[^<>]*>([^<]*)</f>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>'
)
_PIECE = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^-\]]*)[^\]]*\]|\[[^\]]*\]|_.|\*.|'
    r"(?P<digits>[0#?][0#?,.]*|\.[0#?]+)|(?P<other>.)"
)
# Beyond this a float has no exact places, and spreadsheets show exponents.
_LARGEST = 1e15


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


def format_value(value: object, number_format: str = "General") -> str:
    """`number_format` is a format code of Excel; rare ones show a plain number.

    Dates are written the ISO way in any format, since 03/04/21 means two days.
    """
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case datetime():
            return _show_date(value, number_format) if value.time() == time() else _show_moment(value)
        case date():
            return value.isoformat()
        case time():
            return value.isoformat("auto" if value.second else "minutes")
        case timedelta():
            return _show_duration(value)
        case int() | float():
            return format_number(value, number_format)
    return str(value)


def format_number(value: int | float, number_format: str) -> str:
    code, value = _choose_section(number_format, value)
    general = _show_general(value)
    if not abs(value) < _LARGEST or code.strip().lower() in ("general", "@", "") or re.search(r"[eE][+-]|\?/", code):
        return general
    before, after, digits = "", "", ""
    for piece in _PIECE.finditer(code):
        literal = piece["quoted"] or piece["escaped"] or piece["currency"] or piece["other"] or ""
        if piece["digits"] and digits:
            return general  # digits in groups, as of a telephone number
        digits = digits or piece["digits"] or ""
        before, after = (before, after + literal) if digits else (before + literal, after)
    if not digits:
        return (before + after).strip()
    shown = _show_digits(value * (100 if "%" in before + after else 1), digits)
    return f"{'-' if value < 0 else ''}{before}{shown}{after}".strip()


def _choose_section(number_format: str, value: int | float) -> tuple[str, int | float]:
    """Formats have sections for positive numbers, negative ones (without their sign) and zero."""
    sections = re.split(r';(?=(?:[^"]*"[^"]*")*[^"]*$)', number_format)
    if value < 0 and len(sections) > 1:
        return sections[1], -value
    return (sections[2] if value == 0 and len(sections) > 2 else sections[0]), value


def _show_digits(value: int | float, digits: str) -> str:
    whole, _, places = digits.rstrip(",").partition(".")
    scaled = Decimal(str(value)).copy_abs() / 1000 ** (len(digits) - len(digits.rstrip(",")))
    rounded = scaled.quantize(Decimal(1).scaleb(-len(places)), ROUND_HALF_UP)
    shown = f"{rounded:,f}" if "," in whole else f"{rounded:f}"
    left, _, right = shown.partition(".")
    # "#" is a digit that is shown only when needed, "0" one that always is.
    needed = len(places.rstrip("#?"))
    right = right[:needed] + right[needed:].rstrip("0")
    left = left.zfill(whole.count("0"))
    return f"{left}.{right}" if right else left


def _show_general(value: int | float) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
        value = int(value)
    # 15 digits, as in spreadsheets: 0.1 + 0.2 is 0.3.
    return str(value) if isinstance(value, int) else f"{value:.15g}"


def _show_date(value: datetime, number_format: str) -> str:
    code = re.sub(r'"[^"]*"|\\.|\[[^\]]*\]', "", number_format.lower())
    if "d" in code or "y" not in code:
        return value.date().isoformat()
    return f"{value:%b %Y}" if "m" in code else f"{value:%Y}"


def _show_moment(value: datetime) -> str:
    if value.microsecond:
        # Times are fractions of a day, and come out a few microseconds off.
        value = (value + timedelta(microseconds=500_000)).replace(microsecond=0)
    return value.isoformat(" ", "seconds" if value.second else "minutes")


def _show_duration(value: timedelta) -> str:
    seconds = round(value.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    tail = f":{seconds % 60:02}" if seconds % 60 else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}{tail}"

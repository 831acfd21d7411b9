"""Excel workbooks (Open XML): the cells that people see, as they see them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from crag_core.retrieval.readers.packages import Package, attribute, relations
from crag_core.retrieval.readers.page import MAX_CELLS, MAX_PARTS, Page, check_count, name_lost
from crag_core.retrieval.readers.tables import show_rows
from crag_core.retrieval.readers.text import raise_figures

Cells = dict[int, dict[int, str]]
"""Texts by the numbers of row and column, from 1."""

# Formats that a workbook does not write out, by their numbers.
_BUILT_IN = dict(enumerate(["", "0", "0.00", "#,##0", "#,##0.00"]))
_BUILT_IN |= {9: "0%", 10: "0.00%", 37: "#,##0", 38: "#,##0", 39: "#,##0.00", 40: "#,##0.00"}
_BUILT_IN |= {**dict.fromkeys((*range(14, 23), 45, 47), "d"), 46: "[h]:mm:ss"}
_NUMBER_FORMAT = re.compile(r"([0#?][0#?,]*?)(?:\.([0#?]+))?(,*)(?![0#?,])")
_NO_DIGITS = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')
_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
EPOCH = datetime(1899, 12, 30)
_LARGEST = 10**15
_OFF = ("0", "false")
_MOST_MERGED = 10_000


def read_workbook(package: Package) -> tuple[Page, ...]:
    """A page for each sheet with its name, without hidden sheets, rows and columns: whoever opens the file must be able
    to find what an answer cites."""
    book = package.parse("xl/workbook.xml")
    targets = relations(package, "xl/workbook.xml")
    sheets = [*book.iter("{*}sheet")]
    check_count(package.name, len(sheets), MAX_PARTS, "sheets")
    reader = _Reader(package, book)
    pages, left_out = [], []
    for sheet in sheets:
        name, target = sheet.get("name", ""), targets.get(attribute(sheet, "id"), "")
        if sheet.get("state", "visible") != "visible":
            left_out.append(f"hidden sheet {name}")
        elif target in package.names:
            text, lost = reader.read(package.parse(target))
            parts = sorted({*relations(package, target).values()})
            beside = package.roots(*(part for part in parts if part.endswith(".xml")))
            boxes = [_text(line) for part in beside for box in part.iter("{*}txBody") for line in box.iter("{*}p")]
            lost["comment"] = sum(1 for part in beside for _ in part.iter("{*}comment"))
            left_out += name_lost(lost, f" on sheet {name}")
            text = "\n\n".join(filter(None, [text, *boxes]))
            pages.append(Page(f"# {name}\n\n{text}" if text else ""))
    return (*pages, Page("", None, ", ".join(left_out)))


class _Reader:
    def __init__(self, package: Package, book: Any) -> None:
        self._name = package.name
        self._count = 0
        self._formats: list[str] = []
        self._crossed_out: set[str] = set()
        is_1904 = any(one.get("date1904") in ("1", "true") for one in book.iter("{*}workbookPr"))
        self._epoch = datetime(1904, 1, 1) if is_1904 else EPOCH
        shared = package.roots("xl/sharedStrings.xml")
        self._texts = [_text(one) for root in shared for one in root.iterchildren("{*}si")]
        for styles in package.roots("xl/styles.xml"):
            own = {one.get("numFmtId"): one.get("formatCode", "") for one in styles.iter("{*}numFmt")}
            used = [one for group in styles.iter("{*}cellXfs") for one in group.iter("{*}xf")]
            codes = [one.get("numFmtId", "0") for one in used]
            self._formats = [own.get(one) or _BUILT_IN.get(_number(one), "") for one in codes]
            strikes = [font.find("{*}strike") for font in styles.iterfind("{*}fonts/{*}font")]
            struck = {str(at) for at, one in enumerate(strikes) if one is not None and one.get("val") not in _OFF}
            self._crossed_out = {str(at) for at, one in enumerate(used) if one.get("fontId") in struck}

    def read(self, root: Any) -> tuple[str, Counter[str]]:
        """The text of a sheet, and how much of what it lacks."""
        cells: Cells = {}
        lost = Counter[str]()
        hidden_rows: set[int] = set()
        for at, row in enumerate(root.iter("{*}row"), 1):
            number = _number(row.get("r", str(at)))
            if row.get("hidden") in ("1", "true"):
                hidden_rows.add(number)
            for column, cell in enumerate(row.iterchildren("{*}c"), 1):
                place = _column(cell.get("r", "")) or column
                shown = self._show(cell)
                is_crossed_out = bool(shown) and cell.get("s") in self._crossed_out
                lost["formula result"] += _is_uncalculated(cell)
                lost["crossed-out cell"] += is_crossed_out
                cells.setdefault(number, {})[place] = "" if is_crossed_out else shown
                self._count += 1
            check_count(self._name, self._count, MAX_CELLS, "cells")
        for merged in root.iter("{*}mergeCell"):
            _fill_merged(cells, merged.get("ref", ""))
        columns = [one for one in root.iter("{*}col") if one.get("hidden") in ("1", "true")]
        ranges = [(_number(one.get("min", "1")), _number(one.get("max", "1"))) for one in columns]
        hidden_columns = {
            place for row in cells.values() for place in row if any(first <= place <= last for first, last in ranges)
        }
        lost["hidden row"], lost["hidden column"] = len(hidden_rows), len(hidden_columns)
        return show_rows(_list_rows(cells, hidden_rows, hidden_columns)), lost

    def _show(self, cell: Any) -> str:
        kind, value = cell.get("t", "n"), cell.findtext("{*}v") or ""
        if kind == "inlineStr":
            return "".join(_text(one) for one in cell.iterchildren("{*}is"))
        if not value:
            formula = cell.findtext("{*}f")
            return "" if not _is_uncalculated(cell) else f"={formula}" if formula else "(not calculated)"
        if kind == "s":
            return self._texts[int(value)]
        if kind == "b":
            return "true" if value == "1" else "false"
        if kind != "n":
            return str(value)
        style = _number(cell.get("s", "0"))
        return show_value(value, self._formats[style] if style < len(self._formats) else "", self._epoch)


def show_value(written: str, code: str, epoch: datetime = EPOCH) -> str:
    """A number as its format shows it, days the ISO way, counted from `epoch`."""
    return _show_date(written, code, epoch) or format_number(written, code) or _plain(written)


def _show_date(written: str, code: str, epoch: datetime) -> str:
    """In any format the ISO way, since 03/04/21 means two days; "" where the format is none of a time."""
    is_elapsed = bool(_ELAPSED.search(code))
    if not is_elapsed and not re.search("[ymdhsYMDHS]", _NO_DIGITS.sub("", code)):
        return ""
    try:
        day = float(written)
        if is_elapsed:
            seconds = abs(round(day * 86400))
            return f"{'-' * (day < 0)}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        is_early = 0 < day < 60 and epoch == EPOCH  # Excel counts a 29 February 1900
        shown = (epoch + timedelta(days=is_early, seconds=round(day * 86400))).isoformat(" ")
    except (ValueError, OverflowError):
        return ""
    return shown[11:] if 0 <= day < 1 else shown.removesuffix(" 00:00:00")


def _is_uncalculated(cell: Any) -> bool:
    """A text may be empty and is a result all the same."""
    return cell.find("{*}f") is not None and cell.get("t") != "str" and not cell.findtext("{*}v")


def _list_rows(cells: Cells, hidden_rows: set[int], hidden_columns: set[int]) -> Iterator[list[str]]:
    """An empty row or column stands for any number of them; hidden ones leave no gap."""
    places: dict[int, int] = {}
    width = 0
    for column, is_apart in _list_shown({column for row in cells.values() for column in row}, hidden_columns):
        width += 1 + is_apart
        places[column] = width - 1
    for number, is_apart in _list_shown(cells, hidden_rows):
        if is_apart:
            yield []
        shown = [""] * width
        for column, text in cells[number].items():
            if column in places:
                shown[places[column]] = text
        yield shown


def _list_shown(numbers: Iterable[int], hidden: set[int]) -> Iterator[tuple[int, bool]]:
    """Those that are not hidden, in order, and whether an empty one lies between each and the one before it."""
    gone, last = sorted(hidden), 0
    for number in sorted({*numbers} - hidden):
        place = number - bisect_left(gone, number)
        yield number, 0 < last < place - 1
        last = place


def _fill_merged(cells: Cells, ref: str) -> None:
    found = re.fullmatch(r"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})", ref)
    if not found:
        return
    left, right, top, bottom = _column(found[1]), _column(found[3]), int(found[2]), int(found[4])
    if (right - left + 1) * (bottom - top + 1) <= _MOST_MERGED:
        text = cells.get(top, {}).get(left, "")
        for number in range(top, bottom + 1):
            if number in cells:
                cells[number] |= dict.fromkeys(range(left, right + 1), text)


def _text(element: Any) -> str:
    """Without the pronunciation that Japanese cells have beside their text."""
    said = ""
    for piece in element.iter("{*}t"):
        holder, text = piece.getparent(), piece.text or ""
        if not holder.tag.endswith("}rPh"):
            is_raised = holder.find("{*}rPr/{*}vertAlign[@val='superscript']") is not None
            said += raise_figures(said, text) if is_raised else text
    return said


def _number(written: str) -> int:
    return int(written) if written.isdecimal() else 0


def _column(place: str) -> int:
    number = 0
    for letter in re.sub(r"\d+", "", place):
        number = number * 26 + ord(letter) - 64
    return number


def _plain(written: str) -> str:
    """Without the last digits of a binary fraction, and exponents where there are few zeros."""
    try:
        return f"{Decimal(f'{float(written):.15g}'):f}"
    except (ArithmeticError, ValueError):
        return written


def format_number(written: str, code: str) -> str:
    """A number by a format code of Excel, " " where it shows nothing; "" where the code has dates, exponents, fractions
    or conditions, or is none."""
    try:
        value = Decimal(written)
    except ArithmeticError:
        return ""
    if re.search(r"\[[<>=]", code):
        return ""
    sections = re.split(r';(?=(?:[^"]*"[^"]*")*[^"]*$)', code)
    if value < 0 and len(sections) > 1:
        code, value = sections[1], -value
    else:
        code = sections[2] if value == 0 and len(sections) > 2 else sections[0]
    if code in ("", "General"):
        return " " if not code and len(sections) > 1 else ""
    # Currency stands in brackets with a language; colours do too; "_" and "*" only make room.
    code = re.sub(r"\[\$([^-\]]*)[^\]]*\]", r'"\1"', code)
    code = re.sub(r"\[[^\]]*\]|_.|\*.", "", code)
    # Many languages set thousands apart by a space.
    code = re.sub(r"(?<=[0#?])\\?[ \u00a0\u202f](?=[0#?])", ",", code)
    code = code.replace("General", f'"{_plain(str(abs(value)))}"')
    literals: list[str] = []

    def keep(found: re.Match[str]) -> str:
        literals.append(found[1] if found[1] is not None else found[2])
        return chr(0xE000 + len(literals) - 1)

    code = re.sub(r'"([^"]*)"|\\(.)', keep, code)
    groups = _NUMBER_FORMAT.findall(code)
    if len(groups) > 1 or not abs(value) < _LARGEST:
        return ""
    if re.search(r"[ymdhsYMDHSE/@]" if groups else r"[A-Za-z/@]", code):
        return ""
    if groups:
        shown = _show_digits(value, "%" in code, *groups[0])
        code = _NUMBER_FORMAT.sub(lambda _: shown, code)
    text = ("-" if value < 0 else "") + code
    return re.sub("[\ue000-\ue0ff]", lambda found: literals[ord(found[0]) - 0xE000], text).strip()


def _show_digits(value: Decimal, is_share: bool, whole: str, places: str, thousands: str) -> str:
    scaled = abs(value) * (100 if is_share else 1) / 1000 ** len(thousands)
    rounded = scaled.quantize(Decimal(1).scaleb(-len(places)), ROUND_HALF_UP)
    left, _, right = (f"{rounded:,f}" if "," in whole else f"{rounded:f}").partition(".")
    # "#" is a digit that is shown only when needed, "0" one that always is.
    needed = len(places.rstrip("#?"))
    right = right[:needed] + right[needed:].rstrip("0")
    return left.zfill(whole.count("0")) + (f".{right}" if right else "")

"""Office and OpenDocument files before they become Markdown: hidden parts leave, spanned cells are filled, and what the
library does not read (headers, charts, formats of numbers) is put where it reads it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from copy import deepcopy
from decimal import ROUND_HALF_UP, Decimal
from posixpath import normpath
from typing import Any

from crag_core.retrieval.readers.html import fill_spans
from crag_core.retrieval.readers.packages import Package, attribute, local
from crag_core.retrieval.readers.page import MAX_CELLS, MAX_PARTS, check_count

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
Prepared = tuple[dict[str, Any], list[str]]
"""The root elements that changed, by the file they are of, and what was left out, in words."""


def _remove(element: Any) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _text(element: Any) -> str:
    return " ".join("".join(piece.text or "" for piece in element.iter("{*}t")).split())


# --- Word -------------------------------------------------------------------------------------------------------------


def prepare_word(package: Package) -> Prepared:
    root = package.parse("word/document.xml")
    for mark in [*root.iter(f"{W}vanish")]:
        run = mark.getparent().getparent()
        if local(run) == "r" and mark.get(f"{W}val", "true") not in ("0", "false"):
            _remove(run)
    # Bold letters inside a word would cut it.
    for looks in [*root.iter(f"{W}rPr")]:
        _remove(looks)
    for table in root.iter(f"{W}tbl"):
        _fill_word_table(table)
    body = root.find(f"{W}body")
    if body is not None:
        _append_margins(package, root, body)
    charts = sum(1 for _ in root.iter("{*}chart")) + sum(1 for _ in root.iter("{*}relIds"))
    return {"word/document.xml": root}, [f"{charts} chart{'s' * (charts > 1)} or diagrams"] if charts else []


def _fill_word_table(table: Any) -> None:
    above: list[Any] = []
    for row in table.iterchildren(f"{W}tr"):
        places: list[Any] = []
        for cell in row.iterchildren(f"{W}tc"):
            merge, span = cell.find(f"{W}tcPr/{W}vMerge"), cell.find(f"{W}tcPr/{W}gridSpan")
            wide = int(span.get(f"{W}val", "1")) if span is not None else 1
            if merge is not None and merge.get(f"{W}val") != "restart" and len(places) < len(above):
                origin = above[len(places)]
                for child in [*cell]:
                    cell.remove(child)
                cell.extend(deepcopy(child) for child in origin if local(child) != "tcPr")
            for mark in (merge, span):
                if mark is not None:
                    _remove(mark)
            copies = [deepcopy(cell) for _ in range(min(wide, 100) - 1)]
            for copy in reversed(copies):
                cell.addnext(copy)
            places += [cell, *copies]
        above = places


def _append_margins(package: Package, root: Any, body: Any) -> None:
    """Headers and footers with letters that stand nowhere else, once each, at the end."""
    said, end = _text(root), body.find(f"{W}sectPr")
    related = _relations(package, "word/document.xml")
    used = dict.fromkeys(
        related.get(attribute(one, "id"), "") for one in root.iter(f"{W}headerReference", f"{W}footerReference")
    )
    for part in used:
        for paragraph in package.parse(part).iter(f"{W}p") if part in package.names else ():
            shown = _text(paragraph)
            if (
                re.search(r"[^\W\d_]{2}", shown)
                and shown not in said
                and not re.fullmatch(r"\w+ \d+( \w+ \d+)?", shown)
            ):
                said += f" {shown}"
                made = root.makeelement(f"{W}p")
                piece = made.makeelement(f"{W}t")
                piece.text = shown
                run = made.makeelement(f"{W}r")
                run.append(piece)
                made.append(run)
                body.append(made) if end is None else end.addprevious(made)


# --- PowerPoint -------------------------------------------------------------------------------------------------------

_FURNITURE = ("dt", "ftr", "sldNum", "hdr")


def prepare_slides(package: Package) -> Prepared:
    related = _relations(package, "ppt/presentation.xml")
    shown_in_order = package.parse("ppt/presentation.xml").iter("{*}sldId")
    slides = [
        related.get(next((v for k, v in one.attrib.items() if k.startswith(R)), ""), "") for one in shown_in_order
    ]
    check_count(package.name, len(slides), MAX_PARTS, "slides")
    changed = {}
    for part in slides:
        root = changed[part] = package.parse(part)
        for mark in [*root.iter("{*}ph")]:
            if mark.get("type") in _FURNITURE:
                shape = next((one for one in mark.iterancestors() if local(one) == "sp"), None)
                if shape is not None:
                    _remove(shape)
        for looks in root.iter(f"{A}rPr"):
            for name in ("b", "i", "u", "strike"):
                looks.attrib.pop(name, None)
        for table in root.iter(f"{A}tbl"):
            _fill_slide_table(table)
        related = _relations(package, part)
        for drawing in [*root.iter("{*}chart", "{*}relIds")]:
            target = related.get(attribute(drawing, "dm") or attribute(drawing, "id"), "")
            if target in package.names:
                shown = package.parse(target)
                rows = _chart_rows(shown) if local(drawing) == "chart" else _diagram_rows(shown)
                _put_table(drawing.getparent(), rows)
    return changed, []


def _relations(package: Package, part: str) -> dict[str, str]:
    folder, _, file = part.rpartition("/")
    place = f"{folder}/_rels/{file}.rels"
    if place not in package.names:
        return {}
    targets = {one.get("Id", ""): one.get("Target", "") for one in package.parse(place)}
    return {
        name: target.lstrip("/") if target.startswith("/") else normpath(f"{folder}/{target}")
        for name, target in targets.items()
    }


def _fill_slide_table(table: Any) -> None:
    rows = [[*row.iterchildren(f"{A}tc")] for row in table.iterchildren(f"{A}tr")]
    for top, row in enumerate(rows):
        for left, cell in enumerate(row):
            origin = row[left - 1] if cell.get("hMerge") and left else None
            if cell.get("vMerge") and top and left < len(rows[top - 1]):
                origin = rows[top - 1][left]
            if origin is not None:
                for child in [*cell]:
                    cell.remove(child)
                cell.extend(deepcopy(child) for child in origin)
    for cell in table.iter(f"{A}tc"):
        for name in ("hMerge", "vMerge", "gridSpan", "rowSpan"):
            cell.attrib.pop(name, None)


def _chart_rows(chart: Any) -> Iterator[list[str]]:
    """A row for each category, with the values of the series."""
    series = [*chart.iter("{*}ser")]
    columns = [_points(one, "cat", "xVal") for one in series[:1]] + [_points(one, "val", "yVal") for one in series]
    title = " ".join(_text(one) for one in [*chart.iter("{*}title")][:1])
    yield [
        title or "category",
        *(" ".join(_points(one, "tx").values()) or f"series {n}" for n, one in enumerate(series, 1)),
    ]
    for place in sorted({place for column in columns for place in column}):
        yield [column.get(place, "") for column in columns]


def _points(series: Any, *tags: str) -> dict[int, str]:
    points = (point for tag in tags for part in series.iterchildren(f"{{*}}{tag}") for point in part.iter("{*}pt"))
    return {int(point.get("idx", 0)): point.findtext("{*}v") or "" for point in points}


def _diagram_rows(drawing: Any) -> Iterator[list[str]]:
    for point in drawing.iter("{*}pt"):
        yield from ([_text(paragraph)] for paragraph in point.iter(f"{A}p") if _text(paragraph))


def _put_table(data: Any, rows: Iterator[list[str]]) -> None:
    """In place of what a frame holds."""
    table = data.makeelement(f"{A}tbl")
    table.append(data.makeelement(f"{A}tblPr"))
    table.append(data.makeelement(f"{A}tblGrid"))
    for row in rows:
        line = data.makeelement(f"{A}tr", h="1")
        for text in row:
            cell = line.makeelement(f"{A}tc")
            body = cell.makeelement(f"{A}txBody")
            run, piece = (body.makeelement(f"{A}{tag}") for tag in ("r", "t"))
            paragraph = body.makeelement(f"{A}p")
            piece.text = text
            run.append(piece)
            paragraph.append(run)
            body.append(paragraph)
            cell.append(body)
            line.append(cell)
        table.append(line)
    for child in [*data]:
        data.remove(child)
    data.set("uri", "http://schemas.openxmlformats.org/drawingml/2006/table")
    data.append(table)


# --- Excel ------------------------------------------------------------------------------------------------------------

_BUILT_IN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    37: "#,##0",
    38: "#,##0",
    39: "#,##0.00",
    40: "#,##0.00",
}
_NUMBER_FORMAT = re.compile(r"([0#?][0#?,]*?)(?:\.([0#?]+))?(,*)(?![0#?,])")
_LARGEST = 10**15


def prepare_workbook(package: Package) -> Prepared:
    """Without hidden sheets, rows and columns: whoever opens the file must be able to find what an answer cites."""
    book = package.parse("xl/workbook.xml")
    related = _relations(package, "xl/workbook.xml")
    sheets = [*book.iter(f"{S}sheet")]
    check_count(package.name, len(sheets), MAX_PARTS, "sheets")
    formats = _number_formats(package)
    changed: dict[str, Any] = {"xl/workbook.xml": book}
    left_out: list[str] = []
    cells = 0
    for sheet in sheets:
        name = sheet.get("name", "")
        target = related.get(attribute(sheet, "id"), "")
        if sheet.get("state", "visible") != "visible":
            _remove(sheet)
            left_out.append(f"hidden sheet {name}")
            continue
        if target not in package.names:
            continue
        root = changed[target] = package.parse(target)
        hidden = _remove_hidden(root)
        left_out += [f"{what} on sheet {name}" for what in hidden]
        cells += _show_cells(root, formats)
        check_count(package.name, cells, MAX_CELLS, "cells")
    return changed, left_out


def _number_formats(package: Package) -> list[str]:
    """The code of each cell style."""
    if "xl/styles.xml" not in package.names:
        return []
    styles = package.parse("xl/styles.xml")
    own = {one.get("numFmtId"): one.get("formatCode", "") for one in styles.iter(f"{S}numFmt")}
    used = [one.get("numFmtId", "0") for group in styles.iter(f"{S}cellXfs") for one in group.iter(f"{S}xf")]
    return [own.get(one) or _BUILT_IN.get(int("0" + one) if one.isdigit() else 0, "") for one in used]


def _remove_hidden(root: Any) -> list[str]:
    said = []
    rows = [row for row in root.iter(f"{S}row") if row.get("hidden") in ("1", "true")]
    for row in rows:
        _remove(row)
    if rows:
        _close_gaps(root, [int(row.get("r", "0")) for row in rows])
    columns = [
        (int(one.get("min", "1")), min(int(one.get("max", "1")), 16384))
        for one in root.iter(f"{S}col")
        if one.get("hidden") in ("1", "true")
    ]
    found = 0
    if columns:
        for cell in [*root.iter(f"{S}c")]:
            at = _column(cell.get("r", "A1"))
            if any(first <= at <= last for first, last in columns):
                found += 1
                _remove(cell)
    if rows:
        said.append(f"{len(rows)} hidden row{'s' * (len(rows) > 1)}")
    if found:
        wide = sum(last - first + 1 for first, last in columns)
        said.append(f"{wide} hidden column{'s' * (wide > 1)}")
    return said


def _close_gaps(root: Any, gone: list[int]) -> None:
    """An empty row would end the table there."""
    for row in root.iter(f"{S}row"):
        number = int(row.get("r", "0"))
        new = str(number - bisect_left(gone, number))
        row.set("r", new)
        for cell in row:
            cell.set("r", re.sub(r"\d+", new, cell.get("r", "A1")))
    for merged in root.iter(f"{S}mergeCell"):
        ref = merged.get("ref", "")
        merged.set("ref", re.sub(r"\d+", lambda found: str(int(found[0]) - bisect_left(gone, int(found[0]))), ref))


def _show_cells(root: Any, formats: list[str]) -> int:
    """Numbers as the cell shows them, formulas that were never calculated, and merged cells; how many cells."""
    by_place: dict[str, Any] = {}
    for cell in root.iter(f"{S}c"):
        by_place[cell.get("r", "")] = cell
        value, style = cell.find(f"{S}v"), int("0" + cell.get("s", "0"))
        code = formats[style] if style < len(formats) else ""
        if value is None or not value.text:
            formula = cell.findtext(f"{S}f")
            if formula is not None and cell.get("t") != "inlineStr":
                _write(cell, f"={formula}" if formula else "(not calculated)")
        elif cell.get("t", "n") == "n" and code:
            shown = format_number(value.text, code)
            if shown:
                _write(cell, shown)
    for merged in [*root.iter(f"{S}mergeCell")]:
        _fill_merged(root, merged.get("ref", ""), by_place)
    for merged in [*root.iter(f"{S}mergeCells")]:
        _remove(merged)
    return len(by_place)


def _write(cell: Any, text: str) -> None:
    for child in [*cell]:
        cell.remove(child)
    cell.set("t", "inlineStr")
    inner = cell.makeelement(f"{S}is")
    piece = cell.makeelement(f"{S}t")
    piece.text = text
    inner.append(piece)
    cell.append(inner)


def _fill_merged(root: Any, ref: str, by_place: dict[str, Any]) -> None:
    found = re.fullmatch(r"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})", ref)
    origin = by_place.get(ref.partition(":")[0])
    if not found or origin is None or origin.getparent() is None:
        return
    left, right, top, bottom = _column(found[1]), _column(found[3]), int(found[2]), int(found[4])
    if (right - left + 1) * (bottom - top + 1) > 10_000:
        return
    rows = {int(row.get("r", "0")): row for row in root.iter(f"{S}row") if top <= int(row.get("r", "0")) <= bottom}
    for number, row in rows.items():
        cells = {_column(cell.get("r", "A1")): cell for cell in row}
        for at in range(left, right + 1):
            if (number, at) != (top, left):
                copy = deepcopy(origin)
                copy.set("r", f"{_letters(at)}{number}")
                cells[at] = copy
        row[:] = [cell for _, cell in sorted(cells.items())]


def _column(place: str) -> int:
    number = 0
    for letter in place:
        if letter.isalpha():
            number = number * 26 + ord(letter) - 64
    return number


def _letters(number: int) -> str:
    shown = ""
    while number:
        number, rest = divmod(number - 1, 26)
        shown = chr(65 + rest) + shown
    return shown


def format_number(written: str, code: str) -> str:
    """A number by a format code of Excel; "" where the code has dates, exponents, fractions or no digits."""
    try:
        value = Decimal(written)
    except ArithmeticError:
        return ""
    sections = re.split(r';(?=(?:[^"]*"[^"]*")*[^"]*$)', code)
    if value < 0 and len(sections) > 1:
        code, value = sections[1], -value
    else:
        code = sections[2] if value == 0 and len(sections) > 2 else sections[0]
    # Currency stands in brackets with a language; colours and conditions do too; "_" and "*" only make room.
    code = re.sub(r"\[\$([^-\]]*)[^\]]*\]", r'"\1"', code)
    code = re.sub(r"\[[^\]]*\]|_.|\*.", "", code)
    literals: list[str] = []

    def keep(found: re.Match[str]) -> str:
        literals.append(found[1] if found[1] is not None else found[2])
        return chr(0xE000 + len(literals) - 1)

    code = re.sub(r'"([^"]*)"|\\(.)', keep, code)
    digits = _NUMBER_FORMAT.findall(code)
    if len(digits) != 1 or not abs(value) < _LARGEST or re.search(r"[ymdhsYMDHSE/@]|General", code):
        return ""
    whole, places, thousands = digits[0]
    scaled = value.copy_abs() * (100 if "%" in code else 1) / 1000 ** len(thousands)
    rounded = scaled.quantize(Decimal(1).scaleb(-len(places)), ROUND_HALF_UP)
    left, _, right = (f"{rounded:,f}" if "," in whole else f"{rounded:f}").partition(".")
    # "#" is a digit that is shown only when needed, "0" one that always is.
    needed = len(places.rstrip("#?"))
    right = right[:needed] + right[needed:].rstrip("0")
    shown = left.zfill(whole.count("0")) + (f".{right}" if right else "")
    text = ("-" if value < 0 else "") + _NUMBER_FORMAT.sub(lambda _: shown, code)
    return re.sub("[\ue000-\ue0ff]", lambda found: literals[ord(found[0]) - 0xE000], text).strip()


# --- OpenDocument -----------------------------------------------------------------------------------------------------


def prepare_open(package: Package) -> Prepared:
    """Displayed values in place of stored ones; without comments, deleted text and what is hidden."""
    root = package.parse("content.xml")
    manifest = "META-INF/manifest.xml"
    if manifest in package.names and any(True for _ in package.parse(manifest).iter("{*}encryption-data")):
        raise package.locked("protected with a password")
    left_out = []
    hidden = [one for one in root.iter() if attribute(one, "visibility") in ("collapse", "filter")]
    styles = {attribute(one, "name"): one for one in root.iter("{*}style")}
    for table in [*root.iter("{*}table")]:
        style = styles.get(attribute(table, "style-name"))
        if style is not None and any(attribute(one, "display") == "false" for one in style):
            hidden.append(table)
            left_out.append(f"hidden sheet {attribute(table, 'name')}")
    sections = [one for one in root.iter("{*}section") if attribute(one, "display") == "none"]
    gone = sum(local(one) == "table-row" for one in hidden)
    if gone:
        left_out.append(f"{gone} hidden row{'s' * (gone > 1)}")
    for element in [*hidden, *sections, *root.iter("{*}tracked-changes", "{*}annotation", "{*}table-of-content")]:
        if element.getparent() is not None and local(element) != "table-column":
            _remove_before(element)
    _prepare_open_text(root, styles)
    cells = 0
    for table in [*root.iter("{*}table")]:
        space = table.tag.partition("}")[0] + "}"
        rows = [*table.iter(f"{space}table-row")]
        for row in rows:
            cells += _show_open_row(row, space) * int("0" + attribute(row, "number-rows-repeated", "1"))
            check_count(package.name, cells, MAX_CELLS, "cells")
        fill_spans(rows, (f"{space}table-cell",), f"{space}number-columns-spanned", f"{space}number-rows-spanned")
    for page in root.iter("{*}page"):
        titles = [one for one in page.iter("{*}frame") if attribute(one, "class") == "title"][:1]
        page.set(
            f"{page.tag.partition('}')[0]}}}name", " ".join("".join(titles[0].itertext()).split()) if titles else " "
        )
        for title in titles:
            _remove_before(title)
        for notes in page.iter("{*}notes"):
            first = next(notes.iter("{*}p"), None)
            if first is not None:
                mark = first.makeelement(first.tag)
                mark.text = "Notes:"
                first.addprevious(mark)
    return {"content.xml": root}, left_out


def _prepare_open_text(root: Any, styles: dict[str, Any]) -> None:
    """Spaces and tabs that are elements; titles as headings; text boxes behind their paragraph, once."""
    for space in [*root.iter("{*}s", "{*}tab")]:
        if space.tag.endswith(":text:1.0}" + local(space)):
            space.tail = (" " if local(space) == "s" else "\t") + (space.tail or "")
            _remove_before(space)
    for paragraph in root.iter("{*}p"):
        name = attribute(paragraph, "style-name")
        if "Title" in (name, attribute(styles[name], "parent-style-name") if name in styles else ""):
            paragraph.tag = paragraph.tag[:-1] + "h"
            paragraph.set(paragraph.tag[:-1] + "outline-level", "1")
        for frame in [one for one in paragraph.iterchildren("{*}frame") if one.find("{*}text-box") is not None]:
            inner = [child for box in frame.iterchildren("{*}text-box") for child in box]
            _remove_before(frame)
            for child in reversed(inner):
                paragraph.addnext(child)


def _remove_before(element: Any) -> None:
    """Keeps the text behind it."""
    tail, parent, before = element.tail or "", element.getparent(), element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    parent.remove(element)


def _show_open_row(row: Any, space: str) -> int:
    """Its cells one by one, with the text that they show in place of the value; how many show something."""
    filled = 0
    office = space.replace("table:1.0", "office:1.0")
    for cell in [*row]:
        if local(cell) == "covered-table-cell":
            row.remove(cell)
            continue
        shown = next((child for child in cell if local(child) == "p"), None)
        repeated = int("0" + attribute(cell, "number-columns-repeated", "1"))
        if shown is not None:
            if day := attribute(cell, "date-value"):
                # In any format the ISO way, since 03/04/21 means two days.
                shown.text = re.sub(r"(:\d\d):00$", r"\1", day.replace("T", " "))
            for key in [key for key in cell.attrib if key.startswith(office)]:
                del cell.attrib[key]
            cell.set(f"{office}value-type", "string")
            filled += max(1, repeated)
        if 1 < repeated <= _MOST_REPEATED:
            cell.attrib.pop(f"{space}number-columns-repeated", None)
            for _ in range(repeated - 1):
                cell.addnext(deepcopy(cell))
    return filled


_MOST_REPEATED = 256

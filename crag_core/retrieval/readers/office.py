"""Office and OpenDocument files before they become Markdown: hidden parts leave, spanned cells are filled, and what the
library does not read (headers, charts) is put where it reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from crag_core.retrieval.readers.html import fill_spans
from crag_core.retrieval.readers.packages import Package, attribute, local, relations
from crag_core.retrieval.readers.page import MAX_CELLS, MAX_PARTS, SPANNED, check_count

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
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
    _keep_one_way(root)
    for mark in [*root.iter(f"{W}vanish")]:
        run = mark.getparent().getparent()
        if local(run) == "r" and mark.get(f"{W}val", "true") not in ("0", "false"):
            _remove(run)
    # Bold letters inside a word would cut it.
    for looks in [*root.iter(f"{W}rPr")]:
        _remove(looks)
    copied = 0
    for table in root.iter(f"{W}tbl"):
        copied += _fill_word_table(table)
        check_count(package.name, copied, MAX_CELLS, SPANNED)
    body = root.find(f"{W}body")
    if body is not None:
        _append_margins(package, root, body)
    charts = sum(1 for _ in root.iter("{*}chart")) + sum(1 for _ in root.iter("{*}relIds"))
    return {"word/document.xml": root}, [f"{charts} chart{'s' * (charts > 1)} or diagrams"] if charts else []


def _keep_one_way(root: Any) -> None:
    """Where the same is written for newer and older programs, the first with text stays, in the place of all."""
    for ways in [*root.iter("{*}AlternateContent")]:
        with_text = [one for one in ways if _text(one)]
        for child in [child for one in (with_text or [*ways])[:1] for child in one]:
            ways.addprevious(child)
        _remove(ways)


def _fill_word_table(table: Any) -> int:
    """How many elements were copied: tables in spanned cells of others may multiply without end."""
    copied = 0
    above: list[Any] = []
    for row in table.iterchildren(f"{W}tr"):
        places: list[Any] = []
        for cell in row.iterchildren(f"{W}tc"):
            merge, span = cell.find(f"{W}tcPr/{W}vMerge"), cell.find(f"{W}tcPr/{W}gridSpan")
            wide = int(span.get(f"{W}val", "1")) if span is not None else 1
            if merge is not None and merge.get(f"{W}val") != "restart" and len(places) < len(above):
                origin = [child for child in above[len(places)] if local(child) != "tcPr"]
                for child in [*cell]:
                    cell.remove(child)
                cell.extend(deepcopy(child) for child in origin)
                copied += sum(1 for child in origin for _ in child.iter())
            for mark in (merge, span):
                if mark is not None:
                    _remove(mark)
            copies = [deepcopy(cell) for _ in range(min(wide, 100) - 1)]
            copied += len(copies) * sum(1 for _ in cell.iter())
            for copy in reversed(copies):
                cell.addnext(copy)
            places += [cell, *copies]
        above = places
    return copied


def _append_margins(package: Package, root: Any, body: Any) -> None:
    """Headers and footers with letters that stand nowhere else, once each, at the end."""
    from lxml.etree import SubElement

    said, end = _text(root), body.find(f"{W}sectPr")
    related = relations(package, "word/document.xml")
    used = dict.fromkeys(
        related.get(attribute(one, "id"), "") for one in root.iter(f"{W}headerReference", f"{W}footerReference")
    )
    for margin in [package.parse(part) for part in used if part in package.names]:
        _keep_one_way(margin)
        for paragraph in margin.iter(f"{W}p"):
            shown = _text(paragraph)
            if (
                re.search(r"[^\W\d_]{2}", shown)
                and shown not in said
                and not re.fullmatch(r"\w+ \d+( \w+ \d+)?", shown)
            ):
                said += f" {shown}"
                made = root.makeelement(f"{W}p")
                SubElement(SubElement(made, f"{W}r"), f"{W}t").text = shown
                body.append(made) if end is None else end.addprevious(made)


# --- PowerPoint -------------------------------------------------------------------------------------------------------

_FURNITURE = ("dt", "ftr", "sldNum", "hdr")


def prepare_slides(package: Package) -> Prepared:
    related = relations(package, "ppt/presentation.xml")
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
            for cell in [one for one in table.iter(f"{A}tc") if one.get("hMerge") or one.get("vMerge")]:
                _remove(cell)
            fill_spans(package.name, [*table.iterchildren(f"{A}tr")], (f"{A}tc",), "gridSpan", "rowSpan")
        related = relations(package, part)
        for drawing in [*root.iter("{*}chart", "{*}relIds")]:
            target = related.get(attribute(drawing, "dm") or attribute(drawing, "id"), "")
            if target in package.names:
                shown = package.parse(target)
                rows = _chart_rows(shown) if local(drawing) == "chart" else _diagram_rows(shown)
                _put_table(drawing.getparent(), rows)
    return changed, []


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
    from lxml.etree import SubElement

    for child in [*data]:
        data.remove(child)
    data.set("uri", "http://schemas.openxmlformats.org/drawingml/2006/table")
    table = SubElement(data, f"{A}tbl")
    for row in rows:
        line = SubElement(table, f"{A}tr", h="1")
        for text in row:
            body = SubElement(SubElement(line, f"{A}tc"), f"{A}txBody")
            SubElement(SubElement(SubElement(body, f"{A}p"), f"{A}r"), f"{A}t").text = text


# --- OpenDocument -----------------------------------------------------------------------------------------------------


_GONE = "gone"  # until it is taken out, whereas the text behind it stays


def prepare_open(package: Package) -> Prepared:
    """Displayed values in place of stored ones; without comments, deleted text and what is hidden."""
    from lxml.etree import strip_elements

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
        if local(element) != "table-column":
            element.tag = _GONE
    strip_elements(root, _GONE, with_tail=False)
    _prepare_open_text(root, styles)
    cells = 0
    for table in [*root.iter("{*}table")]:
        space = table.tag.partition("}")[0] + "}"
        rows = [*table.iter(f"{space}table-row")]
        for row in rows:
            cells += _show_open_row(row, space) * int("0" + attribute(row, "number-rows-repeated", "1"))
            check_count(package.name, cells, MAX_CELLS, "cells")
        fill_spans(
            package.name, rows, (f"{space}table-cell",), f"{space}number-columns-spanned", f"{space}number-rows-spanned"
        )
    for page in root.iter("{*}page"):
        titles = [one for one in page.iter("{*}frame") if attribute(one, "class") == "title"][:1]
        page.set(
            f"{page.tag.partition('}')[0]}}}name", " ".join("".join(titles[0].itertext()).split()) if titles else " "
        )
        for title in titles:
            title.tag = _GONE
        for notes in page.iter("{*}notes"):
            first = next(notes.iter("{*}p"), None)
            if first is not None:
                mark = first.makeelement(first.tag)
                mark.text = "Notes:"
                first.addprevious(mark)
    strip_elements(root, _GONE, with_tail=False)
    return {"content.xml": root}, left_out


def _prepare_open_text(root: Any, styles: dict[str, Any]) -> None:
    """Spaces and tabs that are elements; titles as headings; text boxes behind their paragraph, once."""
    for space in [*root.iter("{*}s", "{*}tab")]:
        if space.tag.endswith(":text:1.0}" + local(space)):
            space.tail = (" " if local(space) == "s" else "\t") + (space.tail or "")
            space.tag = _GONE
    for paragraph in root.iter("{*}p"):
        name = attribute(paragraph, "style-name")
        if "Title" in (name, attribute(styles[name], "parent-style-name") if name in styles else ""):
            paragraph.tag = paragraph.tag[:-1] + "h"
            paragraph.set(paragraph.tag[:-1] + "outline-level", "1")
        for frame in [one for one in paragraph.iterchildren("{*}frame") if one.find("{*}text-box") is not None]:
            inner = [child for box in frame.iterchildren("{*}text-box") for child in box]
            frame.tag = _GONE
            for child in reversed(inner):
                paragraph.addnext(child)


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

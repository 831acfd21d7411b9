"""OpenDocument files: text (.odt), spreadsheets (.ods) and presentations (.odp).

Deleted text of tracked changes, comments and tables of contents are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from crag_core.retrieval.readers.page import MAX_PARTS, CellCount, Page, check_count
from crag_core.retrieval.readers.shared.markdown_text import join_blocks, normalise_text
from crag_core.retrieval.readers.shared.tables import EMPTY, Cell, sheet_to_text, table_to_text
from crag_core.retrieval.readers.shared.zip_packages import Package, attribute, local

_FURNITURE = ("footer", "header", "date-time", "page-number", "page")
# "title" and "desc" are the descriptions of drawings.
_LEFT_OUT = (
    *("tracked-changes", "annotation", "annotation-end", "sequence-decls", "forms", "table-of-content"),
    *("table-index", "illustration-index", "alphabetical-index", "object-index", "user-index", "title"),
    *("desc", "shapes", "settings", "script", "event-listeners", "image", "hidden-text"),
    *("hidden-paragraph", "ruby-text", "soft-page-break"),
)
_DRAWN = ("frame", "custom-shape", "g", "rect", "ellipse", "text-box")
# Wider is only what programs write for the empty rest of a sheet.
_WIDEST = 16_384


def read_odt(content: bytes, name: str) -> tuple[Page, ...]:
    return _read(content, name, "an OpenDocument text (.odt)", _read_text)


def read_ods(content: bytes, name: str) -> tuple[Page, ...]:
    return _read(content, name, "an OpenDocument spreadsheet (.ods)", _read_sheets)


def read_odp(content: bytes, name: str) -> tuple[Page, ...]:
    return _read(content, name, "an OpenDocument presentation (.odp)", _read_slides)


def _read(content: bytes, name: str, kind: str, read: Callable[[Any, str], Iterator[Page]]) -> tuple[Page, ...]:
    from lxml import etree

    package = Package(content, name, kind)
    manifest = "META-INF/manifest.xml"
    if manifest in package.names and next(package.parse(manifest).iter("{*}encryption-data"), None) is not None:
        raise package.locked("protected with a password")
    root = package.parse("content.xml")
    etree.strip_elements(root, *(f"{{*}}{tag}" for tag in _LEFT_OUT), with_tail=False)
    # Counts and levels may be no numbers.
    with package.checked():
        return tuple(read(root, name))


def _read_text(root: Any, name: str) -> Iterator[Page]:
    titles = {"Title"} | {
        attribute(style, "name") for style in root.iter("{*}style") if attribute(style, "parent-style-name") == "Title"
    }
    for body in root.iter("{*}text"):
        if local(body.getparent()) == "body":
            yield Page(normalise_text(join_blocks(_show_blocks(body, CellCount(name), frozenset(titles)))))


def _read_sheets(root: Any, name: str) -> Iterator[Page]:
    """Hidden sheets are left out, as in Excel workbooks."""
    hidden = {
        attribute(style, "name")
        for style in root.iter("{*}style")
        for properties in style.iterchildren("{*}table-properties")
        if attribute(properties, "display") == "false"
    }
    sheets = [sheet for body in root.iter("{*}spreadsheet") for sheet in body.iterchildren("{*}table")]
    check_count(name, len(sheets), MAX_PARTS, "sheets")
    count = CellCount(name)
    for sheet in sheets:
        if attribute(sheet, "style-name") not in hidden:
            text = sheet_to_text(_read_table(sheet, count))
            yield Page(normalise_text(f"# {attribute(sheet, 'name')}\n\n{text}") if text else "")


def _read_slides(root: Any, name: str) -> Iterator[Page]:
    slides = [slide for body in root.iter("{*}presentation") for slide in body.iterchildren("{*}page")]
    check_count(name, len(slides), MAX_PARTS, "slides")
    count = CellCount(name)
    for number, slide in enumerate(slides, 1):
        yield Page(normalise_text(join_blocks(_show_slide(slide, count))), number)


def _show_slide(slide: Any, count: CellCount) -> Iterator[str]:
    # A shape may hold paragraphs itself, or a box or a table with them.
    shapes = [
        shape
        for shape in slide.iterchildren("*")
        if attribute(shape, "class") not in _FURNITURE and local(shape) != "notes"
    ]
    titles = [shape for shape in shapes if attribute(shape, "class") == "title"]
    for shape in titles:
        yield from (f"# {' '.join(block.split())}" for block in _show_blocks(shape, count) if block)
    for shape in shapes:
        if shape not in titles:
            yield from _show_blocks(shape, count)
    for notes in slide.iterchildren("{*}notes"):
        texts = [
            block for shape in notes if attribute(shape, "class") == "notes" for block in _show_blocks(shape, count)
        ]
        if any(texts):
            yield "Notes:\n" + "\n".join(filter(None, texts))


def _show_blocks(element: Any, count: CellCount, titles: frozenset[str] = frozenset()) -> Iterator[str]:
    """Headings, paragraphs, lists and tables in their order; `titles` are the styles of a document's title."""
    for child in element.iterchildren("*"):
        tag = local(child)
        if attribute(child, "display") == "none":
            continue
        if tag in ("h", "p"):
            drawn: list[Any] = []
            text = _read_line(child, drawn)
            level = min(int(attribute(child, "outline-level", "1")), 6) if tag == "h" else 0
            level = level or int(attribute(child, "style-name") in titles)
            yield f"{'#' * level} {' '.join(text.split())}" if level and text else text
            for shape in drawn:
                yield from _show_blocks(shape, count, titles)
        elif tag in ("list-item", "list-header"):
            for block in _show_blocks(child, count, titles):
                yield block if block.startswith(("#", "- ")) or not block else f"- {' '.join(block.split())}"
        elif tag == "table":
            yield table_to_text([[cell.text for cell in row] for row in _read_table(child, count)])
        else:
            yield from _show_blocks(child, count, titles)


def _read_line(element: Any, drawn: list[Any] | None = None) -> str:
    """The text of a paragraph; drawings inside it go to `drawn`."""
    return "".join(_read_inline(element, drawn)).strip()


def _read_inline(element: Any, drawn: list[Any] | None) -> Iterator[str]:
    # White space in the file means one space; tabs, line breaks and further spaces are elements.
    yield re.sub(r"\s+", " ", element.text or "")
    for child in element.iterchildren("*"):
        tag = local(child)
        if tag == "s":
            yield " " * min(int(attribute(child, "c", "1")), 100)
        elif tag in ("tab", "line-break"):
            yield "\t" if tag == "tab" else "\n"
        elif tag == "note":
            yield f" [{' '.join(' '.join(_read_line(line) for line in child.iter('{*}p', '{*}h')).split())}]"
        elif tag in _DRAWN:
            if drawn is not None:
                drawn.append(child)
        else:
            yield from _read_inline(child, drawn)
        yield re.sub(r"\s+", " ", child.tail or "")


def _read_table(table: Any, count: CellCount) -> Iterator[list[Cell]]:
    """Its rows; cells that a merge covers repeat the text of the merged cell. Repeated empty rows are given once."""
    covers: dict[int, tuple[Cell, int]] = {}  # by column: what covers it, and for how many rows still
    for row in _rows(table):
        repeated = int(attribute(row, "number-rows-repeated", "1"))
        cells = _read_row(row, covers)
        is_filled = any(cell.text for cell in cells)
        for _ in range(repeated if is_filled else 1):
            count.add(len(cells) + 1, sum(bool(cell.text) for cell in cells))
            yield cells
        covers = {at: (cell, left - repeated) for at, (cell, left) in covers.items() if left > repeated}


def _rows(table: Any) -> Iterator[Any]:
    for child in table.iterchildren("*"):
        tag = local(child)
        if tag == "table-row":
            yield child
        elif tag in ("table-header-rows", "table-rows", "table-row-group"):
            yield from _rows(child)


def _read_row(row: Any, covers: dict[int, tuple[Cell, int]]) -> list[Cell]:
    cells: list[Cell] = []
    for element in row.iterchildren("{*}table-cell", "{*}covered-table-cell"):
        repeated = min(int(attribute(element, "number-columns-repeated", "1")), _WIDEST - len(cells))
        if local(element) == "covered-table-cell":
            cells.extend(covers.get(at, (EMPTY, 0))[0] for at in range(len(cells), len(cells) + repeated))
            continue
        cell = _read_cell(element)
        wide, deep = (int(attribute(element, f"number-{what}-spanned", "1")) for what in ("columns", "rows"))
        for at in range(len(cells), min(len(cells) + wide, _WIDEST) if wide * deep > 1 and cell.text else 0):
            covers[at] = (cell, deep)
        cells.extend([cell] * repeated)
    while cells and not cells[-1].text:
        cells.pop()
    return cells


def _read_cell(element: Any) -> Cell:
    kind = attribute(element, "value-type", "string")
    lines = [_read_line(line) for line in element.iter("{*}p", "{*}h")]
    text = " ".join(" ".join(filter(None, lines)).split()) or (attribute(element, "value") if kind != "string" else "")
    if kind == "date":
        text = attribute(element, "date-value", text)[:16].removesuffix("T00:00").replace("T", " ")
    return Cell(text, kind == "string") if text else EMPTY

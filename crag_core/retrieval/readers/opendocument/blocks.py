"""The text of OpenDocument files: headings, paragraphs, lists and tables, in the order of the file.

Left out is what stands in the file but not on the page: deleted text of tracked changes, comments, tables of contents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crag_core.retrieval.readers.limits import CellCount
from crag_core.retrieval.readers.office.sheet_grid import EMPTY, Cell
from crag_core.retrieval.readers.shared.table_text import show_table
from crag_core.retrieval.readers.shared.zip_packages import attribute, local

_LEFT_OUT = frozenset(
    [
        *("tracked-changes", "annotation", "annotation-end", "sequence-decls", "forms", "table-of-content"),
        *("table-index", "illustration-index", "alphabetical-index", "object-index", "user-index", "title"),
        *("desc", "notes", "shapes", "settings", "script", "event-listeners", "image", "hidden-text"),
        *("hidden-paragraph", "ruby-text", "soft-page-break"),
    ]
)
_DRAWN = frozenset(
    [
        *("frame", "custom-shape", "g", "rect", "ellipse", "text-box", "a"),
    ]
)
# What programs write for the rest of a sheet is far wider than any table of people.
_WIDEST = 16_384


def show_blocks(element: Any, titles: frozenset[str], count: CellCount) -> Iterator[str]:
    """`titles` are the names of paragraph styles that make a document's title."""
    for child in element.iterchildren("*"):
        tag = local(child)
        if tag in _LEFT_OUT or attribute(child, "display") == "none":
            continue
        if tag in ("h", "p"):
            drawn: list[Any] = []
            text = read_line(child, drawn)
            level = min(int(attribute(child, "outline-level", "1")), 6) if tag == "h" else 0
            level = level or int(attribute(child, "style-name") in titles)
            yield f"{'#' * level} {' '.join(text.split())}" if level and text else text
            for shape in drawn:
                yield from show_blocks(shape, titles, count)
        elif tag in ("list-item", "list-header"):
            for block in show_blocks(child, titles, count):
                yield block if block.startswith(("#", "- ")) or not block else f"- {' '.join(block.split())}"
        elif tag == "table":
            yield show_table([[cell.text for cell in row] for row in read_table(child, count)])
        else:
            yield from show_blocks(child, titles, count)


def read_line(element: Any, drawn: list[Any] | None = None) -> str:
    """The text of a paragraph; what is drawn inside it goes to `drawn`."""
    return "".join(_read_inline(element, drawn)).strip()


def _read_inline(element: Any, drawn: list[Any] | None) -> Iterator[str]:
    # Line ends and runs of spaces in the file mean one space; real ones are elements.
    yield _squeeze(element.text)
    for child in element.iterchildren("*"):
        tag = local(child)
        if tag == "s":
            yield " " * min(int(attribute(child, "c", "1")), 100)
        elif tag in ("tab", "line-break"):
            yield "\t" if tag == "tab" else "\n"
        elif tag == "note":
            yield f" [{' '.join(' '.join(read_line(line) for line in child.iter('{*}p', '{*}h')).split())}]"
        elif tag in _DRAWN and not child.tag.endswith("}a"):
            if drawn is not None:
                drawn.append(child)
        elif tag not in _LEFT_OUT:
            yield from _read_inline(child, drawn)
        yield _squeeze(child.tail)


def _squeeze(text: str | None) -> str:
    if not text:
        return ""
    inner = " ".join(text.split())
    return f"{' ' if text[0].isspace() else ''}{inner}{' ' if inner and text[-1].isspace() else ''}"


def read_table(table: Any, count: CellCount) -> Iterator[list[Cell]]:
    """Its rows; cells that a merge covers say what the merged cell says. Of empty rows that repeat one is given."""
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
    lines = [read_line(line) for line in element.iter("{*}p", "{*}h") if not _is_comment(line, element)]
    text = " ".join(" ".join(filter(None, lines)).split()) or (attribute(element, "value") if kind != "string" else "")
    if kind == "date":
        text = attribute(element, "date-value", text)[:16].removesuffix("T00:00").replace("T", " ")
    return Cell(text, kind == "string") if text else EMPTY


def _is_comment(line: Any, cell: Any) -> bool:
    for parent in line.iterancestors():
        if parent is cell:
            return False
        if local(parent) == "annotation":
            return True
    return False

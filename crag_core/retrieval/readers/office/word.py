"""Word documents: paragraphs, headings, lists and tables in document order."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.shared.markdown_text import join_blocks, normalise_text
from crag_core.retrieval.readers.shared.tables import table_to_text
from crag_core.retrieval.readers.shared.zip_packages import Package

if TYPE_CHECKING:
    from docx.table import Table, _Cell
    from docx.text.paragraph import Paragraph

_HEADING = re.compile(r"(?:heading|title)\s*(\d?)", re.IGNORECASE)
Styles = dict[str | None, str]
"""Names of styles by id; None is the default style."""
_WRAPPERS = ("sdt", "sdtContent", "ins", "customXml", "smartTag")


def read_docx(content: bytes, name: str) -> tuple[Page, ...]:
    package = Package(content, name, "a Word document (.docx)")
    package.check_xml()
    import docx

    with package.checked():
        document = docx.Document(io.BytesIO(content))
        return (Page(normalise_text(join_blocks(_show_blocks(document.element.body, document, {})))),)


def _show_blocks(element: Any, parent: Any, styles: Styles) -> Iterator[str]:
    from docx.table import Table
    from docx.text.paragraph import Paragraph

    for child in element.iterchildren():
        tag = str(child.tag).rpartition("}")[2]
        if tag == "p":
            yield _show_paragraph(Paragraph(child, parent), styles)
        elif tag == "tbl":
            yield table_to_text(_read_rows(Table(child, parent), styles))
        # python-docx skips content controls, where templates keep their text.
        elif tag in _WRAPPERS:
            yield from _show_blocks(child, parent, styles)


def _show_paragraph(paragraph: Paragraph, styles: Styles) -> str:
    text = paragraph.text.strip()
    if not text:
        return ""
    style = _name_style(paragraph, styles)
    heading = _HEADING.match(style)
    if heading:
        return f"{'#' * int(heading[1] or 1)} {' '.join(text.split())}"
    properties = paragraph._p.pPr
    listed = style.startswith("List") or (properties is not None and properties.numPr is not None)
    return f"- {' '.join(text.split())}" if listed else text


def _read_rows(table: Table, styles: Styles) -> list[list[str]]:
    """Merged cells repeat their text in each of their places.

    Not through the `cells` of python-docx, which for each of them searches the whole column.
    """
    from docx.table import _Cell

    rows: list[list[str]] = []
    for row in table.rows:
        cells = [""] * row.grid_cols_before
        for cell in row._tr.tc_lst:
            goes_on = cell.vMerge == "continue" and rows and len(cells) < len(rows[-1])
            text = rows[-1][len(cells)] if goes_on else _read_cell(_Cell(cell, table), styles)
            cells += [text] * cell.grid_span
        rows.append(cells)
    return rows


def _read_cell(cell: _Cell, styles: Styles) -> str:
    # The cell's own `text` leaves out tables inside it.
    return " ".join(filter(None, _show_blocks(cell._tc, cell, styles)))


def _name_style(paragraph: Paragraph, styles: Styles) -> str:
    """Cached, since python-docx searches all styles every time."""
    found = paragraph._p.style
    if found not in styles:
        style = paragraph.style
        styles[found] = style.name or "" if style is not None else ""
    return styles[found]

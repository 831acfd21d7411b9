"""OpenDocument files before they become Markdown: displayed values in place of stored ones, hidden parts leave."""

from __future__ import annotations

import re
from collections import Counter
from copy import deepcopy
from typing import Any

from crag_core.retrieval.readers.html import CROSSED_OUT, fill_spans, raise_mark
from crag_core.retrieval.readers.office.markup import Prepared, append_margins, maker, remove
from crag_core.retrieval.readers.packages import Package, attribute, local, text_of
from crag_core.retrieval.readers.page import MAX_CELLS, check_count, name_lost

OFFICE, TEXT, TABLE, STYLE, DRAW = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}" for name in ("office", "text", "table", "style", "drawing")
)
_HIDDEN = ("collapse", "filter")
_MOST_REPEATED = 256
_GONE = "gone"  # until it is taken out, whereas the text behind it stays


Looks = dict[str, dict[str, str]]
"""What the styles of an OpenDocument file say, by the names of the styles, then by local names."""


def _look(looks: Looks, element: Any, name: str) -> str:
    """What its style says, such as "hidden" of the "visibility" of a slide; "": nothing."""
    return looks.get(attribute(element, "style-name"), {}).get(name, "")


def prepare_open(package: Package) -> Prepared:
    """Displayed values in place of stored ones; without comments, deleted text and what is hidden."""
    from lxml.etree import strip_elements

    root = package.parse("content.xml")
    if any(True for one in package.roots("META-INF/manifest.xml") for _ in one.iter("{*}encryption-data")):
        raise package.locked("protected with a password")
    looks: Looks = {
        style.get(f"{STYLE}name"): {
            key.rpartition("}")[2]: value for part in style.iter() for key, value in part.items()
        }
        for style in root.iter(f"{STYLE}style")
    }
    sheets = [one for one in root.iter(f"{TABLE}table") if _look(looks, one, "display") == "false"]
    slides = [one for one in root.iter(f"{DRAW}page") if _look(looks, one, "visibility") == "hidden"]
    rows = [one for one in root.iter(f"{TABLE}table-row") if one.get(f"{TABLE}visibility") in _HIDDEN]
    struck = [
        one for one in root.iter(f"{TEXT}span") if _look(looks, one, "text-line-through-style") not in ("", "none")
    ]
    comments = [*root.iter(f"{OFFICE}annotation")]
    unseen = [
        *root.iterfind(f".//*[@{TEXT}is-hidden='true']"),
        *root.iterfind(f".//{TEXT}section[@{TEXT}display='none']"),
    ]
    unseen += root.iter(f"{TEXT}tracked-changes", f"{TEXT}table-of-content")
    lost = Counter({"hidden slide": len(slides), CROSSED_OUT: len(struck), "hidden row": len(rows)})
    lost["comment"] = len(comments)
    lost["chart or object"] = sum(1 for _ in root.iter("{*}object"))
    # A hidden slide stays as an empty one, which has a number.
    for element in [*sheets, *(part for slide in slides for part in slide), *rows, *struck, *comments, *unseen]:
        element.tag = _GONE
    strip_elements(root, _GONE, with_tail=False)
    _prepare_open_text(root, looks)
    cells = 0
    for table in [*root.iter(f"{TABLE}table")]:
        rows = [*table.iter(f"{TABLE}table-row")]
        for row in rows:
            cells += _show_open_row(row) * int("0" + row.get(f"{TABLE}number-rows-repeated", "1"))
            check_count(package.name, cells, MAX_CELLS, "cells")
        spans = (f"{TABLE}number-columns-spanned", f"{TABLE}number-rows-spanned")
        fill_spans(package.name, rows, (f"{TABLE}table-cell",), *spans)
        lost["hidden column"] += _hide_columns(table, rows)
    for page in root.iter(f"{DRAW}page"):
        _prepare_open_slide(page)
    strip_elements(root, _GONE, with_tail=False)
    margins = [margin for styles in package.roots("styles.xml") for margin in styles.iter("{*}header", "{*}footer")]
    for text in root.iter(f"{OFFICE}text"):
        append_margins(text, margins, text_of, maker(TEXT).p)
    return {"content.xml": root}, [f"hidden sheet {one.get(f'{TABLE}name', '')}" for one in sheets] + name_lost(lost)


def _prepare_open_slide(page: Any) -> None:
    """Its title as its name, which the library takes for a heading; a line above its notes."""
    titles = [one for one in page.iter("{*}frame") if attribute(one, "class") == "title"][:1]
    page.set(f"{DRAW}name", text_of(titles[0]) if titles else " ")
    for title in titles:
        title.tag = _GONE
    for first in [next(notes.iter(f"{TEXT}p"), None) for notes in page.iter("{*}notes")]:
        if first is not None:
            first.addprevious(maker(TEXT).p("Notes:"))


def _prepare_open_text(root: Any, looks: Looks) -> None:
    """Spaces and tabs that are elements; titles as headings; text boxes behind their paragraph, once."""
    for space in root.iter(f"{TEXT}s", f"{TEXT}tab"):
        space.tail = (" " if local(space) == "s" else "\t") + (space.tail or "")
        space.tag = _GONE
    for span in root.iter(f"{TEXT}span"):
        if _look(looks, span, "text-position").startswith("super"):
            raise_mark(span)
    for paragraph in root.iter(f"{TEXT}p"):
        if "Title" in (attribute(paragraph, "style-name"), _look(looks, paragraph, "parent-style-name")):
            paragraph.tag = f"{TEXT}h"
            paragraph.set(f"{TEXT}outline-level", "1")
        for frame in [one for one in paragraph.iterchildren("{*}frame") if one.find("{*}text-box") is not None]:
            inner = [child for box in frame.iterchildren("{*}text-box") for child in box]
            frame.tag = _GONE
            for child in reversed(inner):
                paragraph.addnext(child)


def _show_open_row(row: Any) -> int:
    """Its cells one by one, with the text that they show in place of the value; how many show something."""
    filled = 0
    for cell in [*row]:
        if local(cell) == "covered-table-cell":
            row.remove(cell)
            continue
        shown = next((child for child in cell if local(child) == "p"), None)
        repeated = int("0" + cell.get(f"{TABLE}number-columns-repeated", "1"))
        if shown is not None:
            if day := cell.get(f"{OFFICE}date-value"):
                # In any format the ISO way, since 03/04/21 means two days.
                shown.text = re.sub(r"(:\d\d):00$", r"\1", day.replace("T", " "))
            for key in [key for key in cell.attrib if key.startswith(OFFICE)]:
                del cell.attrib[key]
            cell.set(f"{OFFICE}value-type", "string")
            filled += max(1, repeated)
        if 1 < repeated <= _MOST_REPEATED:
            del cell.attrib[f"{TABLE}number-columns-repeated"]
            for _ in range(repeated - 1):
                cell.addnext(deepcopy(cell))
    return filled


def _hide_columns(table: Any, rows: list[Any]) -> int:
    """Takes out the cells of hidden columns; how many columns had any."""
    hidden, at = set[int](), 0
    for column in table.iter(f"{TABLE}table-column"):
        wide = int("0" + column.get(f"{TABLE}number-columns-repeated", "1"))
        if column.get(f"{TABLE}visibility") in _HIDDEN:
            hidden |= {*range(at, at + min(wide, _MOST_REPEATED))}
        at += wide
    cells = [(place, cell) for row in rows for place, cell in enumerate(row) if place in hidden]
    for _, cell in cells:
        remove(cell)
    return len({place for place, cell in cells if text_of(cell)})

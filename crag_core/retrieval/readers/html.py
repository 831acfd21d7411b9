"""HTML before it becomes Markdown: what nobody reads leaves, and every place of a spanned cell gets its text."""

from __future__ import annotations

import re
from typing import Any

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.decoding import decode_text
from crag_core.retrieval.readers.packages import MANY_ATTRIBUTES
from crag_core.retrieval.readers.page import MAX_CELLS, SPANNED, check_count

_DROPPED = re.findall(
    r"\S+",
    "head script style noscript template nav footer svg math iframe object canvas audio video select datalist "
    "input textarea",
)
# Their text stays; what they mean is not in the text.
_UNWRAPPED = re.findall(
    r"\S+",
    "button a abbr b big bdi bdo cite code del em font i ins kbd label mark q s samp small span strike strong sub "
    "sup time tt u var",
)
_CHARSET = re.compile(rb"""(?:<meta[^>]+charset|<\?xml[^>]+encoding)\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SHOWN_LATER = ("tabpanel", "region")
# No real page is nested deeper.
_DEEPEST = 200
_MOST_SPANNED = 1_000
_WAS_TABLE = "section"


def prepare_html(content: bytes, name: str, declared: str = "") -> tuple[str, Any]:
    """The title and the root element. Raises `DocumentRefused` for elements nested too deeply."""
    from lxml import etree, html

    found = _CHARSET.search(content[:4096])
    text = decode_text(content, declared or (found[1].decode("ascii") if found else ""))
    # A string that is already decoded may not declare an encoding.
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    text = re.sub(MANY_ATTRIBUTES, r"<\1", text)
    if not text.strip():
        return "", html.Element("html")
    parser = html.HTMLParser(remove_comments=True, remove_pis=True, no_network=True, huge_tree=True)
    root = html.document_fromstring(text, parser=parser, ensure_head_body=True)
    _check_depth(root, name)
    title = " ".join((root.findtext(".//title") or "").split())
    for element in [*root.iter(*_DROPPED), *filter(_is_hidden, root.iter())]:
        if element.getparent() is not None:
            element.drop_tree()
    for element in root.iter("section", "form", "dialog"):
        element.tag = "div"
    for picture in [*root.iter("img")]:
        alt = picture.get("alt", "")
        picture.tail = f"{alt if len(alt.split()) > 2 else ''} {picture.tail or ''}"
        picture.drop_tree()
    for table in reversed([*root.iter("table")]):
        _prepare_table(table, name)
    etree.strip_tags(root, *_UNWRAPPED)
    for element in root.iter():
        for name in ("hidden", "role", "style", "class"):
            element.attrib.pop(name, None)
        if element.tag != "pre":
            element.text = element.text and re.sub(r"\s+", " ", element.text)
        element.tail = element.tail and re.sub(r"\s+", " ", element.tail)
    return title, root


def _check_depth(root: Any, name: str) -> None:
    depth, below = 0, [root]
    while below:
        depth, below = depth + 1, [child for element in below for child in element]
        if depth > _DEEPEST:
            raise DocumentRefused(
                f"{name}: its elements are nested too deeply (over {_DEEPEST}).",
                hint="Save the page as plain text and add that.",
            )


def _is_hidden(element: Any) -> bool:
    if not isinstance(element.tag, str) or element.get("role") in _SHOWN_LATER:
        return False
    return "hidden" in element.attrib or bool(_HIDDEN.search(element.get("style", "")))


def _prepare_table(table: Any, name: str) -> None:
    """A table of data gets a cell in every place; one that only arranges others becomes blocks."""
    rows = [*table.iter("tr")]
    has_blocks = any(True for _ in table.iter("h1", "h2", "h3", "pre", _WAS_TABLE))
    if any(sum(cell.tag in ("td", "th") for cell in row) > 1 for row in rows) and not has_blocks:
        fill_spans(name, rows, ("td", "th"), "colspan", "rowspan")
        return
    for element in [*table.iter("thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup")]:
        element.tag = "div"
    table.tag = _WAS_TABLE


def fill_spans(name: str, rows: list[Any], tags: tuple[str, ...], across: str, down: str) -> None:
    """Repeats every spanned cell in each of its places, and takes its span away. Refuses millions of copies."""
    from copy import deepcopy

    copied = 0
    waiting: dict[int, tuple[Any, int]] = {}
    for left_rows, row in zip(range(len(rows), 0, -1), rows, strict=True):
        cells = [cell for cell in row if cell.tag in tags]
        placed: list[Any] = []
        while cells or len(placed) in waiting:
            at = len(placed)
            if at in waiting:
                cell, left = waiting.pop(at)
                placed.append(deepcopy(cell))
                if left > 1:
                    waiting[at] = (cell, left - 1)
                continue
            cell = cells.pop(0)
            wide, high = (_span(cell.attrib.pop(way, "1")) for way in (across, down))
            copied += (wide * min(high, left_rows) - 1) * sum(1 for _ in cell.iter())
            check_count(name, copied, MAX_CELLS, SPANNED)
            for place in range(at, at + wide):
                placed.append(deepcopy(cell) if place > at else cell)
                if high > 1:
                    waiting[place] = (cell, high - 1)
        for child in [*row]:
            row.remove(child)
        row.extend(placed)


def _span(written: str) -> int:
    return max(1, min(int(written), _MOST_SPANNED)) if written.strip().isdigit() else 1

"""HTML before it becomes Markdown: what nobody reads leaves, and every place of a spanned cell gets its text."""

from __future__ import annotations

import re
from typing import Any

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.decoding import decode_text
from crag_core.retrieval.readers.packages import MANY_ATTRIBUTES
from crag_core.retrieval.readers.page import MAX_CELLS, SPANNED, check_count
from crag_core.retrieval.readers.tables import show_rows
from crag_core.retrieval.readers.text import raise_figures, show_number

_DROPPED = re.findall(
    r"\S+",
    "head script style noscript template nav iframe object canvas audio video datalist annotation annotation-xml",
)
# Their text stays; what they mean is not in the text.
_UNWRAPPED = re.findall(
    r"\S+",
    "button a abbr b big bdi bdo cite code em font i ins kbd label mark q samp small span strong sub sup time tt u var",
)
_CHARSET = re.compile(rb"""(?:<meta[^>]+charset|<\?xml[^>]+encoding)\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LINE_THROUGH = re.compile(r"line-through", re.IGNORECASE)
_ENTERED = ("text", "email", "tel", "number", "url", "date", "time", "month", "week", "datetime-local")
_SHOWN_LATER = ("tabpanel", "region")
# No real page is nested deeper.
_DEEPEST = 200
_MOST_SPANNED = 1_000
_WAS_TABLE = "section"
_NUMBERINGS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
CROSSED_OUT = "crossed-out text"


def prepare_html(content: bytes, name: str, declared: str = "") -> tuple[str, Any, list[str]]:
    """The title, the root element, and what was left out, in words. Raises `DocumentRefused` for elements nested too
    deeply."""
    from lxml import etree, html

    text = decode_text(content, declared or declared_charset(content))
    # A string that is already decoded may not declare an encoding.
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    text = re.sub(MANY_ATTRIBUTES, r"<\1", text)
    if not text.strip():
        return "", html.Element("html"), []
    parser = html.HTMLParser(remove_comments=True, remove_pis=True, no_network=True, huge_tree=True)
    root = html.document_fromstring(text, parser=parser, ensure_head_body=True)
    _check_depth(root, name)
    title = " ".join((root.findtext(".//title") or "").split())
    feet = [
        one for one in root.iter("footer") if next(one.iterancestors("article", "blockquote", "dialog"), None) is None
    ]
    crossed_out = [*root.iter("del", "s", "strike"), *filter(_is_crossed_out, root.iter())]
    for element in [*root.iter(*_DROPPED), *filter(_is_hidden, root.iter()), *feet, *crossed_out]:
        if element.getparent() is not None:
            element.drop_tree()
    for item in [*root.iter("li")]:
        if not item.getchildren() and not _text_of(item):
            item.drop_tree()
    for element in root.iter("section", "form", "dialog"):
        element.tag = "div"
    for button in root.iter("button"):
        button.tail = f" {button.tail or ''}"
    for element in [*root.iter("img", "svg", "math", "input", "select", "textarea")]:
        element.tail = f" {_shown_of(element)} {element.tail or ''}"
        element.drop_tree()
    for raised in root.iter("sup"):
        before = raised.getprevious()
        said = raised.getparent().text if before is None else before.tail or before.text_content()
        raised.text = raise_figures(said or "", raised.text or "")
    for numbered in root.iter("ol"):
        _write_numbers(numbered)
    for table in reversed([*root.iter("table")]):
        _prepare_table(table, name)
    etree.strip_tags(root, *_UNWRAPPED)
    for element in root.iter():
        for name in ("hidden", "role", "style", "class"):
            element.attrib.pop(name, None)
        if element.tag != "pre":
            element.text = element.text and re.sub(r"\s+", " ", element.text)
        element.tail = element.tail and re.sub(r"\s+", " ", element.tail)
    return title, root, [CROSSED_OUT] * any(map(_text_of, crossed_out))


def declared_charset(content: bytes) -> str:
    """The encoding that a page or XML says it has; "": it says none."""
    found = _CHARSET.search(content[:4096])
    return found[1].decode("ascii") if found else ""


def _text_of(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def _shown_of(element: Any) -> str:
    """What people read in a picture, a formula or a field of a form."""
    if element.tag == "img":
        alt, cell = element.get("alt", ""), next(element.iterancestors("td", "th"), None)
        # Short ones are logos, but for the marks that are all of a cell.
        return alt if len(alt.split()) > 2 or (cell is not None and not _text_of(cell)) else ""
    if element.tag == "input":
        kind = element.get("type", "text").lower()
        value = element.get("value", "") if kind in _ENTERED else ""
        return "[x]" if kind in ("checkbox", "radio") and "checked" in element.attrib else value
    if element.tag in ("svg", "select"):
        parts = element.iter("text") if element.tag == "svg" else element.iterfind(".//option[@selected]")
        return " ".join(map(_text_of, parts))
    for fraction in element.iter("mfrac"):
        for upper in fraction[:1]:
            upper.tail = "/"
    return _text_of(element)


def _is_crossed_out(element: Any) -> bool:
    return isinstance(element.tag, str) and bool(_LINE_THROUGH.search(element.get("style", "")))


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


def _write_numbers(numbered: Any) -> None:
    """Numbers that the library does not count: letters, downwards, or given."""
    items = [*numbered.iterchildren("li")]
    kind, step = _NUMBERINGS.get(numbered.get("type", ""), ""), -1 if "reversed" in numbered.attrib else 1
    if not kind and step > 0 and not any(item.get("value") for item in items):
        return
    number = _whole(numbered.get("start", ""), len(items) if step < 0 else 1)
    numbered.tag = "div"
    for item in items:
        number = _whole(item.get("value", ""), number)
        inner = item[0] if len(item) and item[0].tag == "p" and not (item.text or "").strip() else item
        inner.text = f"{show_number(number, kind)}. {inner.text or ''}"
        item.tag = "div"
        number += step


def _own(table: Any, *tags: str) -> list[Any]:
    """Its elements without those of tables in its cells."""
    return [one for one in table.iter(*tags) if next(one.iterancestors("table", _WAS_TABLE)) is table]


def _prepare_table(table: Any, name: str) -> None:
    """A table of data gets a cell in every place; one that only arranges others, or names facts, becomes blocks."""
    for foot in [*table.iterchildren("tfoot")]:
        table.append(foot)
    rows, inner = _own(table, "tr"), [*table.iterdescendants("table")]
    has_blocks = any(True for _ in table.iter("h1", "h2", "h3", "pre", _WAS_TABLE))
    is_data = any(sum(cell.tag in ("td", "th") for cell in row) > 1 for row in rows) and not has_blocks
    facts = [[cell for cell in row if cell.tag in ("td", "th")] for row in rows]
    if is_data and all([cell.tag for cell in cells] == ["th", "td"] for cells in facts):
        for head, value in facts:
            head.tail = ": "
            head.tag = value.tag = "span"
    elif is_data and (not inner or _own(table, "th")):
        for part in inner:
            said = show_rows([_text_of(cell) for cell in row] for row in part.iter("tr"))
            part.tag = "div"
            part[:] = []
            part.text = said
        fill_spans(name, rows, ("td", "th"), "colspan", "rowspan")
        return
    for element in _own(table, "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup"):
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
    return max(1, min(_whole(written, 1), _MOST_SPANNED))


def _whole(written: str, otherwise: int) -> int:
    return int(written) if re.fullmatch(r"\s*-?\d{1,9}\s*", written) else otherwise

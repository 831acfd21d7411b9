"""HTML before it becomes Markdown: what nobody reads leaves, and every place of a spanned cell gets its text."""

from __future__ import annotations

import re
from collections import defaultdict
from copy import deepcopy
from operator import itemgetter
from typing import Any

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.decoding import decode_text
from crag_core.retrieval.readers.packages import MANY_ATTRIBUTES, text_of
from crag_core.retrieval.readers.page import MAX_CELLS, SPANNED, check_count
from crag_core.retrieval.readers.tables import show_rows
from crag_core.retrieval.readers.text import raise_figures

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
# One path each: where paths are united, every node is compared with every other.
_UNSEEN = (
    "//*[self::footer[not(ancestor::article or ancestor::blockquote or ancestor::dialog)]"
    " or (@hidden or @style and re:test(@style, 'display\\s*:\\s*none|visibility\\s*:\\s*hidden', 'i'))"
    " and not(@role='tabpanel' or @role='region')]"
)
_CROSSED_OUT = "//*[self::del or self::s or self::strike or @style and re:test(@style, 'line-through', 'i')]"
_XPATH = {"re": "http://exslt.org/regular-expressions"}
_ENTERED = ("text", "email", "tel", "number", "url", "date", "time", "month", "week", "datetime-local")
# No real page is nested deeper.
_DEEPEST = 200
_MOST_SPANNED = 1_000
_WAS_TABLE = "section"
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
    if root.find("/".join("*" * _DEEPEST)) is not None:
        raise DocumentRefused(
            f"{name}: its elements are nested too deeply (over {_DEEPEST}).",
            hint="Save the page as plain text and add that.",
        )
    title = " ".join((root.findtext(".//title") or "").split())
    crossed_out = root.xpath(_CROSSED_OUT, namespaces=_XPATH)
    for element in [*root.iter(*_DROPPED), *root.xpath(_UNSEEN, namespaces=_XPATH), *crossed_out]:
        if element.getparent() is not None:
            element.drop_tree()
    for item in [*root.iter("li")]:
        if not len(item) and not text_of(item):
            item.drop_tree()
    for element in root.iter("section", "form", "dialog"):
        element.tag = "div"
    for button in root.iter("button"):
        button.tail = f" {button.tail or ''}"
    for element in [*root.iter("img", "svg", "math", "input", "select", "textarea")]:
        element.tail = f" {_shown_of(element)} {element.tail or ''}"
        element.drop_tree()
    for raised in root.iter("sup"):
        raise_mark(raised)
    for table in reversed([*root.iter("table")]):
        _prepare_table(table, name)
    etree.strip_tags(root, *_UNWRAPPED)
    etree.strip_attributes(root, "hidden", "role", "style", "class")
    for element in root.iter():
        if element.tag != "pre":
            element.text = element.text and re.sub(r"\s+", " ", element.text)
        element.tail = element.tail and re.sub(r"\s+", " ", element.tail)
    return title, root, [CROSSED_OUT] * any(map(text_of, crossed_out))


def write_html(root: Any) -> str:
    from lxml import etree

    return str(etree.tostring(root, encoding="unicode", method="html"))


def declared_charset(content: bytes) -> str:
    """The encoding that a page or XML says it has; "": it says none."""
    found = _CHARSET.search(content[:4096])
    return found[1].decode("ascii") if found else ""


def raise_mark(element: Any) -> None:
    """One that stands above the line behind other text, see `raise_figures`."""
    before = element.getprevious()
    said = element.getparent().text if before is None else before.tail or "".join(before.itertext())
    element.text = raise_figures(said or "", element.text or "")


def show_table(table: Any) -> str:
    """The rows of a table of HTML as lines of text."""
    return show_rows([text_of(cell) for cell in row] for row in table.iter("tr"))


def _shown_of(element: Any) -> str:
    """What people read in a picture, a formula or a field of a form."""
    if element.tag == "img":
        alt, cell = element.get("alt", ""), next(element.iterancestors("td", "th"), None)
        # Short ones are logos, but for the marks that are all of a cell.
        return alt if len(alt.split()) > 2 or (cell is not None and not text_of(cell)) else ""
    if element.tag == "input":
        kind = element.get("type", "text").lower()
        value = element.get("value", "") if kind in _ENTERED else ""
        return "[x]" if kind in ("checkbox", "radio") and "checked" in element.attrib else value
    if element.tag in ("svg", "select"):
        parts = element.iter("text") if element.tag == "svg" else element.iterfind(".//option[@selected]")
        return " ".join(map(text_of, parts))
    for fraction in element.iter("mfrac"):
        for upper in fraction[:1]:
            upper.tail = "/"
    return text_of(element)


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
            said = show_table(part)
            part.clear(keep_tail=True)
            part.tag, part.text = "div", said
        fill_spans(name, rows, ("td", "th"), "colspan", "rowspan")
        return
    for element in _own(table, "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup"):
        element.tag = "div"
    table.tag = _WAS_TABLE


def fill_spans(name: str, rows: list[Any], tags: tuple[str, ...], across: str, down: str) -> int:
    """Repeats every spanned cell in each of its places, and takes its span away; how many elements were copied.

    Refuses (`DocumentRefused`) millions of copies.
    """
    copied = 0
    taken = defaultdict[int, dict[int, Any]](dict)  # by row, then by column
    for at, row in enumerate(rows):
        column = 0
        for cell in [cell for cell in row if cell.tag in tags]:
            while column in taken[at]:
                column += 1
            wide, high = min(_span(cell, across), _MOST_SPANNED), min(_span(cell, down), len(rows) - at)
            copied += (wide * high - 1) * sum(1 for _ in cell.iter())
            check_count(name, copied, MAX_CELLS, SPANNED)
            for below in range(at, at + high):
                taken[below] |= dict.fromkeys(range(column, column + wide), cell)
        del row[:]
        for _, cell in sorted(taken.pop(at, {}).items(), key=itemgetter(0)):
            row.append(cell if cell.getparent() is None else deepcopy(cell))
    return copied


def _span(cell: Any, way: str) -> int:
    written = cell.attrib.pop(way, "").strip()
    return max(1, int(written)) if re.fullmatch(r"\d{1,9}", written) else 1

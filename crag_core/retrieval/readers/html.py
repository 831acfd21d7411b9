"""HTML pages: the readable part, as Markdown-like text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.shared.decoding import decode_text
from crag_core.retrieval.readers.shared.markdown_text import join_lines, normalise_text
from crag_core.retrieval.readers.shared.tables import table_to_text

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from bs4.element import PageElement, Tag

_DROPPED = [
    *("script", "style", "noscript", "template", "nav", "footer", "svg", "math", "iframe", "object"),
    *("canvas", "audio", "video", "form", "select", "button", "dialog"),
]
_BLOCKS = frozenset(
    [
        *("address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt"),
        *("fieldset", "figcaption", "figure", "header", "hr", "html", "legend", "main", "ol", "p"),
        *("section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "caption"),
    ]
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_CHARSET = re.compile(rb"""(?:<meta[^>]+charset|<\?xml[^>]+encoding)\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
# No real page is nested deeper, and a parse tree that deep breaks recursive library code.
_DEEPEST = 500


def read_html(content: bytes, name: str) -> tuple[Page, ...]:
    title, body = html_to_text(content, name)
    if title and body and not re.search(r"(?m)^# ", body):
        body = f"# {title}\n\n{body}"
    return (Page(body),)


def html_to_text(content: bytes, name: str) -> tuple[str, str]:
    """The title and the text of the body."""
    from bs4 import BeautifulSoup

    declared = _CHARSET.search(content[:4096])
    text = decode_text(content, declared[1].decode("ascii") if declared else "")
    # lxml would believe the encoding of an XML declaration, though the string is already decoded.
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    try:
        soup = BeautifulSoup(text, "lxml")
        title = soup.title.get_text(" ", strip=True) if soup.title else ""
        _drop_hidden(soup)
        body = _show_page(soup)
    except RecursionError as error:
        raise DocumentRefused(
            f"{name}: its elements are nested too deeply (over {_DEEPEST}).",
            hint="Save the page as plain text and add that.",
        ) from error
    return title, normalise_text(body)


def _drop_hidden(soup: BeautifulSoup) -> None:
    """What is no part of the text: navigation, scripts, forms, and what the page hides."""
    hidden = soup.find_all(lambda tag: tag.has_attr("hidden") or bool(_HIDDEN.search(str(tag.get("style", "")))))
    for tag in [*soup.find_all([*_DROPPED, "head"]), *hidden]:
        # Nested ones went with the outer one; to decompose them again takes quadratic time.
        if not tag.decomposed:
            tag.decompose()


def _show_page(soup: BeautifulSoup) -> str:
    pieces: list[str] = []
    _show(soup, pieces, 0)
    text = "".join(pieces)
    text = re.sub(r"(?m)^(?!\ue000)[ \t]+", "", text)
    # Possessive, from the start of a gap only: a long gap would take quadratic time.
    return re.sub(r"(?:(?<![ \t])[ \t]++)?\n[ \t]*", "\n", text).replace("\ue000", "")


def _show(element: Tag, pieces: list[str], depth: int) -> None:
    if depth > _DEEPEST:
        raise RecursionError
    items = 0
    for child in element.children:
        items += getattr(child, "name", None) == "li"
        _show_child(child, pieces, depth, items)


def _show_child(child: PageElement, pieces: list[str], depth: int, items: int) -> None:
    """`items` counts those of a list up to this one."""
    from bs4.element import NavigableString, PreformattedString, Tag

    if isinstance(child, NavigableString):
        # Comments, CDATA and doctypes are no text.
        if not isinstance(child, PreformattedString):
            pieces.append(re.sub(r"\s+", " ", child))
        return
    if not isinstance(child, Tag):
        return
    tag = child.name
    if tag == "br":
        pieces.append("\n")
    elif tag == "pre":
        pieces.append(f"\n\n{join_lines(normalise_text(child.get_text()))}\n\n")
    elif tag in _HEADINGS:
        heading = _show_line(child, depth)
        pieces.append(f"\n\n{_HEADINGS[tag]}{heading}\n\n" if heading else "")
    elif tag == "li":
        in_order = child.parent is not None and child.parent.name == "ol"
        pieces.append(f"\n{items}. " if in_order else "\n- ")
        _show(child, pieces, depth + 1)
    elif tag == "table" and _is_data(child):
        pieces.append(f"\n\n{_show_data(child, depth)}\n\n")
    else:
        edge = "\n\n" if tag in _BLOCKS else ""
        pieces.append(edge)
        _show(child, pieces, depth + 1)
        pieces.append(edge)


def _is_data(table: Tag) -> bool:
    """A layout table holds other tables, headings or lists, or has one column."""
    if table.find(["table", "h1", "h2", "h3", "ul", "ol", "pre"]):
        return False
    return any(len(row.find_all(["td", "th"])) > 1 for row in table.find_all("tr"))


def _show_line(element: Tag, depth: int) -> str:
    """All of its text on one line."""
    pieces: list[str] = []
    _show(element, pieces, depth + 1)
    return " ".join("".join(pieces).split())


def _show_data(table: Tag, depth: int) -> str:
    rows = [[_show_line(cell, depth) for cell in row.find_all(["td", "th"])] for row in table.find_all("tr")]
    first = table.find("tr")
    headed = first is not None and (
        (first.find("th") is not None and first.find("td") is None) or table.thead is not None
    )
    caption = _show_line(table.caption, depth) if table.caption else ""
    return "\n".join(filter(None, [caption, table_to_text(rows, headed)]))

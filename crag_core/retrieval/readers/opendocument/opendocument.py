"""OpenDocument files: text (.odt), spreadsheets (.ods) and presentations (.odp)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.limits import MAX_PARTS, CellCount, check_count
from crag_core.retrieval.readers.office.sheet_grid import show_grid
from crag_core.retrieval.readers.opendocument.blocks import read_table, show_blocks
from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.shared.markdown_text import join_blocks, normalise_text
from crag_core.retrieval.readers.shared.zip_packages import Package, attribute, local

_FURNITURE = ("footer", "header", "date-time", "page-number", "page")


def read_odt(content: bytes, name: str) -> tuple[Page, ...]:
    return _read(content, name, "an OpenDocument text (.odt)", _read_text)


def read_ods(content: bytes, name: str) -> tuple[Page, ...]:
    return _read(content, name, "an OpenDocument spreadsheet (.ods)", _read_sheets)


def read_odp(content: bytes, name: str) -> tuple[Page, ...]:
    return _read(content, name, "an OpenDocument presentation (.odp)", _read_slides)


def _read(content: bytes, name: str, kind: str, read: Callable[[Any, str], Iterator[Page]]) -> tuple[Page, ...]:
    package = Package(content, name, kind)
    manifest = "META-INF/manifest.xml"
    if manifest in package.names and next(package.parse(manifest).iter("{*}encryption-data"), None) is not None:
        raise package.locked("protected with a password")
    root = package.parse("content.xml")
    try:
        return tuple(read(root, name))
    except DocumentRefused:
        raise
    # Counts and levels that are no numbers, and nesting that nobody wrote by hand.
    except (ValueError, RecursionError) as error:
        raise package.damaged(error) from error


def _read_text(root: Any, name: str) -> Iterator[Page]:
    titles = {"Title"} | {
        attribute(style, "name") for style in root.iter("{*}style") if attribute(style, "parent-style-name") == "Title"
    }
    for body in root.iter("{*}text"):
        if local(body.getparent()) == "body":
            yield Page(normalise_text(join_blocks(show_blocks(body, frozenset(titles), CellCount(name)))))


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
            text = show_grid(read_table(sheet, count))
            yield Page(normalise_text(f"# {attribute(sheet, 'name')}\n\n{text}") if text else "")


def _read_slides(root: Any, name: str) -> Iterator[Page]:
    slides = [slide for body in root.iter("{*}presentation") for slide in body.iterchildren("{*}page")]
    check_count(name, len(slides), MAX_PARTS, "slides")
    count = CellCount(name)
    for number, slide in enumerate(slides, 1):
        yield Page(normalise_text(join_blocks(_show_slide(slide, count))), number)


def _show_slide(slide: Any, count: CellCount) -> Iterator[str]:
    shapes = [shape for shape in slide.iterchildren("*") if attribute(shape, "class") not in _FURNITURE]
    titles = [shape for shape in shapes if attribute(shape, "class") == "title"]
    for shape in titles:
        yield from (f"# {' '.join(block.split())}" for block in _show_shape(shape, count) if block)
    for shape in shapes:
        if shape not in titles:
            yield from _show_shape(shape, count)
    for notes in slide.iterchildren("{*}notes"):
        said = [block for shape in notes if attribute(shape, "class") == "notes" for block in _show_shape(shape, count)]
        if any(said):
            yield "Notes:\n" + "\n".join(filter(None, said))


def _show_shape(shape: Any, count: CellCount) -> Iterator[str]:
    # A shape may hold paragraphs itself, or a box or a table with them.
    yield from show_blocks(shape, frozenset(), count) if local(shape) != "notes" else ()

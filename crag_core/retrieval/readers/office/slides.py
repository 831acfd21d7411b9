"""PowerPoint presentations: a page for each slide with its title as a heading, its text, and its notes.

In the order of the slide's shapes, as a screen reader reads them. Hidden slides are read too.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from crag_core.retrieval.readers.page import MAX_PARTS, Page, check_count
from crag_core.retrieval.readers.shared.markdown_text import join_blocks, normalise_text
from crag_core.retrieval.readers.shared.tables import pair_cells, table_to_text
from crag_core.retrieval.readers.shared.zip_packages import Package, attribute, local

if TYPE_CHECKING:
    from pptx.slide import Slide
    from pptx.table import Table

# Date, footer and number repeat on every slide.
_FURNITURE = ("dt", "ftr", "sldNum", "hdr", "sldImg")
_TITLES = ("title", "ctrTitle")


def read_pptx(content: bytes, name: str) -> tuple[Page, ...]:
    package = Package(content, name, "a PowerPoint presentation (.pptx)")
    package.check_xml()
    import pptx

    with package.checked():
        slides = pptx.Presentation(io.BytesIO(content)).slides
        check_count(name, len(slides), MAX_PARTS, "slides")
        return tuple(Page(_show_slide(slide, package), number) for number, slide in enumerate(slides, 1))


def _show_slide(slide: Slide, package: Package) -> str:
    shapes = list(_walk(slide.shapes._spTree))
    titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
    blocks = [f"# {title}" for shape in titles if (title := " ".join(" ".join(_paragraphs(shape)).split()))]
    for shape in shapes:
        if shape not in titles and _placeholder(shape) not in _FURNITURE:
            blocks.extend(_show_shape(shape, slide, package))
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and (notes := frame.text.strip()):
        blocks.append(f"Notes:\n{notes}")
    return normalise_text(join_blocks(blocks))


def _walk(tree: Any) -> Iterator[Any]:
    """Shapes with content, also in groups; of alternatives the first, which newer programs show."""
    for child in tree.iterchildren():
        tag = local(child)
        if tag in ("sp", "graphicFrame", "cxnSp"):
            yield child
        elif tag in ("grpSp", "Choice"):
            yield from _walk(child)
        elif tag == "AlternateContent":
            yield from _walk(child if any(local(one) == "Choice" for one in child) else child[0])


def _show_shape(shape: Any, slide: Slide, package: Package) -> Iterator[str]:
    from pptx.shapes.graphfrm import GraphicFrame

    if local(shape) != "graphicFrame":
        yield from _paragraphs(shape, listed=_placeholder(shape) in ("", "body", "obj"))
        return
    frame = GraphicFrame(shape, slide.shapes)
    if frame.has_table:
        yield table_to_text(_read_table(frame.table))
        return
    for element in shape.iter("{*}chart", "{*}relIds"):
        relation = attribute(element, "dm") or attribute(element, "id")
        if relation in slide.part.rels:
            drawing = package.parse_xml(slide.part.related_part(relation).blob)
            yield "\n".join(_show_chart(drawing) if local(element) == "chart" else _show_diagram(drawing))


def _placeholder(shape: Any) -> str | None:
    """Its type; "" for one without a type (the content of most layouts), None for what is no placeholder."""
    for element in shape.iter("{*}ph"):
        return str(element.get("type", ""))
    return None


def _paragraphs(shape: Any, listed: bool = False) -> Iterator[str]:
    for body in shape.iterchildren("{*}txBody"):
        for paragraph in body.iterchildren("{*}p"):
            text = _read_text(paragraph)
            if text:
                marked = {local(mark) for mark in paragraph.iterchildren("{*}pPr") for mark in mark}
                has_bullet = bool(marked & {"buChar", "buAutoNum", "buBlip"}) or (listed and "buNone" not in marked)
                yield f"- {' '.join(text.split())}" if has_bullet else text


def _read_text(paragraph: Any) -> str:
    pieces = []
    for element in paragraph.iter("{*}t", "{*}br", "{*}tab"):
        pieces.append({"br": "\n", "tab": "\t"}.get(local(element)) or element.text or "")
    return "".join(pieces).strip()


def _read_table(table: Table) -> list[list[str]]:
    """Merged cells repeat their text in each of their places."""
    rows = [
        [" ".join(filter(None, map(_read_text, cell._tc.iter("{*}p")))) for cell in row.cells] for row in table.rows
    ]
    for top, row in enumerate(table.rows):
        for left, cell in enumerate(row.cells):
            if cell.is_merge_origin:
                for place in rows[top : top + cell.span_height]:
                    width = len(place[left : left + cell.span_width])
                    place[left : left + width] = [rows[top][left]] * width
    return rows


def _show_chart(chart: Any) -> Iterator[str]:
    """Its title, and a line for each category with the values of the series."""
    yield from ("".join(text.text or "" for text in title.iter("{*}t")) for title in chart.iter("{*}title"))
    series = list(chart.iter("{*}ser"))
    columns = [_points(one, "cat", "xVal") for one in series[:1]] + [_points(one, "val", "yVal") for one in series]
    names = [" ".join(_points(one, "tx").values()) for one in series]
    places = sorted({place for column in columns for place in column})
    for place in places:
        yield pair_cells(["category", *names], [column.get(place, "") for column in columns])


def _points(series: Any, *tags: str) -> dict[int, str]:
    points = (point for tag in tags for part in series.iterchildren(f"{{*}}{tag}") for point in part.iter("{*}pt"))
    return {int(point.get("idx", 0)): point.findtext("{*}v") or "" for point in points}


def _show_diagram(drawing: Any) -> Iterator[str]:
    for point in drawing.iter("{*}pt"):
        yield from (f"- {text}" for paragraph in point.iter("{*}p") if (text := _read_text(paragraph)))

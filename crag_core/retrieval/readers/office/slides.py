"""Slides of PowerPoint before they become Markdown: hidden ones leave, charts become tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from crag_core.retrieval.readers.html import CROSSED_OUT, fill_spans
from crag_core.retrieval.readers.office.markup import (
    A,
    Prepared,
    R,
    keep_one_way,
    maker,
    new_paragraph,
    raise_runs,
    remove,
    run_text,
    write_formulas,
)
from crag_core.retrieval.readers.office.workbook import show_value
from crag_core.retrieval.readers.packages import Package, attribute, local, relations
from crag_core.retrieval.readers.page import MAX_PARTS, check_count, name_lost

_FURNITURE = ("dt", "sldNum", "hdr")
NOTES = "\ue000Notes:"
"""What a line before the notes of a slide begins with."""


def prepare_slides(package: Package) -> Prepared:
    related = relations(package, "ppt/presentation.xml")
    slides = [related.get(one.get(f"{R}id"), "") for one in package.parse("ppt/presentation.xml").iter("{*}sldId")]
    check_count(package.name, len(slides), MAX_PARTS, "slides")
    changed, lost = {}, Counter[str]()
    footers: set[str] = set()
    for part in slides:
        root = changed[part] = package.parse(part)
        tree = root.find("{*}cSld/{*}spTree")
        if root.get("show") in ("0", "false") or tree is None:
            lost["hidden slide"] += tree is not None
            root.clear()
        else:
            keep_one_way(root)
            _drop_furniture(root, footers)
            _prepare_slide_text(root, lost)
            for table in root.iter(f"{A}tbl"):
                for cell in [one for one in table.iter(f"{A}tc") if one.get("hMerge") or one.get("vMerge")]:
                    remove(cell)
                fill_spans(package.name, [*table.iterchildren(f"{A}tr")], (f"{A}tc",), "gridSpan", "rowSpan")
            related = relations(package, part)
            _write_drawings(package, root, related)
            _append_slide_notes(tree, [package.parse(one) for one in related.values() if "/notesSlides/" in one])
    # The library gives notes to other slides where the files are numbered otherwise.
    for part in package.names:
        if re.match(r"ppt/notesSlides/\w+\.xml", part):
            changed[part] = package.parse(part)
            changed[part].clear()
    return changed, name_lost(lost)


def _place_of(shape: Any) -> str | None:
    """What a shape is for, such as "title" or "ftr"; None for one that stands in no place of the layout."""
    mark = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    return None if mark is None else mark.get("type", "")


def _drop_furniture(root: Any, footers: set[str]) -> None:
    """Hidden shapes leave, dates and numbers of slides, and footers that an earlier slide has."""
    for shape in [*root.iter("{*}sp")]:
        place, shown = _place_of(shape), run_text(shape)
        is_again = place == "ftr" and shown in footers
        if is_again or place in _FURNITURE or shape.find("{*}nvSpPr/{*}cNvPr[@hidden='1']") is not None:
            remove(shape)
        if place == "ftr":
            footers.add(shown)


def _append_slide_notes(tree: Any, notes: list[Any]) -> None:
    shapes = [shape for one in notes for shape in one.iter("{*}sp")]
    own = [shape for shape in shapes if _place_of(shape) not in (*_FURNITURE, "ftr", "sldImg")]
    said = [text for shape in own for text in map(run_text, shape.iter(f"{A}p")) if text]
    if said:
        make = maker(tree.tag.removesuffix("spTree"))
        tree.append(make.sp(make.txBody(new_paragraph(A, NOTES), new_paragraph(A, " ".join(said)))))


def _prepare_slide_text(root: Any, lost: Counter[str]) -> None:
    write_formulas(root, A)
    for run in [*root.iter(f"{A}r")]:
        looks = run.find(f"{A}rPr")
        if looks is not None and looks.get("strike", "noStrike") != "noStrike":
            lost[CROSSED_OUT] += 1
            remove(run)
    for paragraph in root.iter(f"{A}p"):
        raise_runs(paragraph, A)
    # The library puts a space between runs, which would cut a word of which some letters are bold.
    for run in [*root.iter(f"{A}r")]:
        before = run.getprevious()
        if before is not None and before.tag == run.tag:
            for text in before.iterchildren(f"{A}t"):
                run.find(f"{A}t").text = (text.text or "") + (run.findtext(f"{A}t") or "")
            remove(before)


def _write_drawings(package: Package, root: Any, related: dict[str, str]) -> None:
    """Charts and diagrams as tables, in place of what their frame holds."""
    for drawing in [*root.iter("{*}chart", "{*}relIds")]:
        target = related.get(attribute(drawing, "dm") or attribute(drawing, "id"), "")
        if target in package.names:
            shown = package.parse(target)
            rows = _chart_rows(shown) if local(drawing) == "chart" else _diagram_rows(shown)
            make, frame = maker(A), drawing.getparent()
            cells = ([make.tc(make.txBody(new_paragraph(A, text))) for text in row] for row in rows)
            del frame[:]
            frame.append(make.tbl(*(make.tr(*row, h="1") for row in cells)))
            frame.set("uri", "http://schemas.openxmlformats.org/drawingml/2006/table")


def _chart_rows(chart: Any) -> Iterator[list[str]]:
    """A row for each category, with the values of the series."""
    series = [*chart.iter("{*}ser")]
    columns = [_points(one, "cat", "xVal") for one in series[:1]] + [_points(one, "val", "yVal") for one in series]
    title = " ".join(run_text(one) for one in [*chart.iter("{*}title")][:1])
    yield [
        title or "category",
        *(" ".join(_points(one, "tx").values()) or f"series {n}" for n, one in enumerate(series, 1)),
    ]
    for place in sorted({place for column in columns for place in column}):
        yield [column.get(place, "") for column in columns]


def _points(series: Any, *tags: str) -> dict[int, str]:
    """Texts by place: numbers as they are shown, of groups of categories the names of all."""
    found: dict[int, str] = {}
    for part in (part for tag in tags for part in series.iterchildren(f"{{*}}{tag}")):
        code = part.findtext(".//{*}formatCode")
        for level in [*part.iter("{*}lvl")] or [part]:
            own = {int(point.get("idx", 0)): point.findtext("{*}v") or "" for point in level.iter("{*}pt")}
            own = own if code is None else {place: show_value(shown, code) for place, shown in own.items()}
            name = ""
            for place in sorted({*found, *own}):
                name = own.get(place, name)
                found[place] = f"{name} {found.get(place, '')}".strip()
    return found


def _diagram_rows(drawing: Any) -> Iterator[list[str]]:
    for point in drawing.iter("{*}pt"):
        yield from ([run_text(paragraph)] for paragraph in point.iter(f"{A}p") if run_text(paragraph))

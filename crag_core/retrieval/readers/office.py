"""Office and OpenDocument files before they become Markdown: hidden parts leave, spanned cells are filled, and what the
library does not read (headers, charts) is put where it reads it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from crag_core.retrieval.readers.html import CROSSED_OUT, fill_spans, raise_mark
from crag_core.retrieval.readers.packages import Package, attribute, local, relations, text_of
from crag_core.retrieval.readers.page import MAX_CELLS, MAX_PARTS, SPANNED, check_count, name_lost
from crag_core.retrieval.readers.tables import show_rows
from crag_core.retrieval.readers.text import raise_figures, show_number
from crag_core.retrieval.readers.workbook import show_value

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
Prepared = tuple[dict[str, Any], list[str]]
"""The root elements that changed, by the file they are of, and what was left out, in words."""


# --- Word and PowerPoint ----------------------------------------------------------------------------------------------


def _remove(element: Any) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _text(element: Any) -> str:
    return " ".join("".join(piece.text or "" for piece in element.iter("{*}t")).split())


def _maker(space: str) -> Any:
    """Makes elements: `_maker(W).p()`."""
    from lxml.builder import ElementMaker

    return ElementMaker(namespace=space.strip("{}"))


def _paragraph(space: str, text: str) -> Any:
    make = _maker(space)
    return make.p(make.r(make.t(text)))


def _keep_one_way(root: Any) -> None:
    """Where the same is written for newer and older programs, the first with text stays, in the place of all."""
    for ways in [*root.iter("{*}AlternateContent")]:
        with_text = [one for one in ways if _text(one)]
        for child in [child for one in (with_text or [*ways])[:1] for child in one]:
            ways.addprevious(child)
        _remove(ways)


def _raise_runs(paragraph: Any, space: str) -> None:
    """Text that stands above the line, see `raise_figures`."""
    before = ""
    for piece in paragraph.iter(f"{space}t"):
        looks = piece.getparent().find(f"{space}rPr")
        rise = looks.get("baseline", "0").strip("%") if looks is not None else "0"
        if int(rise) > 0 or _value(looks, "vertAlign") == "superscript":
            piece.text = raise_figures(before, piece.text or "")
        before = piece.text or before


_LETTERS = ("oMathPara", "oMath", "r", "rPr", "t", "oMathParaPr", "ctrlPr", "sty", "jc")


def _write_formulas(root: Any, space: str) -> None:
    """Formulas without fractions and the like as runs of text, so that they stay in their sentence."""
    for formula in [*root.iter("{*}oMath")]:
        if all(local(one) in _LETTERS for one in formula.iter() if "/math" in one.tag):
            holder = formula.getparent() if local(formula.getparent()) in ("m", "oMathPara") else formula
            holder.addprevious(_paragraph(space, _text(formula))[0])
            _remove(holder)


def _append_margins(body: Any, margins: Iterable[Any], show: Callable[[Any], str], make: Callable[[str], Any]) -> None:
    """Of headers and footers what has letters and stands nowhere else, once each, at the end; no page numbers."""
    said = show(body)
    for shown in [show(line) for margin in margins for line in margin.iter("{*}p")]:
        is_text = re.search(r"[^\W\d_]{2}", shown) and not re.fullmatch(r"\w+ \d+( \w+ \d+)?", shown)
        if is_text and shown not in said:
            said += f" {shown}"
            body.append(make(shown))


# --- Word -------------------------------------------------------------------------------------------------------------

# Letters of the fonts Symbol and Wingdings, by their numbers there.
_SYMBOLS = dict(zip((0x44, 0x6D, 0xA3, 0xB0, 0xB1, 0xB3, 0xB4, 0xB8, 0xB9, 0xBB), "Δµ≤°±≥×÷≠≈", strict=True))
_WINGDINGS = {0x6F: "[ ]", 0x78: "[x]", 0xA8: "[ ]", 0xE0: "→", 0xFB: "✗", 0xFC: "✓", 0xFD: "[x]", 0xFE: "[x]"}
# What is no text: deleted, moved elsewhere, a remark, or what a content control is called.
_UNREAD = [f"{W}{tag}" for tag in ("del", "moveFrom", "commentReference", "sdtPr", "sdtEndPr")]


def prepare_word(package: Package) -> Prepared:
    from lxml.etree import strip_elements, strip_tags

    root = package.parse("word/document.xml")
    lost = Counter[str]()
    _keep_one_way(root)
    comments = len([*root.iter(f"{W}commentReference")])
    for row in [*root.iter(f"{W}tr")]:
        if row.find(f"{W}trPr/{W}del") is not None:
            _remove(row)
    strip_elements(root, *_UNREAD, with_tail=False)
    # Content controls may stand around rows and cells.
    strip_tags(root, f"{W}sdt", f"{W}sdtContent")
    styles = _Styles(package)
    for run in [*root.iter(f"{W}r")]:
        _prepare_run(run, styles, lost)
    _write_formulas(root, W)
    for paragraph in [*root.iter(f"{W}p")]:
        _prepare_paragraph(paragraph, styles)
    lost["comment"] = comments
    lost["chart or diagram"] = len([*root.iter("{*}chart", "{*}relIds")])
    copied = 0
    # The inner ones first, which grow with those around them.
    for table in reversed([*root.iter(f"{W}tbl")]):
        copied += fill_spans(package.name, _name_spans(table), (f"{W}tc",), "across", "down")
        check_count(package.name, copied, MAX_CELLS, SPANNED)
        if any(local(one) in ("tc", "txbxContent") for one in table.iterancestors()):
            _write_rows(table)
    # Bold letters inside a word would cut it, and spans are filled.
    strip_elements(root, f"{W}rPr", f"{W}gridSpan", f"{W}vMerge", with_tail=False)
    changed = {"word/document.xml": root, **styles.forget_numbers()}
    for body in root.iter(f"{W}body"):
        _append_notes(package, body, changed)
        _append_margins(body, _margins(package, body), _text, partial(_paragraph, W))
    return changed, name_lost(lost)


def _value(element: Any, tag: str) -> str:
    found = element.find(f"{W}{tag}") if element is not None else None
    return found.get(f"{W}val", "") if found is not None else ""


def _has(looks: Any, *tags: str) -> bool:
    """Whether one of these properties is there, and not switched off."""
    marks = [looks.find(f"{W}{tag}") for tag in tags] if looks is not None else []
    return any(mark is not None and mark.get(f"{W}val", "true") not in ("0", "false", "off") for mark in marks)


def _prepare_run(run: Any, styles: _Styles, lost: Counter[str]) -> None:
    """What is hidden or crossed out leaves; signs that are elements become text."""
    looks = run.find(f"{W}rPr")
    is_crossed_out = _has(looks, "strike", "dstrike") and bool(_text(run))
    if is_crossed_out or _has(looks, "vanish") or _value(looks, "rStyle") in styles.hidden:
        lost[CROSSED_OUT] += is_crossed_out
        return _remove(run)
    for mark in run:
        if local(mark) == "sym":
            number = int(mark.get(f"{W}char", "0"), 16)
            font = _SYMBOLS if mark.get(f"{W}font") == "Symbol" else _WINGDINGS
            mark.text = chr(number) if number < 0xF000 else font.get(number - 0xF000, "")
            mark.tag = f"{W}t"
            lost["symbol"] += not mark.text
        elif local(mark) == "fldChar":
            lost["form choice"] += any(True for _ in mark.iter(f"{W}checkBox", f"{W}ddList"))
        elif local(mark) == "cr":
            mark.tag = f"{W}br"


def _prepare_paragraph(paragraph: Any, styles: _Styles) -> None:
    """With its number, as a heading where it is one, its large first letter in its place."""
    _raise_runs(paragraph, W)
    looks = paragraph.find(f"{W}pPr")
    if looks is None:
        return
    level, below = _value(looks, "outlineLvl"), paragraph.getnext()
    number = styles.number(looks)
    if level in tuple("012345"):
        for style in looks.findall(f"{W}pStyle"):
            looks.remove(style)
        looks.insert(0, looks.makeelement(f"{W}pStyle", {f"{W}val": f"Heading{int(level) + 1}"}))
    if number:
        for list_of in looks.findall(f"{W}numPr"):
            looks.remove(list_of)
        looks.addnext(_paragraph(W, f"{number} ")[0])
    if looks.find(f"{W}framePr[@{W}dropCap]") is not None and below is not None and local(below) == "p":
        place = 1 if below.find(f"{W}pPr") is not None else 0
        below[place:place] = paragraph.findall(f"{W}r")
        _remove(paragraph)


@dataclass
class _List:
    """A list of Word: what it says of each level; the last number of each, which lists of one kind share; the numbers
    before the first where it begins anew."""

    levels: dict[int, Any]
    counts: dict[int, int]
    anew: dict[int, int]

    def next_number(self, level: int) -> str:
        self.counts |= self.anew
        self.anew = {}
        for deeper in [at for at in self.counts if at > level]:
            del self.counts[deeper]
        self.counts[level] = self.counts.get(level, self._start(level) - 1) + 1
        is_legal = self.levels[level].find(f"{W}isLgl") is not None

        def show(found: re.Match[str]) -> str:
            at = int(found[1]) - 1
            number = self.counts.setdefault(at, self._start(at))
            return show_number(number, "" if is_legal else _value(self.levels.get(at), "numFmt"))

        return re.sub(r"%([1-9])", show, _value(self.levels[level], "lvlText")).strip()

    def _start(self, level: int) -> int:
        return int(_value(self.levels.get(level), "start") or 1)


class _Styles:
    """What the styles of a Word file hide, and the lists that they and paragraphs belong to."""

    def __init__(self, package: Package) -> None:
        self._parts = {part: package.parse(part) for part in ("word/styles.xml",) if part in package.names}
        styles = [one for root in self._parts.values() for one in root.iterchildren(f"{W}style")]
        self._styles = {one.get(f"{W}styleId", ""): one for one in styles}
        self.hidden = {name for name, one in self._styles.items() if _has(one.find(f"{W}rPr"), "vanish")}
        self._lists: dict[str, _List] = {}
        for root in package.roots("word/numbering.xml"):
            kinds: dict[str, dict[int, Any]] = {
                one.get(f"{W}abstractNumId"): {_level(of): of for of in one.iterchildren(f"{W}lvl")}
                for one in root.iterchildren(f"{W}abstractNum")
            }
            counts = defaultdict[str, dict[int, int]](dict)
            for one in root.iterchildren(f"{W}num"):
                kind, starts = _value(one, "abstractNumId"), one.iterfind(f"{W}lvlOverride[{W}startOverride]")
                anew = {_level(of): int(_value(of, "startOverride")) - 1 for of in starts}
                self._lists[one.get(f"{W}numId")] = _List(kinds.get(kind, {}), counts[kind], anew)

    def number(self, looks: Any) -> str:
        """ "1.2", "(a)", "Article 3": as it is shown; "": none, or a bullet. `looks` are those of a paragraph."""
        marks, style = [looks.find(f"{W}numPr")], _value(looks, "pStyle")
        # Its own list and level there, or those of its style, or of one that this is based on.
        while style in self._styles and len(marks) < _MOST_STYLES:
            marks.append(self._styles[style].find(f"{W}pPr/{W}numPr"))
            style = _value(self._styles[style], "basedOn")
        name, level = (next(filter(None, (_value(mark, tag) for mark in marks)), "") for tag in ("numId", "ilvl"))
        return self._lists[name].next_number(int(level or 0)) if self._is_counted(name, level) else ""

    def _is_counted(self, name: str, level: str) -> bool:
        own = self._lists[name].levels.get(int(level or 0)) if name in self._lists else None
        return _value(own, "numFmt") not in ("bullet", "none", "")

    def forget_numbers(self) -> dict[str, Any]:
        """The part of the styles, without the lists that `number` writes out."""
        for style in self._styles.values():
            for mark in style.findall(f"{W}pPr/{W}numPr"):
                if self._is_counted(_value(mark, "numId"), _value(mark, "ilvl")):
                    _remove(mark)
        return self._parts


# Styles that are based on each other; no real ones are more.
_MOST_STYLES = 20


def _level(element: Any) -> int:
    return int(element.get(f"{W}ilvl", "0"))


def _name_spans(table: Any) -> list[Any]:
    """Its rows, with spans as HTML has them, and an empty cell where a row begins later."""
    rows = [*table.iterchildren(f"{W}tr")]
    above: dict[int, Any] = {}
    for row in rows:
        cells, at = [*row.iterchildren(f"{W}tc")], int(_value(row.find(f"{W}trPr"), "gridBefore") or 0)
        if at:
            row.insert(0, _maker(W).tc(_paragraph(W, ""), across=str(at), down="1"))
        begun: dict[int, Any] = {}
        for cell in cells:
            wide, merge = _value(cell.find(f"{W}tcPr"), "gridSpan") or "1", cell.find(f"{W}tcPr/{W}vMerge")
            if merge is not None and merge.get(f"{W}val") != "restart" and at in above:
                begun[at] = above[at]
                above[at].set("down", str(int(above[at].get("down")) + 1))
                row.remove(cell)
            else:
                begun[at] = cell
                cell.attrib.update({"across": wide, "down": "1"})
            at += int(wide)
        above = begun
    return rows


def _write_rows(table: Any) -> None:
    """A table inside a cell or box, where the library reads no tables, as lines."""
    rows = [[_text(cell) for cell in row.iterchildren(f"{W}tc")] for row in table.iterchildren(f"{W}tr")]
    for line in show_rows(rows).splitlines():
        table.addprevious(_paragraph(W, line))
    _remove(table)


def _append_notes(package: Package, body: Any, changed: dict[str, Any]) -> None:
    """Footnotes and endnotes at the end, with the numbers that they have in the text; comments leave."""
    for kind, counting in (("footnote", ""), ("endnote", "lowerRoman"), ("comment", "")):
        for root in package.roots(f"word/{kind}s.xml"):
            changed[f"word/{kind}s.xml"] = root
            notes = {one.get(f"{W}id"): _text(one) for one in root}
            del root[:]
            for number, mark in enumerate([*body.iter(f"{W}{kind}Reference")], 1):
                mark.tag, mark.text = f"{W}t", f"[{show_number(number, counting)}]"
                body.append(_paragraph(W, f"{mark.text} {notes.get(mark.get(f'{W}id'), '')}"))


def _margins(package: Package, body: Any) -> list[Any]:
    """The headers and footers that it refers to."""
    related = relations(package, "word/document.xml")
    marks = body.iter(f"{W}headerReference", f"{W}footerReference")
    margins = package.roots(*dict.fromkeys(related.get(mark.get(f"{R}id"), "") for mark in marks))
    for margin in margins:
        _keep_one_way(margin)
    return margins


# --- PowerPoint -------------------------------------------------------------------------------------------------------

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
            _keep_one_way(root)
            _drop_furniture(root, footers)
            _prepare_slide_text(root, lost)
            for table in root.iter(f"{A}tbl"):
                for cell in [one for one in table.iter(f"{A}tc") if one.get("hMerge") or one.get("vMerge")]:
                    _remove(cell)
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
        place, shown = _place_of(shape), _text(shape)
        is_again = place == "ftr" and shown in footers
        if is_again or place in _FURNITURE or shape.find("{*}nvSpPr/{*}cNvPr[@hidden='1']") is not None:
            _remove(shape)
        if place == "ftr":
            footers.add(shown)


def _append_slide_notes(tree: Any, notes: list[Any]) -> None:
    shapes = [shape for one in notes for shape in one.iter("{*}sp")]
    own = [shape for shape in shapes if _place_of(shape) not in (*_FURNITURE, "ftr", "sldImg")]
    said = [text for shape in own for text in map(_text, shape.iter(f"{A}p")) if text]
    if said:
        make = _maker(tree.tag.removesuffix("spTree"))
        tree.append(make.sp(make.txBody(_paragraph(A, NOTES), _paragraph(A, " ".join(said)))))


def _prepare_slide_text(root: Any, lost: Counter[str]) -> None:
    _write_formulas(root, A)
    for run in [*root.iter(f"{A}r")]:
        looks = run.find(f"{A}rPr")
        if looks is not None and looks.get("strike", "noStrike") != "noStrike":
            lost[CROSSED_OUT] += 1
            _remove(run)
    for paragraph in root.iter(f"{A}p"):
        _raise_runs(paragraph, A)
    # The library puts a space between runs, which would cut a word of which some letters are bold.
    for run in [*root.iter(f"{A}r")]:
        before = run.getprevious()
        if before is not None and before.tag == run.tag:
            for text in before.iterchildren(f"{A}t"):
                run.find(f"{A}t").text = (text.text or "") + (run.findtext(f"{A}t") or "")
            _remove(before)


def _write_drawings(package: Package, root: Any, related: dict[str, str]) -> None:
    """Charts and diagrams as tables, in place of what their frame holds."""
    for drawing in [*root.iter("{*}chart", "{*}relIds")]:
        target = related.get(attribute(drawing, "dm") or attribute(drawing, "id"), "")
        if target in package.names:
            shown = package.parse(target)
            rows = _chart_rows(shown) if local(drawing) == "chart" else _diagram_rows(shown)
            make, frame = _maker(A), drawing.getparent()
            cells = ([make.tc(make.txBody(_paragraph(A, text))) for text in row] for row in rows)
            del frame[:]
            frame.append(make.tbl(*(make.tr(*row, h="1") for row in cells)))
            frame.set("uri", "http://schemas.openxmlformats.org/drawingml/2006/table")


def _chart_rows(chart: Any) -> Iterator[list[str]]:
    """A row for each category, with the values of the series."""
    series = [*chart.iter("{*}ser")]
    columns = [_points(one, "cat", "xVal") for one in series[:1]] + [_points(one, "val", "yVal") for one in series]
    title = " ".join(_text(one) for one in [*chart.iter("{*}title")][:1])
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
        yield from ([_text(paragraph)] for paragraph in point.iter(f"{A}p") if _text(paragraph))


# --- OpenDocument -----------------------------------------------------------------------------------------------------

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
        _append_margins(text, margins, text_of, _maker(TEXT).p)
    return {"content.xml": root}, [f"hidden sheet {one.get(f'{TABLE}name', '')}" for one in sheets] + name_lost(lost)


def _prepare_open_slide(page: Any) -> None:
    """Its title as its name, which the library takes for a heading; a line above its notes."""
    titles = [one for one in page.iter("{*}frame") if attribute(one, "class") == "title"][:1]
    page.set(f"{DRAW}name", text_of(titles[0]) if titles else " ")
    for title in titles:
        title.tag = _GONE
    for first in [next(notes.iter(f"{TEXT}p"), None) for notes in page.iter("{*}notes")]:
        if first is not None:
            first.addprevious(_maker(TEXT).p("Notes:"))


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
        _remove(cell)
    return len({place for place, cell in cells if text_of(cell)})

"""Office and OpenDocument files before they become Markdown: hidden parts leave, spanned cells are filled, and what the
library does not read (headers, charts) is put where it reads it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any

from crag_core.base.text.display import counted
from crag_core.retrieval.readers.html import CROSSED_OUT, fill_spans
from crag_core.retrieval.readers.packages import Package, attribute, local, relations
from crag_core.retrieval.readers.page import MAX_CELLS, MAX_PARTS, SPANNED, check_count
from crag_core.retrieval.readers.tables import show_rows
from crag_core.retrieval.readers.text import raise_figures, show_number
from crag_core.retrieval.readers.workbook import show_value

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
Prepared = tuple[dict[str, Any], list[str]]
"""The root elements that changed, by the file they are of, and what was left out, in words."""


def _remove(element: Any) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def raise_runs(pieces: Iterable[tuple[Any, bool]]) -> None:
    """Of text elements in their order those that stand above the line, see `raise_figures`."""
    before = ""
    for piece, is_raised in pieces:
        if is_raised:
            piece.text = raise_figures(before, piece.text or "")
        before = piece.text or before


_LETTERS = ("oMathPara", "oMath", "r", "rPr", "t", "oMathParaPr", "ctrlPr", "sty", "jc")


def write_formulas(root: Any, space: str) -> None:
    """Formulas without fractions and the like as runs of text, so that they stay in their sentence."""
    from lxml.etree import SubElement

    for formula in [*root.iter("{*}oMath")]:
        if all(local(one) in _LETTERS for one in formula.iter() if "/math" in one.tag):
            holder = formula.getparent() if local(formula.getparent()) in ("m", "oMathPara") else formula
            run = holder.makeelement(f"{space}r")
            SubElement(run, f"{space}t").text = _text(formula)
            holder.addprevious(run)
            _remove(holder)


def _text(element: Any) -> str:
    return " ".join("".join(piece.text or "" for piece in element.iter("{*}t")).split())


# --- Word -------------------------------------------------------------------------------------------------------------


# Letters of the fonts Symbol and Wingdings, by their numbers there.
_SYMBOLS = dict(zip((0x44, 0x6D, 0xA3, 0xB0, 0xB1, 0xB3, 0xB4, 0xB8, 0xB9, 0xBB), "Δµ≤°±≥×÷≠≈", strict=True))
_WINGDINGS = {0x6F: "[ ]", 0x78: "[x]", 0xA8: "[ ]", 0xE0: "→", 0xFB: "✗", 0xFC: "✓", 0xFD: "[x]", 0xFE: "[x]"}


def prepare_word(package: Package) -> Prepared:
    root = package.parse("word/document.xml")
    lost = Counter[str]()
    _keep_one_way(root)
    for mark in [*root.iter(f"{W}del", f"{W}moveFrom")]:
        holder = mark.getparent()
        _remove(holder.getparent() if local(holder) == "trPr" else mark)
    styles = _Styles(package)
    for run in [*root.iter(f"{W}r")]:
        _prepare_run(run, styles, lost)
    write_formulas(root, W)
    for paragraph in [*root.iter(f"{W}p")]:
        _prepare_paragraph(paragraph, styles)
    changed = {"word/document.xml": root, **styles.forget_numbers()}
    # Bold letters inside a word would cut it.
    for looks in [*root.iter(f"{W}rPr")]:
        _remove(looks)
    copied = 0
    for table in root.iter(f"{W}tbl"):
        copied += _fill_word_table(table)
        check_count(package.name, copied, MAX_CELLS, SPANNED)
    for table in reversed([*root.iter(f"{W}tbl")]):
        if any(local(one) in ("tc", "txbxContent") for one in table.iterancestors()):
            _write_rows(table)
    body = root.find(f"{W}body")
    if body is not None:
        _append_notes(package, body, changed)
        _append_margins(package, root, body)
    lost["chart or diagram"] = sum(1 for _ in root.iter("{*}chart", "{*}relIds"))
    return changed, [counted(number, what) for what, number in lost.items() if number]


def _is_on(mark: Any) -> bool:
    return mark is not None and mark.get(f"{W}val", "true") not in ("0", "false", "off")


def _prepare_run(run: Any, styles: _Styles, lost: Counter[str]) -> None:
    """What is hidden or crossed out leaves; signs that are elements become text."""
    looks = run.find(f"{W}rPr")
    if looks is not None:
        is_crossed_out = any(_is_on(looks.find(f"{W}{tag}")) for tag in ("strike", "dstrike")) and bool(_text(run))
        if is_crossed_out or _is_on(looks.find(f"{W}vanish")) or _value(looks, "rStyle") in styles.hidden:
            lost[CROSSED_OUT] += is_crossed_out
            return _remove(run)
    for mark in [*run]:
        shown = ""
        if local(mark) == "sym":
            number = int(mark.get(f"{W}char", "0"), 16)
            font = _SYMBOLS if mark.get(f"{W}font") == "Symbol" else _WINGDINGS
            shown = chr(number) if number < 0xF000 else font.get(number - 0xF000, "")
            lost["symbol"] += not shown
        elif local(mark) == "fldChar":
            lost["form choice"] += any(True for _ in mark.iter(f"{W}checkBox", f"{W}ddList"))
        elif local(mark) == "commentReference":
            lost["comment"] += 1
            run.remove(mark)
        elif local(mark) == "cr":
            mark.tag = f"{W}br"
        if shown:
            mark.tag, mark.text = f"{W}t", shown


def _value(element: Any, tag: str) -> str:
    found = element.find(f"{W}{tag}") if element is not None else None
    return found.get(f"{W}val", "") if found is not None else ""


def _prepare_paragraph(paragraph: Any, styles: _Styles) -> None:
    """With its number, as a heading where it is one, its large first letter in its place."""
    raise_runs(
        (one, _value(one.getparent().find(f"{W}rPr"), "vertAlign") == "superscript") for one in paragraph.iter(f"{W}t")
    )
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
        looks.addnext(_run(looks, f"{number} "))
    if looks.find(f"{W}framePr[@{W}dropCap]") is not None and below is not None and local(below) == "p":
        place = 1 if below.find(f"{W}pPr") is not None else 0
        below[place:place] = paragraph.findall(f"{W}r")
        _remove(paragraph)


def _run(like: Any, text: str) -> Any:
    from lxml.etree import SubElement

    run = like.makeelement(f"{W}r")
    SubElement(run, f"{W}t").text = text
    return run


def _paragraph(like: Any, text: str) -> Any:
    paragraph = like.makeelement(f"{W}p")
    paragraph.append(_run(like, text))
    return paragraph


def _write_rows(table: Any) -> None:
    """A table inside a cell or box, where the library reads no tables, as lines."""
    rows = [[_text(cell) for cell in row.iterchildren(f"{W}tc")] for row in table.iterchildren(f"{W}tr")]
    for line in show_rows(rows).splitlines():
        table.addprevious(_paragraph(table, line))
    _remove(table)


class _Styles:
    """The styles of a Word file, and its lists: what number a paragraph has."""

    def __init__(self, package: Package) -> None:
        parts: list[str] = [part for part in ("word/styles.xml", "word/numbering.xml") if part in package.names]
        self.parts = {part: package.parse(part) for part in parts}
        lists = [*self.parts.pop("word/numbering.xml", ())]
        styles = [one for root in self.parts.values() for one in root.iterchildren(f"{W}style")]
        self._styles = {one.get(f"{W}styleId", ""): one for one in styles}
        self.hidden = {name for name, one in self._styles.items() if _is_on(one.find(f"{W}rPr/{W}vanish"))}
        self._inherited: dict[str, tuple[str, ...]] = {}
        self._levels: dict[str, dict[int, Any]] = {
            one.get(f"{W}abstractNumId", ""): {int(of.get(f"{W}ilvl", "0")): of for of in one.iterchildren(f"{W}lvl")}
            for one in lists
        }
        self._lists = {one.get(f"{W}numId", ""): one for one in lists if local(one) == "num"}
        self._used: set[str] = set()
        self._counts: dict[str, dict[int, int]] = {}

    def _resolve(self, looks: Any) -> tuple[str, ...]:
        """The list of a paragraph and its level there: its own, or of its style, or of one that this is based on."""
        name, seen = _value(looks, "pStyle"), dict[str, None]()
        if name not in self._inherited:
            found: tuple[str, ...] = ("", "")
            at = name
            while at in self._styles and at not in seen:
                seen[at] = None
                own = _list_of(self._styles[at].find(f"{W}pPr"))
                found = tuple(near or far for near, far in zip(found, own, strict=True))
                at = _value(self._styles[at], "basedOn")
            self._inherited[name] = found
        return tuple(near or far for near, far in zip(_list_of(looks), self._inherited[name], strict=True))

    def _is_counted(self, name: str, level: str) -> bool:
        own = self._levels.get(_value(self._lists.get(name), "abstractNumId"), {}).get(int(level or 0))
        return _value(own, "numFmt") not in ("bullet", "none", "")

    def forget_numbers(self) -> dict[str, Any]:
        """The part of the styles, without the lists that `number` writes out."""
        for style in self._styles.values():
            for mark in style.findall(f"{W}pPr/{W}numPr"):
                if self._is_counted(_value(mark, "numId"), _value(mark, "ilvl")):
                    _remove(mark)
        return self.parts

    def number(self, looks: Any) -> str:
        """ "1.2", "(a)", "Article 3": as it is shown; "": none, or a bullet."""
        name, written = self._resolve(looks)
        if not self._is_counted(name, written):
            return ""
        kind, level = _value(self._lists[name], "abstractNumId"), int(written or 0)
        levels, counts = self._levels[kind], self._counts.setdefault(kind, {})
        for own in () if name in self._used else self._lists[name].iterchildren(f"{W}lvlOverride"):
            if start := _value(own, "startOverride"):
                counts[int(own.get(f"{W}ilvl", "0"))] = int(start) - 1
        self._used.add(name)
        for at in [at for at in counts if at > level]:
            del counts[at]
        counts[level] = counts.get(level, _start_of(levels[level]) - 1) + 1
        is_legal = levels[level].find(f"{W}isLgl") is not None

        def show(found: re.Match[str]) -> str:
            at = int(found[1]) - 1
            own = levels.get(at)
            return show_number(counts.setdefault(at, _start_of(own)), "" if is_legal else _value(own, "numFmt"))

        return re.sub(r"%([1-9])", show, _value(levels[level], "lvlText")).strip()


def _list_of(looks: Any) -> tuple[str, ...]:
    mark = looks.find(f"{W}numPr") if looks is not None else None
    return _value(mark, "numId"), _value(mark, "ilvl")


def _start_of(level: Any) -> int:
    return int(_value(level, "start") or 1)


def _append_notes(package: Package, body: Any, changed: dict[str, Any]) -> None:
    """Footnotes and endnotes at the end, with the numbers that they have in the text; comments leave."""
    end = body.find(f"{W}sectPr")
    for kind, counting in (("footnote", ""), ("endnote", "lowerRoman"), ("comment", "")):
        part = f"word/{kind}s.xml"
        if part not in package.names:
            continue
        root = changed[part] = package.parse(part)
        notes = {one.get(f"{W}id"): _text(one) for one in root}
        for note in [*root]:
            root.remove(note)
        for number, mark in enumerate([*body.iter(f"{W}{kind}Reference")], 1):
            shown = f"[{show_number(number, counting)}]"
            made = _paragraph(body, f"{shown} {notes.get(mark.get(f'{W}id'), '')}")
            mark.tag, mark.text = f"{W}t", shown
            body.append(made) if end is None else end.addprevious(made)


def _keep_one_way(root: Any) -> None:
    """Where the same is written for newer and older programs, the first with text stays, in the place of all."""
    for ways in [*root.iter("{*}AlternateContent")]:
        with_text = [one for one in ways if _text(one)]
        for child in [child for one in (with_text or [*ways])[:1] for child in one]:
            ways.addprevious(child)
        _remove(ways)


def _fill_word_table(table: Any) -> int:
    """How many elements were copied: tables in spanned cells of others may multiply without end."""
    copied = 0
    above: list[Any] = []
    for row in table.iterchildren(f"{W}tr"):
        for cell in [*row.iterchildren(f"{W}tc")][:1]:
            for _ in range(min(int(_value(row.find(f"{W}trPr"), "gridBefore") or 0), 100)):
                cell.addprevious(cell.makeelement(f"{W}tc"))
                cell.getprevious().append(_paragraph(cell, ""))
                copied += 2
        places: list[Any] = []
        for cell in row.iterchildren(f"{W}tc"):
            merge, span = cell.find(f"{W}tcPr/{W}vMerge"), cell.find(f"{W}tcPr/{W}gridSpan")
            wide = int(span.get(f"{W}val", "1")) if span is not None else 1
            if merge is not None and merge.get(f"{W}val") != "restart" and len(places) < len(above):
                origin = [child for child in above[len(places)] if local(child) != "tcPr"]
                for child in [*cell]:
                    cell.remove(child)
                cell.extend(deepcopy(child) for child in origin)
                copied += sum(1 for child in origin for _ in child.iter())
            for mark in (merge, span):
                if mark is not None:
                    _remove(mark)
            copies = [deepcopy(cell) for _ in range(min(wide, 100) - 1)]
            copied += len(copies) * sum(1 for _ in cell.iter())
            for copy in reversed(copies):
                cell.addnext(copy)
            places += [cell, *copies]
        above = places
    return copied


def _append_margins(package: Package, root: Any, body: Any) -> None:
    """Headers and footers with letters that stand nowhere else, once each, at the end."""
    end = body.find(f"{W}sectPr")
    related = relations(package, "word/document.xml")
    used = dict.fromkeys(
        related.get(attribute(one, "id"), "") for one in root.iter(f"{W}headerReference", f"{W}footerReference")
    )
    margins = [package.parse(part) for part in used if part in package.names]
    for margin in margins:
        _keep_one_way(margin)
    for shown in _said_first(_text(root), (_text(line) for margin in margins for line in margin.iter(f"{W}p"))):
        made = _paragraph(root, shown)
        body.append(made) if end is None else end.addprevious(made)


def _said_first(said: str, lines: Iterable[str]) -> Iterator[str]:
    """Of headers and footers what has letters and stands nowhere else, once each; no page numbers."""
    for shown in lines:
        is_text = re.search(r"[^\W\d_]{2}", shown) and not re.fullmatch(r"\w+ \d+( \w+ \d+)?", shown)
        if is_text and shown not in said:
            said += f" {shown}"
            yield shown


# --- PowerPoint -------------------------------------------------------------------------------------------------------

_FURNITURE = ("dt", "sldNum", "hdr")
NOTES = "\ue000Notes:"
"""What a line before the notes of a slide begins with."""


def prepare_slides(package: Package) -> Prepared:
    related = relations(package, "ppt/presentation.xml")
    shown_in_order = package.parse("ppt/presentation.xml").iter("{*}sldId")
    slides = [
        related.get(next((v for k, v in one.attrib.items() if k.startswith(R)), ""), "") for one in shown_in_order
    ]
    check_count(package.name, len(slides), MAX_PARTS, "slides")
    changed, lost = {}, Counter[str]()
    repeated: set[str] = set()
    for part in slides:
        root = changed[part] = package.parse(part)
        tree = root.find("{*}cSld/{*}spTree")
        if root.get("show") in ("0", "false") or tree is None:
            lost["hidden slide"] += tree is not None
            root.clear()
            continue
        _keep_one_way(root)
        for shape in [*root.iter("{*}sp")]:
            mark = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
            kind = "" if mark is None else mark.get("type", "")
            is_again = kind == "ftr" and _text(shape) in repeated
            if kind == "ftr":
                repeated.add(_text(shape))
            if is_again or kind in _FURNITURE or shape.find("{*}nvSpPr/{*}cNvPr[@hidden='1']") is not None:
                _remove(shape)
        _prepare_slide_text(root, lost)
        for table in root.iter(f"{A}tbl"):
            for cell in [one for one in table.iter(f"{A}tc") if one.get("hMerge") or one.get("vMerge")]:
                _remove(cell)
            fill_spans(package.name, [*table.iterchildren(f"{A}tr")], (f"{A}tc",), "gridSpan", "rowSpan")
        related = relations(package, part)
        for drawing in [*root.iter("{*}chart", "{*}relIds")]:
            target = related.get(attribute(drawing, "dm") or attribute(drawing, "id"), "")
            if target in package.names:
                shown = package.parse(target)
                rows = _chart_rows(shown) if local(drawing) == "chart" else _diagram_rows(shown)
                _put_table(drawing.getparent(), rows)
        _add_notes(tree, [package.parse(one) for one in related.values() if "/notesSlides/" in one])
    # The library gives notes to other slides where the files are numbered otherwise.
    changed |= {one: package.parse(one) for one in package.names if re.match(r"ppt/notesSlides/\w+\.xml", one)}
    for root in (changed[one] for one in changed if "/notesSlides/" in one):
        root.clear()
    return changed, [counted(number, what) for what, number in lost.items() if number]


def _add_notes(tree: Any, notes: list[Any]) -> None:
    said: list[str] = []
    for shape in (shape for one in notes for shape in one.iter("{*}sp")):
        mark = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
        if mark is None or mark.get("type") not in (*_FURNITURE, "ftr", "sldImg"):
            said += filter(None, map(_text, shape.iter(f"{A}p")))
    if said:
        _add_box(tree, NOTES, " ".join(said))


def _add_box(tree: Any, *lines: str) -> None:
    from lxml.etree import SubElement

    space = tree.tag.removesuffix("spTree")
    body = SubElement(SubElement(tree, f"{space}sp"), f"{space}txBody")
    for line in lines:
        SubElement(SubElement(SubElement(body, f"{A}p"), f"{A}r"), f"{A}t").text = line


def _prepare_slide_text(root: Any, lost: Counter[str]) -> None:
    write_formulas(root, A)
    for run in [*root.iter(f"{A}r")]:
        looks = run.find(f"{A}rPr")
        if looks is not None and looks.get("strike", "noStrike") != "noStrike":
            lost[CROSSED_OUT] += 1
            _remove(run)
    for paragraph in root.iter(f"{A}p"):
        runs = [(one, one.getparent().find(f"{A}rPr")) for one in paragraph.iter(f"{A}t")]
        raise_runs((one, looks is not None and int(looks.get("baseline", "0").strip("%")) > 0) for one, looks in runs)
    # The library puts a space between runs, which would cut a word of which some letters are bold.
    for run in [*root.iter(f"{A}r")]:
        before = run.getprevious()
        if before is not None and before.tag == run.tag:
            for text in before.iterchildren(f"{A}t"):
                run.find(f"{A}t").text = (text.text or "") + (run.findtext(f"{A}t") or "")
            _remove(before)


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


def _put_table(data: Any, rows: Iterator[list[str]]) -> None:
    """In place of what a frame holds."""
    from lxml.etree import SubElement

    for child in [*data]:
        data.remove(child)
    data.set("uri", "http://schemas.openxmlformats.org/drawingml/2006/table")
    table = SubElement(data, f"{A}tbl")
    for row in rows:
        line = SubElement(table, f"{A}tr", h="1")
        for text in row:
            body = SubElement(SubElement(line, f"{A}tc"), f"{A}txBody")
            SubElement(SubElement(SubElement(body, f"{A}p"), f"{A}r"), f"{A}t").text = text


# --- OpenDocument -----------------------------------------------------------------------------------------------------


_HIDDEN = ("collapse", "filter")
_GONE = "gone"  # until it is taken out, whereas the text behind it stays


def prepare_open(package: Package) -> Prepared:
    """Displayed values in place of stored ones; without comments, deleted text and what is hidden."""
    from lxml.etree import strip_elements

    root = package.parse("content.xml")
    manifest = "META-INF/manifest.xml"
    if manifest in package.names and any(True for _ in package.parse(manifest).iter("{*}encryption-data")):
        raise package.locked("protected with a password")
    lost, sheets = Counter[str](), list[str]()
    styles = {attribute(one, "name"): one for one in root.iter("{*}style")}
    marked = [(one, styles.get(attribute(one, "style-name"))) for one in root.iter()]
    hidden = [
        one for one, _ in marked if attribute(one, "visibility") in _HIDDEN or attribute(one, "is-hidden") == "true"
    ]
    for element, style in marked:
        looks = {} if style is None else {local(one): one for one in style}
        kind = local(element)
        if kind == "table" and any(attribute(one, "display") == "false" for one in looks.values()):
            hidden.append(element)
            sheets.append(f"hidden sheet {attribute(element, 'name')}")
        elif kind == "page" and any(attribute(one, "visibility") == "hidden" for one in looks.values()):
            hidden += element
            lost["hidden slide"] += 1
        elif (
            kind == "span"
            and attribute(looks.get("text-properties", element), "text-line-through-style", "none") != "none"
        ):
            hidden.append(element)
            lost[CROSSED_OUT] += 1
    lost["hidden row"] = sum(local(one) == "table-row" for one in hidden)
    lost["comment"] = sum(1 for _ in root.iter("{*}annotation"))
    lost["chart or object"] = sum(1 for _ in root.iter("{*}object"))
    hidden += [one for one in root.iter("{*}section") if attribute(one, "display") == "none"]
    for element in [*hidden, *root.iter("{*}tracked-changes", "{*}annotation", "{*}table-of-content")]:
        if local(element) != "table-column":
            element.tag = _GONE
    strip_elements(root, _GONE, with_tail=False)
    _prepare_open_text(root, styles)
    cells = 0
    for table in [*root.iter("{*}table")]:
        space = table.tag.partition("}")[0] + "}"
        rows = [*table.iter(f"{space}table-row")]
        for row in rows:
            cells += _show_open_row(row, space) * int("0" + attribute(row, "number-rows-repeated", "1"))
            check_count(package.name, cells, MAX_CELLS, "cells")
        fill_spans(
            package.name, rows, (f"{space}table-cell",), f"{space}number-columns-spanned", f"{space}number-rows-spanned"
        )
        lost["hidden column"] += _hide_columns(table, space, rows)
    for page in root.iter("{*}page"):
        titles = [one for one in page.iter("{*}frame") if attribute(one, "class") == "title"][:1]
        page.set(
            f"{page.tag.partition('}')[0]}}}name", " ".join("".join(titles[0].itertext()).split()) if titles else " "
        )
        for title in titles:
            title.tag = _GONE
        for notes in page.iter("{*}notes"):
            first = next(notes.iter("{*}p"), None)
            if first is not None:
                mark = first.makeelement(first.tag)
                mark.text = "Notes:"
                first.addprevious(mark)
    strip_elements(root, _GONE, with_tail=False)
    for text in root.iter("{*}text"):
        _append_open_margins(package, text)
    return {"content.xml": root}, sheets + [counted(number, what) for what, number in lost.items() if number]


def _append_open_margins(package: Package, text: Any) -> None:
    margins = package.parse("styles.xml").iter("{*}header", "{*}footer") if "styles.xml" in package.names else ()
    lines = [" ".join("".join(line.itertext()).split()) for margin in margins for line in margin.iter("{*}p")]
    for shown in _said_first(" ".join("".join(text.itertext()).split()), lines):
        text.append(text.makeelement(text.tag.replace(":office:1.0}text", ":text:1.0}p")))
        text[-1].text = shown


def _hide_columns(table: Any, space: str, rows: list[Any]) -> int:
    """Takes out the cells of hidden columns; how many columns had any."""
    hidden, at = set[int](), 0
    for column in table.iter(f"{space}table-column"):
        wide = int("0" + attribute(column, "number-columns-repeated", "1"))
        hidden |= {*range(at, at + min(wide, _MOST_REPEATED))} if attribute(column, "visibility") in _HIDDEN else set()
        at += wide
    cells = [(place, cell) for row in rows for place, cell in enumerate(row) if place in hidden]
    for _, cell in cells:
        _remove(cell)
    return len({place for place, cell in cells if "".join(cell.itertext()).strip()})


def _prepare_open_text(root: Any, styles: dict[str, Any]) -> None:
    """Spaces and tabs that are elements; titles as headings; text boxes behind their paragraph, once."""
    for space in [*root.iter("{*}s", "{*}tab")]:
        if space.tag.endswith(":text:1.0}" + local(space)):
            space.tail = (" " if local(space) == "s" else "\t") + (space.tail or "")
            space.tag = _GONE
    for span in root.iter("{*}span"):
        style = styles.get(attribute(span, "style-name"))
        if style is not None and any(attribute(one, "text-position").startswith("super") for one in style):
            before = span.getprevious()
            said = span.getparent().text if before is None else before.tail
            span.text = raise_figures(said or "", span.text or "")
    for paragraph in root.iter("{*}p"):
        name = attribute(paragraph, "style-name")
        if "Title" in (name, attribute(styles[name], "parent-style-name") if name in styles else ""):
            paragraph.tag = paragraph.tag[:-1] + "h"
            paragraph.set(paragraph.tag[:-1] + "outline-level", "1")
        for frame in [one for one in paragraph.iterchildren("{*}frame") if one.find("{*}text-box") is not None]:
            inner = [child for box in frame.iterchildren("{*}text-box") for child in box]
            frame.tag = _GONE
            for child in reversed(inner):
                paragraph.addnext(child)


def _show_open_row(row: Any, space: str) -> int:
    """Its cells one by one, with the text that they show in place of the value; how many show something."""
    filled = 0
    office = space.replace("table:1.0", "office:1.0")
    for cell in [*row]:
        if local(cell) == "covered-table-cell":
            row.remove(cell)
            continue
        shown = next((child for child in cell if local(child) == "p"), None)
        repeated = int("0" + attribute(cell, "number-columns-repeated", "1"))
        if shown is not None:
            if day := attribute(cell, "date-value"):
                # In any format the ISO way, since 03/04/21 means two days.
                shown.text = re.sub(r"(:\d\d):00$", r"\1", day.replace("T", " "))
            for key in [key for key in cell.attrib if key.startswith(office)]:
                del cell.attrib[key]
            cell.set(f"{office}value-type", "string")
            filled += max(1, repeated)
        if 1 < repeated <= _MOST_REPEATED:
            cell.attrib.pop(f"{space}number-columns-repeated", None)
            for _ in range(repeated - 1):
                cell.addnext(deepcopy(cell))
    return filled


_MOST_REPEATED = 256

"""Word files before they become Markdown: numbers are written out, hidden parts leave, notes stand at the end."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from crag_core.retrieval.readers.html import CROSSED_OUT, fill_spans
from crag_core.retrieval.readers.office.markup import (
    Prepared,
    R,
    W,
    append_margins,
    keep_one_way,
    maker,
    new_paragraph,
    raise_runs,
    remove,
    run_text,
    value_of,
    write_formulas,
)
from crag_core.retrieval.readers.office.numbering import Numbers, show_number
from crag_core.retrieval.readers.packages import Package, local, relations
from crag_core.retrieval.readers.page import MAX_CELLS, SPANNED, check_count, name_lost
from crag_core.retrieval.readers.tables import show_rows

# Letters of the fonts Symbol and Wingdings, by their numbers there.
_SYMBOLS = dict(zip((0x44, 0x6D, 0xA3, 0xB0, 0xB1, 0xB3, 0xB4, 0xB8, 0xB9, 0xBB), "Δµ≤°±≥×÷≠≈", strict=True))
_WINGDINGS = {0x6F: "[ ]", 0x78: "[x]", 0xA8: "[ ]", 0xE0: "→", 0xFB: "✗", 0xFC: "✓", 0xFD: "[x]", 0xFE: "[x]"}
# What is no text: deleted, moved elsewhere, a remark, or what a content control is called.
_UNREAD = [f"{W}{tag}" for tag in ("del", "moveFrom", "commentReference", "sdtPr", "sdtEndPr")]


def prepare_word(package: Package) -> Prepared:
    from lxml.etree import strip_elements, strip_tags

    root = package.parse("word/document.xml")
    lost = Counter[str]()
    keep_one_way(root)
    comments = len([*root.iter(f"{W}commentReference")])
    for row in [*root.iter(f"{W}tr")]:
        if row.find(f"{W}trPr/{W}del") is not None:
            remove(row)
    strip_elements(root, *_UNREAD, with_tail=False)
    # Content controls may stand around rows and cells.
    strip_tags(root, f"{W}sdt", f"{W}sdtContent")
    parts = {part: package.parse(part) for part in ("word/styles.xml",) if part in package.names}
    styles = {one.get(f"{W}styleId", ""): one for part in parts.values() for one in part.iterchildren(f"{W}style")}
    hidden = {name for name, one in styles.items() if _has(one.find(f"{W}rPr"), "vanish")}
    for run in [*root.iter(f"{W}r")]:
        _prepare_run(run, hidden, lost)
    write_formulas(root, W)
    numbers = Numbers(package, styles)
    for paragraph in [*root.iter(f"{W}p")]:
        _prepare_paragraph(paragraph, numbers)
    numbers.take_from_styles()
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
    changed = {"word/document.xml": root, **parts}
    for body in root.iter(f"{W}body"):
        _append_notes(package, body, changed)
        append_margins(body, _margins(package, body), run_text, partial(new_paragraph, W))
    return changed, name_lost(lost)


def _has(looks: Any, *tags: str) -> bool:
    """Whether one of these properties is there, and not switched off."""
    marks = [looks.find(f"{W}{tag}") for tag in tags] if looks is not None else []
    return any(mark is not None and mark.get(f"{W}val", "true") not in ("0", "false", "off") for mark in marks)


def _prepare_run(run: Any, hidden: set[str], lost: Counter[str]) -> None:
    """What is hidden or crossed out leaves; signs that are elements become text."""
    looks = run.find(f"{W}rPr")
    is_crossed_out = _has(looks, "strike", "dstrike") and bool(run_text(run))
    if is_crossed_out or _has(looks, "vanish") or value_of(looks, "rStyle") in hidden:
        lost[CROSSED_OUT] += is_crossed_out
        return remove(run)
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


def _prepare_paragraph(paragraph: Any, numbers: Numbers) -> None:
    """With its number, as a heading where it is one, its large first letter in its place."""
    raise_runs(paragraph, W)
    looks = paragraph.find(f"{W}pPr")
    if looks is None:
        return
    level, below = value_of(looks, "outlineLvl"), paragraph.getnext()
    number = numbers.next(looks)
    if level in tuple("012345"):
        for style in looks.findall(f"{W}pStyle"):
            looks.remove(style)
        looks.insert(0, looks.makeelement(f"{W}pStyle", {f"{W}val": f"Heading{int(level) + 1}"}))
    if number:
        for list_of in looks.findall(f"{W}numPr"):
            looks.remove(list_of)
        looks.addnext(new_paragraph(W, f"{number} ")[0])
    if looks.find(f"{W}framePr[@{W}dropCap]") is not None and below is not None and local(below) == "p":
        place = 1 if below.find(f"{W}pPr") is not None else 0
        below[place:place] = paragraph.findall(f"{W}r")
        remove(paragraph)


def _name_spans(table: Any) -> list[Any]:
    """Its rows, with spans as HTML has them, and an empty cell where a row begins later."""
    rows = [*table.iterchildren(f"{W}tr")]
    above: dict[int, Any] = {}
    for row in rows:
        cells, at = [*row.iterchildren(f"{W}tc")], int(value_of(row.find(f"{W}trPr"), "gridBefore") or 0)
        if at:
            row.insert(0, maker(W).tc(new_paragraph(W, ""), across=str(at), down="1"))
        begun: dict[int, Any] = {}
        for cell in cells:
            wide, merge = value_of(cell.find(f"{W}tcPr"), "gridSpan") or "1", cell.find(f"{W}tcPr/{W}vMerge")
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
    rows = [[run_text(cell) for cell in row.iterchildren(f"{W}tc")] for row in table.iterchildren(f"{W}tr")]
    for line in show_rows(rows).splitlines():
        table.addprevious(new_paragraph(W, line))
    remove(table)


def _append_notes(package: Package, body: Any, changed: dict[str, Any]) -> None:
    """Footnotes and endnotes at the end, with the numbers that they have in the text; comments leave."""
    for kind, counting in (("footnote", ""), ("endnote", "lowerRoman"), ("comment", "")):
        for root in package.roots(f"word/{kind}s.xml"):
            changed[f"word/{kind}s.xml"] = root
            notes = {one.get(f"{W}id"): run_text(one) for one in root}
            del root[:]
            for number, mark in enumerate([*body.iter(f"{W}{kind}Reference")], 1):
                mark.tag, mark.text = f"{W}t", f"[{show_number(number, counting)}]"
                body.append(new_paragraph(W, f"{mark.text} {notes.get(mark.get(f'{W}id'), '')}"))


def _margins(package: Package, body: Any) -> list[Any]:
    """The headers and footers that it refers to."""
    related = relations(package, "word/document.xml")
    marks = body.iter(f"{W}headerReference", f"{W}footerReference")
    margins = package.roots(*dict.fromkeys(related.get(mark.get(f"{R}id"), "") for mark in marks))
    for margin in margins:
        keep_one_way(margin)
    return margins

"""What Word, PowerPoint and OpenDocument have in common: XML that is made, and text that is put where it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from crag_core.retrieval.readers.packages import local
from crag_core.retrieval.readers.text import raise_figures

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
Prepared = tuple[dict[str, Any], list[str]]
"""The root elements that changed, by the file they are of, and what was left out, in words."""


def remove(element: Any) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def run_text(element: Any) -> str:
    return " ".join("".join(piece.text or "" for piece in element.iter("{*}t")).split())


def value_of(element: Any, tag: str) -> str:
    found = element.find(f"{W}{tag}") if element is not None else None
    return found.get(f"{W}val", "") if found is not None else ""


def maker(space: str) -> Any:
    """Makes elements: `maker(W).p()`."""
    from lxml.builder import ElementMaker

    return ElementMaker(namespace=space.strip("{}"))


def new_paragraph(space: str, text: str) -> Any:
    make = maker(space)
    return make.p(make.r(make.t(text)))


def keep_one_way(root: Any) -> None:
    """Where the same is written for newer and older programs, the first with text stays, in the place of all."""
    for ways in [*root.iter("{*}AlternateContent")]:
        with_text = [one for one in ways if run_text(one)]
        for child in [child for one in (with_text or [*ways])[:1] for child in one]:
            ways.addprevious(child)
        remove(ways)


def raise_runs(paragraph: Any, space: str) -> None:
    """Text that stands above the line, see `raise_figures`."""
    before = ""
    for piece in paragraph.iter(f"{space}t"):
        looks = piece.getparent().find(f"{space}rPr")
        rise = looks.get("baseline", "0").strip("%") if looks is not None else "0"
        if int(rise) > 0 or value_of(looks, "vertAlign") == "superscript":
            piece.text = raise_figures(before, piece.text or "")
        before = piece.text or before


_LETTERS = ("oMathPara", "oMath", "r", "rPr", "t", "oMathParaPr", "ctrlPr", "sty", "jc")


def write_formulas(root: Any, space: str) -> None:
    """Formulas without fractions and the like as runs of text, so that they stay in their sentence."""
    for formula in [*root.iter("{*}oMath")]:
        if all(local(one) in _LETTERS for one in formula.iter() if "/math" in one.tag):
            holder = formula.getparent() if local(formula.getparent()) in ("m", "oMathPara") else formula
            holder.addprevious(new_paragraph(space, run_text(formula))[0])
            remove(holder)


def append_margins(body: Any, margins: Iterable[Any], show: Callable[[Any], str], make: Callable[[str], Any]) -> None:
    """Of headers and footers what has letters and stands nowhere else, once each, at the end; no page numbers."""
    said = show(body)
    for shown in [show(line) for margin in margins for line in margin.iter("{*}p")]:
        is_text = re.search(r"[^\W\d_]{2}", shown) and not re.fullmatch(r"\w+ \d+( \w+ \d+)?", shown)
        if is_text and shown not in said:
            said += f" {shown}"
            body.append(make(shown))

"""Inputs that hold a careless reader for minutes: each is read, or refused, in time that grows with its length."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Callable

import pytest

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers import read_document
from tests.retrieval.made_files import fill, make_workbook, one_of_each, rezip

MANY = 200_000
ITEMS = 10_000
RUNS = {
    "spaces": " ",
    "hashes": "#",
    "bars": "|",
    "stars": "*",
    "headings": "# ",
    "items": "- ",
    "digits": "0",
    "brackets": "(",
}
HEAD = "From: a@b.c\nSubject: x\n"
RESTART = ' w:val="restart"'
ATTRIBUTES = " ".join(f'a{at}="1"' for at in range(MANY))
CELLS = '<td colspan="1000" rowspan="1000">x' * 50
PARAGRAPH = "<w:p><w:r><w:t>x</w:t></w:r></w:p>"


def word(body: str) -> bytes:
    import docx

    made, changed = io.BytesIO(), io.BytesIO()
    docx.Document().save(made)
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "word/document.xml":
                part = part.replace(b"<w:body>", f"<w:body>{body}".encode())
            new.writestr(name, part)
    return changed.getvalue()


def half_hidden(rows: int) -> bytes:
    row = '<row r="{}"{}><c r="A{}" t="inlineStr"><is><t>ferry</t></is></c></row>'
    shown = "".join(row.format(at, ' hidden="1"' * (at % 2), at) for at in range(1, rows))

    def put(xml: bytes) -> bytes:
        return xml.replace(b"</sheetData>", f"{shown}</sheetData>".encode())

    return rezip(make_workbook(fill()), {"xl/worksheets/sheet1.xml": put})


def merged(count: int) -> str:
    begun, going_on = (
        f"<w:tr><w:tc><w:tcPr><w:vMerge{how}/></w:tcPr>{PARAGRAPH}</w:tc></w:tr>" for how in (RESTART, "")
    )
    return f"<w:tbl>{begun}{going_on * count}</w:tbl>"


def spanned(depth: int) -> str:
    inside = PARAGRAPH
    for _ in range(depth):
        inside = f'<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="9"/></w:tcPr>{inside}<w:p/></w:tc></w:tr></w:tbl>'
    return inside


FORMS = {
    "{}.txt": "{unit}",
    "{} within.md": "a{unit}z",
    "{} in a heading.md": "# a {unit} z\n\ntext",
    "{}.csv": "a,b\n1,2\n{unit}",
    "{}.html": "<p>a{unit}z<h1>{unit}b</h1><pre>{unit}c</pre>",
    "{}.rtf": r"{{\rtf1\ansi a{unit}z}}",
    "{}.eml": HEAD + "\na{unit}z",
}
STRESS: dict[str, Callable[[], bytes]] = {
    "nested and closed.html": lambda: b"<ul><li>x" * ITEMS + b"</li></ul>" * ITEMS,
    "nested and hidden.html": lambda: b"<i hidden>x" * ITEMS,
    "cells of a row.html": lambda: b"<table><tr>" + b"<td>x" * ITEMS,
    "spans.html": lambda: f"<table>{f'<tr>{CELLS}' * 300}</table>".encode(),
    "rows.html": lambda: b"<table>" + b"<tr><td>x<td>y" * ITEMS,
    "attributes.html": lambda: f"<p {ATTRIBUTES}>x".encode(),
    "attributes.epub": lambda: rezip(one_of_each()[".epub"], {"OEBPS/a.xhtml": f"<html><p {ATTRIBUTES}>x</p></html>"}),
    "groups.rtf": lambda: b"{\\rtf1 " + b"{" * MANY,
    "groups in a row.rtf": lambda: b"{\\rtf1 " + b"{x}" * ITEMS,
    "cells.rtf": lambda: b"{\\rtf1 \\trowd" + b"\\cellx1" * ITEMS + b"\\intbl x\\cell" * ITEMS + b"\\row}",
    "merged cells.rtf": lambda: b"{\\rtf1 " + b"\\trowd\\clvmrg\\cellx2\\intbl x\\cell\\row " * ITEMS + b"}",
    "parts.eml": lambda: f"{HEAD}Content-Type: multipart/mixed; boundary=b\n".encode() + b"\n--b\n\nx" * ITEMS,
    "long header.eml": lambda: f"From: a@b.c\nSubject: {'=?utf-8?q?a?= ' * ITEMS}\n\nx".encode(),
    "paragraphs.docx": lambda: word(PARAGRAPH * 4_000),
    "cells of a row.docx": lambda: word(f"<w:tbl><w:tr>{f'<w:tc>{PARAGRAPH}</w:tc>' * 2_000}</w:tr></w:tbl>"),
    "merged cells.docx": lambda: word(merged(4_000)),
    "tables in spanned cells.docx": lambda: word(spanned(20)),
    "hidden rows.xlsx": lambda: half_hidden(30_000),
}


def check(name: str, content: bytes) -> None:
    started = time.process_time()
    try:
        read_document(content, name)
    except DocumentRefused as refusal:
        assert refusal.hint
    assert time.process_time() - started < 8, "about a second, of which it took minutes"


CELLS = [
    pytest.param(run, form, marks=[pytest.mark.exhaustive] if (row + column) % 2 else [])
    for row, run in enumerate(RUNS)
    for column, form in enumerate(FORMS)
]
"""Of the exhaustive ones each neighbour, with the same sign or the same form, is run always."""


@pytest.mark.parametrize(("run", "form"), CELLS)
def test_no_run_of_a_sign_holds_a_reader(run: str, form: str) -> None:
    unit = RUNS[run] * (MANY // len(RUNS[run]))
    check(form.format(run), FORMS[form].format(unit=unit).encode())


@pytest.mark.parametrize("name", STRESS)
def test_no_input_holds_a_reader(name: str) -> None:
    check(name, STRESS[name]())

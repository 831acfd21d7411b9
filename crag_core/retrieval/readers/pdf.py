"""PDF through PDFium: a page of text for each printed page, its lines joined into paragraphs by their positions."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from ctypes import POINTER, byref, c_double, c_ushort, cast, create_string_buffer
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.page import MAX_PAGES, Page, check_count
from crag_core.retrieval.readers.text import glue_lines, is_row, normalise_text, starts_item

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

_BOLD = 600
# PDFium is not thread-safe, not even across documents.
PDFIUM = Lock()
# PDFium replaces a hyphen and the line break after it by U+FFFE.
_BROKEN_WORD = re.compile("(\\w*)\ufffe(\\w*)")
_UNMAPPED = re.compile("[\ufffd\ue000-\uf8ff\x01-\x08\x0e-\x1f]")
_GUTTER = 1.2  # type sizes; words of justified lines are closer
_LEAST_ROWS = 3
_LEAST_WORDS = 3.5  # in a line of a column, on the average
_LEAST_PROSE = 0.3  # of the lines of a column begin with a small letter: cells of tables rarely do
_AMOUNT = re.compile(r"\d[.,]\d+\s*$")


def read_pdf(content: bytes, name: str) -> tuple[Page, ...]:
    with PDFIUM:
        pages, pictured = _extract(content, name)
    whole = "\n".join(line.text for lines in pages for line in lines)
    letters = len("".join(whole.split()))
    if not letters:
        raise DocumentRefused(
            f"{name}: expected text, found only images (a scan without a text layer) or blank pages.",
            hint="Run text recognition (OCR), for example ocrmypdf, and add the result.",
        )
    if len(_UNMAPPED.findall(whole)) > 0.3 * letters:
        raise DocumentRefused(
            f"{name}: its text cannot be read, because its fonts do not say which letters they show.",
            hint="Export the PDF again from its source, or run text recognition (OCR) on it.",
        )
    known = set(re.findall(r"[\w-]+", _BROKEN_WORD.sub(" ", whole)))
    spacing = find_spacing(pages)
    return tuple(
        Page(_tidy(flow_lines(lines, spacing), known), number, "no text, only a picture" if number in pictured else "")
        for number, lines in enumerate(pages, 1)
    )


def _extract(content: bytes, name: str) -> tuple[list[list[Line]], set[int]]:
    import pypdfium2

    try:
        with closing(pypdfium2.PdfDocument(content)) as document:
            if not len(document):
                raise DocumentRefused(f"{name}: the PDF has no pages.", hint="Export or download it again.")
            check_count(name, len(document), MAX_PAGES, "pages")
            if document.get_formtype():
                document.init_forms()
            pages = [_read_page(document, index) for index in range(len(document))]
            return pages, {at for at, lines in enumerate(pages, 1) if not lines and _has_picture(document, at - 1)}
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentRefused(
                f"{name}: the PDF is encrypted and asks for a password.",
                hint="Remove the password in a PDF program (print or save a copy without it) and add the copy.",
            ) from error
        raise DocumentRefused(
            f"{name}: the PDF is damaged or incomplete ({str(error).rstrip('.')}).",
            hint="Download or export it again; if it opens in a PDF program, print it to a new PDF and add that.",
        ) from error


def _read_page(document: PdfDocument, index: int) -> list[Line]:
    rows: list[tuple[Line, list[Line]]] = []
    start = 0
    with closing(document[index]) as page, closing(page.get_textpage()) as words:
        for text in words.get_text_range().split("\r\n"):
            if text.strip():
                first = start + len(text) - len(text.lstrip())
                line = _place_line(words, text, first, start + len(text.rstrip()) - 1)
                rows.append((line, [*_parts(words, text, start, line)]))
            start += _units(text) + 2
        lines = by_columns(rows)
        for value, left, bottom, top in _form_values(document, page):
            _put_value(lines, value, left, bottom, top)
    return lines


def _units(text: str) -> int:
    """Letters beyond 16 bits count twice in PDFium."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _parts(words: PdfTextPage, text: str, start: int, line: Line) -> Iterator[Line]:
    """What of a line stands between wide gaps; `start` is the place of its first letter on the page."""
    begun = 0
    for space in re.finditer(r"(?<=\S) (?=\S)", text) if len(text) == _units(text) else ():
        right, (left, _) = _find_right(words, start + space.start() - 1), _find_origin(words, start + space.end())
        if left - right > _GUTTER * line.size:
            yield _place_line(words, text[begun : space.start()], start + begun, start + space.start() - 1)
            begun = space.end()
    yield _place_line(words, text[begun:], start + begun, start + len(text.rstrip()) - 1) if begun else line


def _has_picture(document: PdfDocument, index: int) -> bool:
    import pypdfium2.raw as raw

    with closing(document[index]) as page:
        return any(True for _ in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE]))


def _form_values(document: PdfDocument, page: PdfPage) -> Iterator[tuple[str, float, float, float]]:
    """What stands in the fields of a form, each with its left, lower and upper edge; "[x]" for a checked box."""
    import pypdfium2.raw as raw

    if document.formenv is None:
        return
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        field = raw.FPDFPage_GetAnnot(page, index)
        if raw.FPDFAnnot_GetSubtype(field) == raw.FPDF_ANNOT_WIDGET:
            kind = raw.FPDFAnnot_GetFormFieldType(document.formenv, field)
            if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
                value = "[x]" if raw.FPDFAnnot_IsChecked(document.formenv, field) else ""
            else:
                size = raw.FPDFAnnot_GetFormFieldValue(document.formenv, field, None, 0)
                letters = create_string_buffer(size)
                raw.FPDFAnnot_GetFormFieldValue(document.formenv, field, cast(letters, POINTER(c_ushort)), size)
                value = " ".join(letters.raw.decode("utf-16-le", "ignore").strip("\0").split())
            edges = raw.FS_RECTF()
            if value and raw.FPDFAnnot_GetRect(field, byref(edges)):
                yield value, edges.left, edges.bottom, edges.top
        raw.FPDFPage_CloseAnnot(field)


def _put_value(lines: list[Line], value: str, left: float, bottom: float, top: float) -> None:
    """Behind the nearest text on its left, its label; else on a line of its own."""
    labels = [line for line in lines if bottom - 3 <= line.y <= top and line.left < left]
    if labels:
        label = max(labels, key=lambda line: line.right)
        lines[lines.index(label)] = replace(label, text=f"{label.text.rstrip()} {value}", right=label.left)
    else:
        lines.append(Line(value, left, left, bottom, bottom, 0, top - bottom, False, False))


def _place_line(words: PdfTextPage, text: str, first: int, last: int) -> Line:
    import pypdfium2.raw as raw

    left, y = _find_origin(words, first)
    word = first + len(text.split(maxsplit=1)[0]) - 1
    return Line(
        text,
        left=left,
        right=_find_right(words, last),
        y=y,
        end_y=_find_origin(words, last)[1],
        word=_find_right(words, word) - left,
        size=raw.FPDFText_GetFontSize(words, first),
        bold=raw.FPDFText_GetFontWeight(words, first) >= _BOLD,
        ends_bold=raw.FPDFText_GetFontWeight(words, last) >= _BOLD,
    )


def _find_origin(words: PdfTextPage, index: int) -> tuple[float, float]:
    import pypdfium2.raw as raw

    x, y = c_double(), c_double()
    raw.FPDFText_GetCharOrigin(words, index, byref(x), byref(y))
    return x.value, y.value


def _find_right(words: PdfTextPage, index: int) -> float:
    import pypdfium2.raw as raw

    left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
    raw.FPDFText_GetCharBox(words, index, byref(left), byref(right), byref(bottom), byref(top))
    return right.value


def _tidy(text: str, known: set[str]) -> str:
    text = _BROKEN_WORD.sub(lambda found: _mend(found[1], found[2], known), text)
    return re.sub(r"[ \t]{2,}", " ", normalise_text(text))


def _mend(left: str, right: str, known: set[str]) -> str:
    """Drops the hyphen if the whole word occurs elsewhere in the document, or its halves do not."""
    whole, compound = left + right, f"{left}-{right}"
    if not (left.isalpha() and right.isalpha() and right.islower()) or compound in known:
        return compound
    return whole if whole in known or not (left in known and right in known) else compound


@dataclass(frozen=True)
class Line:
    """One printed line. Lengths are in points; `y` and `end_y` are its first and last baseline and grow upwards.

    They differ where PDFium joined two lines at a hyphenated word. `word` is the width of the first word.
    """

    text: str
    left: float
    right: float
    y: float
    end_y: float
    word: float
    size: float
    bold: bool
    ends_bold: bool


def by_columns(rows: Sequence[tuple[Line, list[Line]]]) -> list[Line]:
    """The lines of a page, each given with its parts between wide gaps; column after column where prose is drawn row by
    row, and as they are elsewhere, as in tables."""
    found: list[Line] = []
    at = 0
    while at < len(rows):
        columns: list[list[Line]] = [[] for _ in rows[at][1]]
        starts = [part.left for part in rows[at][1]]
        end = at
        while end < len(rows) and (places := _columns_of(rows[end][1], starts, rows[end - 1][0] if end > at else None)):
            for place, part in zip(places, rows[end][1], strict=True):
                columns[place].append(part)
            end += 1
        if len(columns) > 1 and all(map(_is_prose, columns)):
            found += [part for column in columns for part in column]
        else:
            end = at + 1
            found.append(rows[at][0])
        at = end
    return found


def _columns_of(parts: Sequence[Line], starts: Sequence[float], above: Line | None) -> list[int]:
    """The column of each part of a row below `above`; none where a part is in no column, or the row apart."""
    size = parts[0].size
    drop = above.y - parts[0].y if above else size
    if not 0 < drop <= 3 * size or any(part.y != part.end_y for part in parts):
        return []
    places = [min(range(len(starts)), key=lambda column: abs(starts[column] - part.left)) for part in parts]
    fits = (
        abs(starts[place] - part.left) <= 2 * size and part.right < (*starts, math.inf)[place + 1]
        for place, part in zip(places, parts, strict=True)
    )
    return places if all(fits) and len({*places}) == len(places) else []


def _is_prose(lines: Sequence[Line]) -> bool:
    small = sum(line.text.lstrip()[:1].islower() for line in lines)
    words = sum(len(line.text.split()) for line in lines)
    return (
        len(lines) >= _LEAST_ROWS
        and small >= _LEAST_PROSE * len(lines)
        and words >= _LEAST_WORDS * len(lines)
        and not any(is_row(line.text) for line in lines)
    )


def find_spacing(pages: Sequence[Sequence[Line]]) -> float:
    """The usual line spacing of the whole document, as a multiple of the type size."""
    gaps = sorted(
        (line.end_y - below.y) / below.size
        for lines in pages
        for line, below in pairwise(lines)
        if line.size == below.size > 0 and line.end_y - below.y > 0.5
    )
    # The lower quartile, because rows of tables are further apart than lines of prose and may be more.
    return gaps[len(gaps) // 4] if gaps else 1.2


def flow_lines(lines: Sequence[Line], spacing: float) -> str:
    """Paragraphs in one line each with a blank line between; items and rows line by line. In doubt a break stays."""
    if not lines:
        return ""
    edges = _find_edges(lines, spacing)
    pieces, opens = [lines[0].text.strip()], True
    for line, below, edge in zip(lines, lines[1:], edges, strict=False):
        text = below.text.strip()
        if _is_apart(line, below, spacing):
            pieces.append(f"\n\n{text}")
            opens = True
        elif _goes_on(line, below, edge, spacing, opens):
            pieces[-1] = glue_lines(pieces[-1], text)
            opens = False
        else:
            pieces.append(f"\n{text}")
            opens = True
    return "".join(pieces)


def _find_edges(lines: Sequence[Line], spacing: float) -> list[float]:
    """For each line the right edge it could have filled.

    That is the longest line of its block (between two gaps or column changes), or where most lines with the same left
    margin end, if that is further right: a block of two short lines is not a paragraph.
    """
    edges: list[float] = []
    block = [lines[0]]
    for line, below in zip(lines, [*lines[1:], None], strict=True):
        if below is None or _is_apart(line, below, spacing):
            edges += [max(member.right for member in block)] * len(block)
            block = []
        if below is not None:
            block.append(below)
    rights = defaultdict(list)
    for line in lines:
        rights[round(line.left / 4)].append(line.right)
    usual = {margin: sorted(found)[int(len(found) * 0.85)] for margin, found in rights.items() if len(found) >= 5}
    return [max(edge, usual.get(round(line.left / 4), 0.0)) for line, edge in zip(lines, edges, strict=True)]


def _is_apart(line: Line, below: Line, spacing: float) -> bool:
    leading = spacing * below.size
    drop = line.end_y - below.y
    if drop < -0.5 * leading:
        # Up again: the next column. A sentence runs on only when it plainly does.
        return not (below.text.lstrip()[:1].islower() and not line.text.rstrip().endswith((".", ":", "!", "?")))
    differs = abs(line.size - below.size) > 0.05 * max(line.size, below.size)
    heading = line.bold and line.ends_bold and not below.bold
    return differs or heading or drop > 1.22 * leading


def _goes_on(line: Line, below: Line, edge: float, spacing: float, opens: bool) -> bool:
    leading = spacing * below.size
    if starts_item(below.text) or is_row(line.text) or is_row(below.text):
        return False
    if line.end_y - below.y < -0.5 * leading:
        return True
    ended = line.text.rstrip().endswith((".", ":", ";", "!", "?"))
    if ended and below.bold and not line.ends_bold:
        return False
    if _AMOUNT.search(line.text) and not below.text.lstrip()[:1].islower():
        return False
    shift = below.left - line.left
    if shift > 0.4 * leading and not (opens and starts_item(line.text)):
        return False
    if shift < -0.4 * leading and not opens:
        return False
    # The break was forced when the next line's first word would not have fitted.
    return line.right + below.word > edge - 0.5 * leading

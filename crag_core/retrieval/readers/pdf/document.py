"""PDF through PDFium: a page of text for each printed page, its lines joined into paragraphs by their positions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from ctypes import POINTER, c_double, c_ushort, cast, create_string_buffer
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.page import MAX_PAGES, Page, check_count, name_lost
from crag_core.retrieval.readers.pdf.lines import BROKEN, Line, by_columns, find_spacing, flow_lines
from crag_core.retrieval.readers.pdf.rows import NARROW_GAP, WIDE_GAP, Row, TableRows, join_rows
from crag_core.retrieval.readers.text import is_row, normalise_text, raise_figures

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

_BOLD = 600
# PDFium is not thread-safe, not even across documents.
PDFIUM = Lock()
_BROKEN_WORD = re.compile(rf"(\w*){BROKEN}\s*(\w*)")
_UNMAPPED = re.compile("[\ufffd\ue000-\uf8ff\x01-\x08\x0e-\x1f]")
_STAMP = 100  # letters on a page that may be a scan


def read_pdf(content: bytes, name: str) -> tuple[Page, ...]:
    with PDFIUM:
        read, of_all = _extract(content, name)
    whole = "\n".join(line.text for lines, _ in read for line in lines)
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
    spacing = find_spacing([lines for lines, _ in read])
    pages = [
        Page(_tidy(flow_lines(lines, spacing), known), number, lost) for number, (lines, lost) in enumerate(read, 1)
    ]
    return (*pages, *(Page("", None, what) for what in of_all))


def _extract(content: bytes, name: str) -> tuple[list[tuple[list[Line], str]], list[str]]:
    """The lines of each page, and what was left out of it; what was left out of all, in words."""
    import pypdfium2

    try:
        with closing(pypdfium2.PdfDocument(content)) as document:
            if not len(document):
                raise DocumentRefused(f"{name}: the PDF has no pages.", hint="Export or download it again.")
            check_count(name, len(document), MAX_PAGES, "pages")
            if document.get_formtype():
                document.init_forms()
            tables = TableRows()
            pages = [_read_page(document, index, tables) for index in range(len(document))]
            return pages, name_lost({"attached file": document.count_attachments()})
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


def _read_page(document: PdfDocument, index: int, tables: TableRows) -> tuple[list[Line], str]:
    """Its lines, and what was left out of it, in words."""
    rows: list[Row] = []
    with closing(document[index]) as page, closing(page.get_textpage()) as words:
        values, notes, comments = _read_annotations(document, page)
        for text, start in _printed_lines(words):
            line = _place_line(words, _raise_figures(words, text, start), start)
            parts = [*_parts(words, line, start)]
            here = [value for value in values if value.y - 3 <= line.y <= value.y + value.size]
            values = [value for value in values if value not in here]
            if here:
                line = replace(line, text=_put_values(words, line.text, start, here))
                parts = [line]
            rows.append((line, parts))
        lines = by_columns(tables.name_cells(join_rows(rows))) + values + notes
        picture = _say_picture(page, sum(len(line.text) for line in lines))
    return lines, ", ".join(filter(None, [picture, *name_lost({"comment": comments})]))


def _printed_lines(words: PdfTextPage) -> Iterator[tuple[str, int]]:
    """Each with the place of its first letter on the page. PDFium puts lines of a narrow cell behind one another."""
    start = 0  # of a line on the page, as PDFium ends them
    for whole in re.split(rf"(?<={BROKEN})|\r\n", words.get_text_range()):
        text = whole.strip()
        begun = first = start + len(whole) - len(whole.lstrip())
        for space in re.finditer(r"(?<=\S) (?=\S)", text) if len(text) == _units(text) else ():
            at = first + space.start()
            before, after = _letter(words, at - 1), _letter(words, at + 1)
            if after.x < before.x and before.y - after.y > before.size / 2:
                yield text[begun - first : at - first], begun
                begun = at + 1
        if text:
            yield text[begun - first :], begun
        start += _units(whole) + 2 * (not whole.endswith(BROKEN))


def _put_values(words: PdfTextPage, text: str, start: int, values: Sequence[Line]) -> str:
    """What stands in the fields of a row, between its words."""
    for value in sorted(values, key=lambda value: -value.left):
        at = next((at for at in range(len(text)) if _letter(words, start + at).x >= value.left), len(text))
        text = f"{text[:at].rstrip()} {value.text} {text[at:].lstrip()}".strip()
    return text


def _raise_figures(words: PdfTextPage, text: str, start: int) -> str:
    """Small figures above the line, such as exponents and marks of notes, do not join the figure before them."""
    for pair in re.finditer(r"(?<=\d)\d", text) if len(text) == _units(text) else ():
        at = start + pair.start()
        before, figure = _letter(words, at - 1), _letter(words, at)
        height, rise = before.high - before.low, figure.y - before.y
        if figure.x > before.x and figure.high - figure.low < 0.8 * height < 4 * rise < 4 * height:
            digits = re.sub(r"\D.*", "", text[pair.start() :])
            return text[: pair.start()] + raise_figures("1", digits) + text[pair.start() + len(digits) :]
    return text


def _units(text: str) -> int:
    """Letters beyond 16 bits count twice in PDFium."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _parts(words: PdfTextPage, line: Line, start: int) -> Iterator[Line]:
    """What of a line stands between wide gaps; `start` is the place of its first letter on the page."""
    begun, text = 0, line.text
    gap = NARROW_GAP if (line.bold and line.ends_bold) or is_row(text) else WIDE_GAP
    for space in re.finditer(r"(?<=\S) (?=\S)", text) if len(text) == _units(text) else ():
        left, right = _letter(words, start + space.end()).x, _letter(words, start + space.start() - 1).right
        if left - right > gap * line.size:
            yield _place_line(words, text[begun : space.start()], start + begun)
            begun = space.end()
    yield _place_line(words, text[begun:], start + begun) if begun else line


def _say_picture(page: PdfPage, letters: int) -> str:
    """For a scan without a text layer, also where it has a stamp or a page number."""
    import pypdfium2.raw as raw

    if letters > _STAMP:
        return ""
    pictures = [one.get_bounds() for one in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE])]
    if pictures and not letters:
        return "no text, only a picture"
    covered = max((abs((right - left) * (top - bottom)) for left, bottom, right, top in pictures), default=0)
    return "little text, mostly a picture" if covered > 0.5 * math.prod(page.get_size()) else ""


def _read_annotations(document: PdfDocument, page: PdfPage) -> tuple[list[Line], list[Line], int]:
    """What stands in the fields of a form, "[x]" for a checked box; texts laid over the page; how many comments."""
    import pypdfium2.raw as raw

    values, notes, comments = [], [], 0
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        mark, edges = raw.FPDFPage_GetAnnot(page, index), raw.FS_RECTF()
        kind = raw.FPDFAnnot_GetSubtype(mark)
        raw.FPDFAnnot_GetRect(mark, edges)
        is_field = kind == raw.FPDF_ANNOT_WIDGET and document.formenv is not None
        said = _field_value(document, mark) if is_field else _wide(raw.FPDFAnnot_GetStringValue, mark, b"Contents")
        placed = Line(said, edges.left, edges.left, edges.bottom, 0, edges.top - edges.bottom, False, False)
        if said and is_field:
            values.append(placed)
        elif said and kind == raw.FPDF_ANNOT_FREETEXT:
            notes.append(placed)
        elif said and kind not in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_WIDGET):
            comments += 1
        raw.FPDFPage_CloseAnnot(mark)
    return values, notes, comments


def _field_value(document: PdfDocument, field: object) -> str:
    import pypdfium2.raw as raw

    form = document.formenv
    if raw.FPDFAnnot_GetFormFieldType(form, field) in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        return "[x]" if raw.FPDFAnnot_IsChecked(form, field) else ""
    options = range(max(0, raw.FPDFAnnot_GetOptionCount(form, field)))
    chosen = [at for at in options if raw.FPDFAnnot_IsOptionSelected(form, field, at)]
    # What people see of a choice, not what is sent.
    labels = [_wide(raw.FPDFAnnot_GetOptionLabel, form, field, at) for at in chosen]
    return ", ".join(labels) or _wide(raw.FPDFAnnot_GetFormFieldValue, form, field)


def _wide(read: Callable[..., int], *given: object) -> str:
    """The text that a function of PDFium writes in UTF-16, on one line."""
    letters = create_string_buffer(max(2, read(*given, None, 0)))
    read(*given, cast(letters, POINTER(c_ushort)), len(letters))
    return " ".join(letters.raw.decode("utf-16-le", "ignore").strip("\0").split())


def _place_line(words: PdfTextPage, text: str, start: int) -> Line:
    """`text` from its first letter, at `start` on the page, to its last."""
    inner = next((at for at in range(len(text) // 2, len(text)) if not text[at].isspace()), 0)
    first, middle, last = (_letter(words, start + at) for at in (0, inner, len(text.rstrip()) - 1))
    word = _letter(words, start + len(text.split(maxsplit=1)[0]) - 1)
    # A line may begin or end with the mark of a note, or with small capitals.
    left, y, right, end, size = first.x, middle.y, last.right, word.right, max(first.size, middle.size, last.size)
    # On a page that lies on its side lines run up or down.
    if abs(last.y - first.y) > abs(last.x - first.x):
        if last.y > first.y:
            left, y, right, end = first.y, -middle.x, last.high, word.high
        else:
            left, y, right, end = -first.y, middle.x, -last.low, -word.low
    return Line(text, left, right, y, end - left, size, first.is_bold, last.is_bold)


class _Letter(NamedTuple):
    """Its origin, its edges and its type size, in points; upwards and to the right."""

    x: float
    y: float
    left: float
    right: float
    low: float
    high: float
    size: float
    is_bold: bool


def _letter(words: PdfTextPage, at: int) -> _Letter:
    """The one at a place of the text of a page, which leaves out some of the letters that PDFium counts."""
    import pypdfium2.raw as raw

    index = max(0, raw.FPDFText_GetCharIndexFromTextIndex(words, at))
    x, y, left, right, low, high = (c_double() for _ in range(6))
    raw.FPDFText_GetCharOrigin(words, index, x, y)
    raw.FPDFText_GetCharBox(words, index, left, right, low, high)
    name, matrix = create_string_buffer(100), raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(words, index, matrix)
    # The size that a font is set to is scaled with the page or the text.
    size = raw.FPDFText_GetFontSize(words, index) * math.hypot(matrix.c, matrix.d)
    raw.FPDFText_GetFontInfo(words, index, name, len(name), None)
    # Fonts that a file does not bring have no weight, but a name.
    is_bold = raw.FPDFText_GetFontWeight(words, index) >= _BOLD or b"bold" in name.value.lower()
    return _Letter(x.value, y.value, left.value, right.value, low.value, high.value, size, is_bold)


def _tidy(text: str, known: set[str]) -> str:
    text = _BROKEN_WORD.sub(lambda found: _mend(found[1], found[2], known), text)
    return re.sub(r"[ \t]{2,}", " ", normalise_text(text))


def _mend(left: str, right: str, known: set[str]) -> str:
    """Drops the hyphen if the whole word occurs elsewhere in the document, or its halves do not."""
    whole, compound = left + right, f"{left}-{right}"
    if not (left.isalpha() and right.isalpha() and right.islower()) or compound in known:
        return compound
    return whole if whole in known or not (left in known and right in known) else compound

"""PDF through PDFium: a page of text for each printed page, numbered from 1."""

from __future__ import annotations

import re
from contextlib import closing
from ctypes import byref, c_double
from threading import Lock
from typing import TYPE_CHECKING

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.limits import MAX_PAGES, check_count
from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.shared.markdown_text import normalise_text
from crag_core.retrieval.readers.shared.pdf_layout import Line, find_spacing, flow_lines

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfTextPage

_BOLD = 600
# PDFium is not thread-safe, not even across documents.
PDFIUM = Lock()
# PDFium replaces a hyphen and the line break after it by U+FFFE.
_BROKEN_WORD = re.compile("(\\w*)\ufffe(\\w*)")
_UNMAPPED = re.compile("[\ufffd\ue000-\uf8ff\x01-\x08\x0e-\x1f]")


def read_pdf(content: bytes, name: str) -> tuple[Page, ...]:
    with PDFIUM:
        pages = _extract(content, name)
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
    return tuple(Page(_tidy(flow_lines(lines, spacing), known), number) for number, lines in enumerate(pages, 1))


def _extract(content: bytes, name: str) -> list[list[Line]]:
    import pypdfium2

    try:
        with closing(pypdfium2.PdfDocument(content)) as document:
            if not len(document):
                raise DocumentRefused(f"{name}: the PDF has no pages.", hint="Export or download it again.")
            check_count(name, len(document), MAX_PAGES, "pages")
            return [_read_page(document, index) for index in range(len(document))]
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
    lines, start = [], 0
    with closing(document[index]) as page, closing(page.get_textpage()) as words:
        for text in words.get_text_range().split("\r\n"):
            if text.strip():
                first = start + len(text) - len(text.lstrip())
                lines.append(_place_line(words, text, first, start + len(text.rstrip()) - 1))
            # Letters beyond 16 bits count twice in PDFium.
            start += len(text.encode("utf-16-le", "surrogatepass")) // 2 + 2
    return lines


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

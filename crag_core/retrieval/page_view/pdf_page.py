"""One PDF page through PDFium: image, letters, and the box of each letter."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from ctypes import byref, c_double, c_int, pointer
from typing import TYPE_CHECKING

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.page_view.highlight import Box

# PDFium is not thread-safe: reading documents and drawing their pages take turns.
from crag_core.retrieval.readers.pdf.document import PDFIUM

if TYPE_CHECKING:
    from PIL.Image import Image
    from pypdfium2 import PdfPage, PdfTextPage

_MOST_PIXELS = 6_000_000
_LONGEST_SIDE = 8_000
_MOST_CHARACTERS = 50_000  # of a page; the densest newspaper has fewer
_DRAWING_SECONDS = 10.0
_PRINT_IT = "Open the file in a PDF program, print it to a new PDF, and add that one."
_FINE = 16  # parts of a pixel

_Sides = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels."""


@contextmanager
def open_sheet(original: bytes, page: int, width: int) -> Iterator[Sheet]:
    """Page `page` (from 1), to be drawn `width` pixels wide; holds the lock of PDFium.

    Raises `DocumentRefused` for a file that cannot be read or drawn, and for a page that it does not have.
    """
    import pypdfium2

    with PDFIUM:
        try:
            with closing(pypdfium2.PdfDocument(original)) as document:
                pages = len(document)
                if not 1 <= page <= pages:
                    raise DocumentRefused(
                        f"Expected a page from 1 to {pages}, found {page}.",
                        hint="The record does not fit the document: ask the question again.",
                    )
                with closing(document[page - 1]) as sheet, closing(sheet.get_textpage()) as words:
                    yield Sheet(sheet, words, pages, width)
        except pypdfium2.PdfiumError as error:
            raise DocumentRefused(f"The page cannot be drawn ({str(error).rstrip('.')}).", hint=_PRINT_IT) from error


class Sheet:
    """A page of a document of so many `pages`, as a picture of `size` (width and height in pixels)."""

    def __init__(self, sheet: PdfPage, words: PdfTextPage, pages: int, width: int) -> None:
        import pypdfium2.raw as raw

        self._sheet = sheet
        self._words = words
        self.pages = pages
        across, down = (max(side, 1.0) for side in sheet.get_size())
        # A page may state any size; the picture is bounded, and keeps its proportions where possible.
        scale = min(width / across, _LONGEST_SIDE / max(across, down), math.sqrt(_MOST_PIXELS / (across * down)))
        self.size = (max(1, round(across * scale)), max(1, round(down * scale)))
        self._turn = _find_turn(sheet, self.size)
        self._tight = [pointer(c_double()) for _ in range(4)]
        self._loose = raw.FS_RECTF()

    def draw(self) -> Image:
        """In colours on white; raises `DocumentRefused` when it takes too long."""
        import pypdfium2
        import pypdfium2.raw as raw

        deadline = time.monotonic() + _DRAWING_SECONDS
        pause = raw.IFSDK_PAUSE(version=1)
        ask = dict(raw.IFSDK_PAUSE._fields_)["NeedToPauseNow"]
        pause.NeedToPauseNow = ask(lambda _: time.monotonic() > deadline)
        bitmap = pypdfium2.PdfBitmap.new_native(*self.size, raw.FPDFBitmap_BGR)
        try:
            bitmap.fill_rect((255, 255, 255, 255), 0, 0, *self.size)
            place = (0, 0, *self.size, 0)
            state = raw.FPDF_RenderPageBitmap_Start(bitmap, self._sheet, *place, raw.FPDF_ANNOT, byref(pause))
            raw.FPDF_RenderPage_Close(self._sheet)
            if state == raw.FPDF_RENDER_DONE:
                picture: Image = bitmap.to_pil().copy()
                return picture
        finally:
            bitmap.close()  # now, under the lock of PDFium, and not when it is garbage-collected
        late = f"drawing it takes longer than {_DRAWING_SECONDS:.0f} seconds"
        reason = late if state == raw.FPDF_RENDER_TOBECONTINUED else "PDFium gave up"
        raise DocumentRefused(f"The page cannot be drawn ({reason}).", hint=_PRINT_IT)

    def characters(self) -> list[str]:
        """Those of the page in reading order; "" for what is no character."""
        import pypdfium2.raw as raw

        count = min(raw.FPDFText_CountChars(self._words), _MOST_CHARACTERS)
        codes = [raw.FPDFText_GetUnicode(self._words, index) for index in range(count)]
        found = [chr(code) if code < 0x110000 else "" for code in codes]
        for at in range(1, len(found)):
            # PDFium gives a character beyond 16 bits as two surrogates.
            if "\ud800" <= found[at - 1] <= "\udbff" and "\udc00" <= found[at] <= "\udfff":
                whole = (found[at - 1] + found[at]).encode("utf-16", "surrogatepass").decode("utf-16")
                found[at - 1 : at + 1] = [whole, ""]
        return found

    def box(self, index: int) -> Box | None:
        """Around one character, of the full height of its font; None when it is not visible."""
        import pypdfium2.raw as raw

        raw.FPDFText_GetCharBox(self._words, index, *self._tight)
        left, right, bottom, top = (side.contents.value for side in self._tight)
        tight = self._to_picture(left, bottom, right, top)
        raw.FPDFText_GetLooseCharBox(self._words, index, byref(self._loose))
        loose = self._to_picture(self._loose.left, self._loose.bottom, self._loose.right, self._loose.top)
        left, up, right, down = loose if _is_sound(loose, tight) else tight
        width, height = self.size
        left, up, right, down = max(left, 0.0), max(up, 0.0), min(right, width), min(down, height)
        return Box(left, up, right, down) if left < right and up < down else None

    def _to_picture(self, left: float, bottom: float, right: float, top: float) -> _Sides:
        x, y, x_by_x, y_by_x, x_by_y, y_by_y = self._turn
        one = (x + left * x_by_x + bottom * x_by_y, y + left * y_by_x + bottom * y_by_y)
        other = (x + right * x_by_x + top * x_by_y, y + right * y_by_x + top * y_by_y)
        return min(one[0], other[0]), min(one[1], other[1]), max(one[0], other[0]), max(one[1], other[1])


def _find_turn(sheet: PdfPage, size: tuple[int, int]) -> tuple[float, float, float, float, float, float]:
    """The affine map from page points to pixels: the image of the origin, and of a step along either axis.

    It includes rotation and cropping of the page. PDFium answers in whole pixels, so it is asked for a larger picture.
    """
    import pypdfium2.raw as raw

    def ask(x: float, y: float) -> tuple[float, float]:
        across, down = c_int(), c_int()
        raw.FPDF_PageToDevice(sheet, 0, 0, *(side * _FINE for side in size), 0, x, y, byref(across), byref(down))
        return across.value / _FINE, down.value / _FINE

    step = max(*sheet.get_size(), 1.0)
    (x, y), (right, right_down), (up, up_down) = ask(0, 0), ask(step, 0), ask(0, step)
    return x, y, (right - x) / step, (right_down - y) / step, (up - x) / step, (up_down - y) / step


def _is_sound(loose: _Sides, tight: _Sides) -> bool:
    """Whether the loose box can be used: it is right for upright text only, and fonts may state nonsense."""
    left, top, right, bottom = loose
    x, y = (tight[0] + tight[2]) / 2, (tight[1] + tight[3]) / 2
    holds = left <= x <= right and top <= y <= bottom
    return holds and left < right and bottom - top <= 3 * max(right - left, tight[3] - tight[1])

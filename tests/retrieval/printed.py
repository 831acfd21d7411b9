"""PDFs made for tests, and where PDFium itself says that a word stands on a page of theirs, in pixels of a picture."""

from __future__ import annotations

import pypdfium2
from fpdf import FPDF

SENTENCES = (
    "The ferry leaves the harbour at nine in the morning.",
    "Bicycles travel free of charge on every sailing of the week.",
    "Dogs pay two euros and stay on the upper deck.",
)
TEXT = " ".join(SENTENCES)


def print_pages(*pages: str, size: int = 12, width: float = 0) -> bytes:
    """A page for each text, wrapped to `width` millimetres (0: to the margin)."""
    pdf = FPDF()
    pdf.set_font("helvetica", size=size)
    for text in pages:
        pdf.add_page()
        pdf.multi_cell(width, text=text, align="L")
    return bytes(pdf.output())


def print_columns(left: str, right: str) -> bytes:
    pdf = FPDF()
    pdf.set_font("times", size=11)
    pdf.add_page()
    with pdf.text_columns(ncols=2, gutter=10, text_align="J") as columns:
        columns.write(left)
        columns.new_column()
        columns.write(right)
    return bytes(pdf.output())


def print_as(letters: str) -> bytes:
    """One line of text that needs no font of its own: Helvetica draws it, and a map says which letters are meant."""
    codes = range(0x41, 0x41 + len(letters))
    assert len(codes) <= 0x39, "one code for each letter"
    pairs = "".join(
        f"<{code:02x}> <{letter.encode('utf-16-be').hex()}>\n" for code, letter in zip(codes, letters, strict=True)
    )
    meant = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Made def /CMapType 2 def\n"
        f"1 begincodespacerange <00> <ff> endcodespacerange\n{len(letters)} beginbfchar\n{pairs}endbfchar\n"
        "endcmap end end"
    ).encode()
    drawn = f"BT /F1 20 Tf 72 700 Td <{bytes(codes).hex()}> Tj ET".encode()
    return assemble(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(meant), meant),
    )


def draw(drawing: bytes, width: float = 612, height: float = 792) -> bytes:
    """A page of any size with nothing but this drawing on it."""
    return assemble(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R >>".encode(),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawing), drawing),
    )


def assemble(*objects: bytes) -> bytes:
    """A PDF file of these objects, numbered from 1; the first is the catalogue."""
    body, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (size, len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + trailer


def find_word(original: bytes, page: int, word: str, width: int) -> list[tuple[float, float, float, float]]:
    """(left, top, right, bottom) of every letter of the first place of `word`, on an upright page."""
    document = pypdfium2.PdfDocument(original)
    words = document[page - 1].get_textpage()
    found = words.search(word, match_case=True).get_next()
    assert found, f"{word!r} is not on the page"
    across, down = document[page - 1].get_size()
    scale = width / across
    boxes = []
    for at in range(found[0], sum(found)):
        left, bottom, right, top = words.get_charbox(at)
        boxes.append((left * scale, (down - top) * scale, right * scale, (down - bottom) * scale))
    return boxes

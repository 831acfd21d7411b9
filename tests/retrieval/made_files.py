"""Documents of every other format made for tests, small enough to check by eye."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from datetime import date, time
from email.message import EmailMessage
from typing import Any

ODF = "urn:oasis:names:tc:opendocument:xmlns"
_NAMES = {
    "office": f"{ODF}:office:1.0",
    "text": f"{ODF}:text:1.0",
    "table": f"{ODF}:table:1.0",
    "draw": f"{ODF}:drawing:1.0",
    "style": f"{ODF}:style:1.0",
    "presentation": f"{ODF}:presentation:1.0",
    "manifest": f"{ODF}:manifest:1.0",
}
NAMESPACES = " ".join(f'xmlns:{prefix}="{name}"' for prefix, name in _NAMES.items())
CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="{}" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def zip_files(files: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            # The media type stands first and as it is, so that it can be told from the first bytes.
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else method)
    return stream.getvalue()


def rezip(content: bytes, change: Mapping[str, str | bytes | Callable[[bytes], bytes] | None]) -> bytes:
    """The same package with some files added, changed by a function, or left out (None)."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files: dict[str, str | bytes] = {name: archive.read(name) for name in archive.namelist()}
    for name, new in change.items():
        if new is None:
            del files[name]
        else:
            files[name] = new(files[name]) if callable(new) else new  # type: ignore[arg-type]
    return zip_files(files)


def make_open(kind: str, body: str, styles: str = "", manifest: str = "") -> bytes:
    """An OpenDocument file; `kind` is text, spreadsheet or presentation, `body` what stands inside that element."""
    return zip_files(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": f"<manifest:manifest {NAMESPACES}>{manifest}</manifest:manifest>",
            "content.xml": f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {NAMESPACES}>'
            f"<office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
        }
    )


def make_workbook(*sheets: Callable[[Any], object]) -> bytes:
    """A sheet for each function that fills one."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, fill in enumerate(sheets, 1):
        fill(book.create_sheet(f"Sheet {number}"))
    return save(book)


def fill(*rows: tuple[object, ...]) -> Callable[[Any], object]:
    return lambda sheet: [sheet.append(row) for row in rows]


def make_slides(*slides: tuple[str, str, str]) -> bytes:
    """(title, text, notes) of each."""
    import pptx

    presentation = pptx.Presentation()
    for title, text, notes in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    return save(presentation)


def save(document: Any) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def make_book(chapters: Mapping[str, str], order: str, items: str, folder: str = "OEBPS", **more: str | bytes) -> bytes:
    """An EPUB; `chapters` by their place in the folder, `order` and `items` as XML."""
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/" version="3.0">'
        "<metadata><dc:title>Northern Harbours</dc:title><dc:creator>Ada Berg</dc:creator></metadata>"
        f"<manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    start = f"{folder}/" if folder else ""
    return zip_files(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER.format(f"{start}content.opf"),
            f"{start}content.opf": package,
            **{f"{start}{place}": chapter for place, chapter in chapters.items()},
            **more,
        }
    )


def make_chapter(text: str, title: str = "Northern Harbours") -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
        f'<head><title>{title}</title><script src="a.js"/></head><body>{text}</body></html>'
    )


def make_mail(subject: str = "Timetable", text: str = "The ferry leaves at nine.") -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = subject, "Ada Berg <ada@example.org>", "crew@example.org"
    mail["Date"] = "Thu, 04 Mar 2021 09:15:00 +0000"
    mail.set_content(text)
    return mail


def one_of_each() -> dict[str, bytes]:
    """A sound document of every format that is not plain text, by extension."""
    items = '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
    mail = make_mail()
    mail.add_attachment(b"route,price\nR1,8.40", maintype="text", subtype="csv", filename="fares.csv")
    workbook = make_workbook(fill(("Route", "Price", "From"), ("R1", 8.4, date(2021, 3, 4)), ("R2", 5, time(9, 30))))
    return {
        ".pptx": make_slides(("Fares", "Adults pay five euros.", "Smile."), ("Times", "Nine and noon.", "")),
        ".xlsx": workbook,
        ".rtf": rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0\fcharset204 Arial;}}\f0 \'cf\'e0\'f0\'ee\'ec \u8364? nine\par}",
        ".odt": make_open("text", "<text:h text:outline-level='1'>Fares</text:h><text:p>Adults pay five.</text:p>"),
        ".epub": make_book({"a.xhtml": make_chapter("<p>The ferry leaves.</p>")}, '<itemref idref="a"/>', items),
        ".eml": bytes(mail),
    }

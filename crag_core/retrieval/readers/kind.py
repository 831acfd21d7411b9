"""What a file really is, told from its first bytes rather than from its name."""

from __future__ import annotations

from crag_core.errors import DocumentRefused
from crag_core.retrieval.readers.decoding import looks_like_utf16

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"%!PS", "a PostScript file"),
    (b"{\\rtf", "an RTF document"),
)
_EXPECTED = {".pdf": "a PDF", ".docx": "a Word document (.docx)"}
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body")


def name_kind(content: bytes) -> str:
    """A kind in words for people ("a PNG image"), or "text" when nothing says otherwise."""
    head = content[:4096]
    # PDF readers accept a little rubbish before the header, and real files have it.
    if b"%PDF-" in content[:1024]:
        return "a PDF"
    if head.startswith(_OLE):
        encrypted = "EncryptedPackage".encode("utf-16-le") in content
        return (
            "an Office document protected with a password"
            if encrypted
            else "an older Office document (.doc, .xls, .msg)"
        )
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return _name_archive(content) if kind == "a ZIP archive" else kind
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_HTML_STARTS):
        return "an HTML page"
    if b"\x00" in content and not looks_like_utf16(content):
        return "binary data"
    return "text"


def check_kind(content: bytes, extension: str, name: str) -> None:
    """Raises `DocumentRefused` when the content cannot be what the extension promises."""
    found, expected = name_kind(content), _EXPECTED.get(extension, "text")
    if found == expected or (expected == "text" and found == "an HTML page"):
        return
    if "password" in found:
        hint = "Open it in Office, remove the password, save it and add it again."
    elif "older Office" in found:
        hint = "Open it in Office, save it as .docx or PDF and add that."
    elif "image" in found:
        hint = "Images hold no text: run text recognition (OCR) first and add the resulting PDF or text."
    elif found == "an HTML page":
        hint = "Often a download page saved in place of the file: download it again, or rename it to .html."
    else:
        hint = f"Download or export the file again, or rename it if it is not meant to be {extension}."
    raise DocumentRefused(f"{name}: expected {expected}, found {found}.", hint=hint)


def _name_archive(content: bytes) -> str:
    # The names of a ZIP's members stand uncompressed in its directory at the end.
    for member, kind in (
        (b"word/", "a Word document (.docx)"),
        (b"xl/", "an Excel workbook"),
        (b"ppt/", "a PowerPoint file"),
    ):
        if member in content:
            return kind
    return "a ZIP archive"

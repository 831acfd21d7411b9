"""What a file really is by its first bytes rather than by its name; a container by what stands inside."""

from __future__ import annotations

import re
from collections.abc import Iterable

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.shared.decoding import looks_like_utf16
from crag_core.retrieval.readers.shared.zip_packages import BROKEN_ZIP, open_archive, read_bounded

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"%!PS", "a PostScript file"),
)
_EXPECTED = {
    **dict.fromkeys((".csv", ".htm", ".html", ".markdown", ".md", ".txt"), "text"),
    ".pdf": "a PDF",
    ".docx": "a Word document (.docx)",
    ".pptx": "a PowerPoint presentation (.pptx)",
    ".xlsx": "an Excel workbook (.xlsx)",
    ".xlsm": "an Excel workbook (.xlsx)",
    ".odt": "an OpenDocument text (.odt)",
    ".ods": "an OpenDocument spreadsheet (.ods)",
    ".odp": "an OpenDocument presentation (.odp)",
    ".epub": "an EPUB book (.epub)",
    ".rtf": "an RTF document",
    ".eml": "an e-mail (.eml)",
}
# The first name that a ZIP package contains, or begins one of its folders with.
_INSIDE = (
    ("word/", _EXPECTED[".docx"]),
    ("xl/workbook.bin", "a binary Excel workbook (.xlsb)"),
    ("xl/", _EXPECTED[".xlsx"]),
    ("ppt/", _EXPECTED[".pptx"]),
    ("META-INF/container.xml", _EXPECTED[".epub"]),
)
_MEDIA_TYPES = (
    (b"application/epub+zip", _EXPECTED[".epub"]),
    (b"application/vnd.oasis.opendocument.text", _EXPECTED[".odt"]),
    (b"application/vnd.oasis.opendocument.spreadsheet", _EXPECTED[".ods"]),
    (b"application/vnd.oasis.opendocument.presentation", _EXPECTED[".odp"]),
)
# Streams by the names that the directory of an OLE file writes in UTF-16.
_STREAMS = (
    ("EncryptedPackage", "an Office document protected with a password"),
    ("__properties_version1.0", "an Outlook message (.msg)"),
    ("WordDocument", "an older Word document (.doc)"),
    ("PowerPoint Document", "an older PowerPoint presentation (.ppt)"),
    ("Workbook", "an older Excel workbook (.xls)"),
)
_EXTENSIONS = {kind: extension for extension, kind in _EXPECTED.items() if kind != "text" and extension != ".xlsm"}
# Both are text as well, and a note may begin as a mail does.
_TEXTS = ("text", "an HTML page", "an e-mail (.eml)")
_ADVICE = {
    "password": "Open it in Office, remove the password, save it and add it again.",
    ".msg": "Open it in Outlook, save it as .eml and add that.",
    ".doc": "Open it in Office, save it as .docx or PDF and add that.",
    ".xls": "Open it in Office, save it as .xlsx and add that.",
    ".xlsb": "Open it in Office, save it as .xlsx and add that.",
    ".ppt": "Open it in Office, save it as .pptx or PDF and add that.",
    ".mobi": "Convert it to EPUB and add that.",
    "image": "Images hold no text: run text recognition (OCR) first and add the resulting PDF or text.",
    ".zip": "Unpack it and add the files inside.",
}
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".bmp", ".webp")
_SIMILAR = {
    **{".docm": ".doc", ".dot": ".doc", ".azw": ".mobi", ".azw3": ".mobi", ".pptm": ".ppt", ".ppsx": ".ppt"},
    **dict.fromkeys(_IMAGES, "image"),
}
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body")
_HEADER = re.compile(rb"(?:From \S|[!-9;-~]+:)")
_KNOWN_HEADER = re.compile(
    rb"(?im)^(?:from|to|cc|subject|date|received|return-path|delivered-to|message-id|mime-version|content-type):"
)


def detect_kind(content: bytes) -> str:
    """The kind in words ("a PNG image"); "text" where no signature is found."""
    head = content[:4096]
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"{\\rtf"):
        return _EXPECTED[".rtf"]
    # PDF readers accept a little rubbish before the header, and real files have it.
    if b"%PDF-" in content[:1024]:
        return "a PDF"
    if head.startswith(b"PK\x03\x04"):
        return _name_zip(content)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return _name_ole(content)
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    if start.lower().startswith(_HTML_STARTS):
        return "an HTML page"
    if b"\x00" in content and not looks_like_utf16(content):
        return "binary data"
    is_mail = _HEADER.match(start) and _KNOWN_HEADER.search(re.split(rb"\n\r?\n", start)[0])
    return _EXPECTED[".eml"] if is_mail else "text"


def _name_zip(content: bytes) -> str:
    # From the list of files, since a presentation may hold a whole workbook.
    try:
        archive = open_archive(content, "")
        names = archive.namelist()
        media = read_bounded(archive, archive.getinfo("mimetype"), 200) if "mimetype" in names else b""
    except (*BROKEN_ZIP, DocumentRefused):
        return _name_damaged(content)
    for media_type, kind in _MEDIA_TYPES:
        if (media or b"").strip().removesuffix(b"-template") == media_type:
            return kind
    for inside, kind in _INSIDE:
        if any(name.startswith(inside) for name in names):
            return kind
    return "a ZIP archive"


def _name_damaged(content: bytes) -> str:
    """By the first name that is found, so that a truncated document is recognised."""
    marks = [(inside.encode(), kind) for inside, kind in _INSIDE]
    marks += [(b"mimetype" + media_type, kind) for media_type, kind in _MEDIA_TYPES]
    found = [(content.find(mark), -len(mark), kind) for mark, kind in marks if mark in content]
    return min(found)[2] if found else "a ZIP archive"


def _name_ole(content: bytes) -> str:
    for stream, kind in _STREAMS:
        if stream.encode("utf-16-le") in content:
            return kind
    return "an older Office document (.doc, .xls, .ppt)"


def check_kind(content: bytes, extension: str, name: str) -> None:
    """Raises `DocumentRefused` when the content is of another kind than its extension says."""
    found, expected = detect_kind(content), _EXPECTED.get(extension)
    if expected in (None, found) or (expected == "text" and found in _TEXTS):
        return
    hint = next((advice for word, advice in _ADVICE.items() if word.strip(".") in re.findall(r"\w+", found)), "")
    if hint:
        pass
    elif found == "an HTML page":
        hint = "Often a download page saved in place of the file: download it again, or rename it to .html."
    elif found in _EXTENSIONS:
        hint = f"If that is what it should be, rename it so that its name ends in {_EXTENSIONS[found]}."
    else:
        hint = f"Download or export the file again, or rename it if it is not meant to be {extension}."
    raise DocumentRefused(f"{name}: expected {expected}, found {found}.", hint=hint)


def refuse_extension(name: str, extension: str, known: Iterable[str]) -> DocumentRefused:
    """For a file whose extension has no reader."""
    return DocumentRefused(
        f"{name}: expected one of {', '.join(known)}, found {extension or 'no extension'}.",
        hint=_ADVICE.get(
            _SIMILAR.get(extension, extension),
            "Convert the file to one of these formats, or rename it if only its extension is wrong.",
        ),
    )

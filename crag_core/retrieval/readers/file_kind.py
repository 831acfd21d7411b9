"""What a file really is by its first bytes rather than by its name; a container by what stands inside."""

from __future__ import annotations

import re
from collections.abc import Iterable

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.decoding import looks_like_utf16
from crag_core.retrieval.readers.packages import BROKEN_ZIP, open_archive, read_bounded

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
# Marked-up text and data, in any encoding.
_MARKUP = re.findall(
    r"\S+",
    ".adoc .asciidoc .bib .commonmark .dbk .djot .docbook .enw .fb2 .geojson .htm .html .ipynb .jats .json .jsonl "
    ".kml .latex .mdx .nbib .ndjson .nxml .opml .org .qmd .ris .rmd .rst .tex .toml .typ .vtt .xhtml .xml .yaml "
    ".yml",
)
_OTHERS = (".dbf", ".hwp", ".hwpx", ".key", ".numbers", ".pages", ".wpd")
_KINDS: dict[str, tuple[str, ...]] = {
    "text": (*_MARKUP, ".csv", ".markdown", ".md", ".tsv", ".txt"),
    "a Word document (.docx)": (".docx", ".docm", ".dotx", ".dotm"),
    "a PowerPoint presentation (.pptx)": (".pptx", ".pptm", ".potx", ".potm", ".ppsx"),
    "an Excel workbook (.xlsx)": (".xlsx", ".xlsm", ".xltx", ".xltm"),
    "an older Word document (.doc)": (".doc", ".dot"),
    "an older PowerPoint presentation (.ppt)": (".ppt", ".pps", ".pot"),
    "an older Excel workbook (.xls)": (".xls", ".xlt"),
    "a binary Excel workbook (.xlsb)": (".xlsb",),
    "an Outlook message (.msg)": (".msg",),
    "a PDF": (".pdf",),
    "an OpenDocument text (.odt)": (".odt",),
    "an OpenDocument spreadsheet (.ods)": (".ods",),
    "an OpenDocument presentation (.odp)": (".odp",),
    "an EPUB book (.epub)": (".epub",),
    "an RTF document": (".rtf",),
    "an e-mail (.eml)": (".eml",),
}
EXPECTED = {extension: kind for kind, extensions in _KINDS.items() for extension in extensions}
"""What a file must be, in words, by its extension. Other formats are checked by the library alone."""
LIBRARY = (*_MARKUP, *_OTHERS, *(extension for extension, kind in EXPECTED.items() if kind not in ("text", "a PDF")))
"""The formats that the library reads, by extension."""
# The first name that a ZIP package contains, or begins one of its folders with.
_INSIDE = (
    ("word/", EXPECTED[".docx"]),
    ("xl/workbook.bin", EXPECTED[".xlsb"]),
    ("xl/", EXPECTED[".xlsx"]),
    ("ppt/", EXPECTED[".pptx"]),
    ("META-INF/container.xml", EXPECTED[".epub"]),
)
_MEDIA_TYPES = (
    (b"application/epub+zip", EXPECTED[".epub"]),
    (b"application/vnd.oasis.opendocument.text", EXPECTED[".odt"]),
    (b"application/vnd.oasis.opendocument.spreadsheet", EXPECTED[".ods"]),
    (b"application/vnd.oasis.opendocument.presentation", EXPECTED[".odp"]),
)
# Streams by the names that the directory of an OLE file writes in UTF-16.
_STREAMS = (
    ("EncryptedPackage", "an Office document protected with a password"),
    ("__properties_version1.0", EXPECTED[".msg"]),
    ("WordDocument", EXPECTED[".doc"]),
    ("PowerPoint Document", EXPECTED[".ppt"]),
    ("Workbook", EXPECTED[".xls"]),
)
_OCR = "Images hold no text: run text recognition (OCR) first and add the resulting PDF or text."
_SOUND = "Sound and films hold no text: add a transcript."
_EXTENSIONS = {kind: extensions[0] for kind, extensions in _KINDS.items() if kind != "text"}
# Both are text as well, and a note may begin as a mail does.
_ALSO_TEXT = ("text", "an HTML page", EXPECTED[".eml"])
_BEST_KNOWN = (".pdf", ".docx", ".xlsx", ".pptx", ".odt", ".html", ".epub", ".eml", ".md", ".csv", ".txt")
_ADVICE = {
    **dict.fromkeys(
        (".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".bmp", ".webp", ".heic", ".svg", "image"), _OCR
    ),
    **dict.fromkeys((".mp3", ".wav", ".m4a", ".ogg", ".flac", ".mp4", ".mov", ".avi", ".webm", ".mkv"), _SOUND),
    **dict.fromkeys((".mobi", ".azw", ".azw3"), "Convert it to EPUB and add that."),
    **dict.fromkeys((".zip", ".7z", ".rar", ".gz", ".tgz", ".tar"), "Unpack it and add the files inside."),
    "password": "Open it in Office, remove the password, save it and add it again.",
    "HTML": "Often a download page saved in place of the file: download it again, or rename it to .html.",
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
        return EXPECTED[".rtf"]
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
    return EXPECTED[".eml"] if is_mail else "text"


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
    found, expected = detect_kind(content), EXPECTED.get(extension)
    if expected in (None, found) or (expected == "text" and found in _ALSO_TEXT):
        return
    hint = f"Download or export the file again, or rename it if it is not meant to be {extension}."
    if found in _EXTENSIONS:
        hint = f"If that is what it should be, rename it so that its name ends in {_EXTENSIONS[found]}."
    words = re.findall(r"\w+", found)
    hint = next((advice for word, advice in _ADVICE.items() if word.strip(".") in words), hint)
    raise DocumentRefused(f"{name}: expected {expected}, found {found}.", hint=hint)


def usual_extension(content: bytes) -> str:
    """For a file without a name; ".txt" for every text."""
    return _EXTENSIONS.get(detect_kind(content), ".txt")


def refuse_extension(name: str, extension: str, known: Iterable[str]) -> DocumentRefused:
    """For a file whose extension has no reader."""
    more = len([*known]) - len(_BEST_KNOWN)
    return DocumentRefused(
        f"{name}: expected a document ({', '.join(_BEST_KNOWN)} or one of {more} other formats), "
        f"found {extension or 'no extension'}.",
        hint=_ADVICE.get(
            extension,
            "Convert the file to one of these formats, or rename it if only its extension is wrong.",
        ),
    )

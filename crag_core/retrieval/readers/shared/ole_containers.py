"""Which document a container holds: formats that share their first bytes, told apart by what stands inside."""

from __future__ import annotations

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.shared.zip_packages import BROKEN_ZIP, open_archive, read_bounded

# The first name that a ZIP package contains, or begins one of its folders with.
_INSIDE = (
    ("word/", "a Word document (.docx)"),
    ("xl/workbook.bin", "a binary Excel workbook (.xlsb)"),
    ("xl/", "an Excel workbook (.xlsx)"),
    ("ppt/", "a PowerPoint presentation (.pptx)"),
    ("META-INF/container.xml", "an EPUB book (.epub)"),
)
_MEDIA_TYPES = (
    (b"application/epub+zip", "an EPUB book (.epub)"),
    (b"application/vnd.oasis.opendocument.text", "an OpenDocument text (.odt)"),
    (b"application/vnd.oasis.opendocument.spreadsheet", "an OpenDocument spreadsheet (.ods)"),
    (b"application/vnd.oasis.opendocument.presentation", "an OpenDocument presentation (.odp)"),
)
# Streams by the names that the directory of an OLE file writes in UTF-16.
_STREAMS = (
    ("EncryptedPackage", "an Office document protected with a password"),
    ("__properties_version1.0", "an Outlook message (.msg)"),
    ("WordDocument", "an older Word document (.doc)"),
    ("PowerPoint Document", "an older PowerPoint presentation (.ppt)"),
    ("Workbook", "an older Excel workbook (.xls)"),
)


def name_zip(content: bytes) -> str:
    # Read from the list of files, since a presentation may hold a whole workbook.
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
    """By the first telling name, so that a document cut short is called what it was."""
    marks = [(inside.encode(), kind) for inside, kind in _INSIDE]
    marks += [(b"mimetype" + media_type, kind) for media_type, kind in _MEDIA_TYPES]
    found = [(content.find(mark), -len(mark), kind) for mark, kind in marks if mark in content]
    return min(found)[2] if found else "a ZIP archive"


def name_ole(content: bytes) -> str:
    for stream, kind in _STREAMS:
        if stream.encode("utf-16-le") in content:
            return kind
    return "an older Office document (.doc, .xls, .ppt)"

"""Documents of some seventy formats through the library xberg: to Markdown, and from there to lines of text.

Nothing is fetched, recognised in pictures or written to a cache; the bytes go in, text comes out.
"""

from __future__ import annotations

import posixpath
import re
import struct
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.decoding import decode_text
from crag_core.retrieval.readers.file_kind import EXPECTED, MEDIA_TYPES
from crag_core.retrieval.readers.html import prepare_html
from crag_core.retrieval.readers.markdown_text import join_blocks, normalise_text
from crag_core.retrieval.readers.office import prepare_open, prepare_slides, prepare_word, prepare_workbook
from crag_core.retrieval.readers.packages import Package, check_entities
from crag_core.retrieval.readers.page import (
    MAX_CELLS,
    MAX_MEMBERS,
    MAX_PAGES,
    MAX_PARTS,
    MAX_UNPACKED,
    Page,
    check_count,
)
from crag_core.retrieval.readers.tables import show_markdown_tables

_PREPARE = {
    **dict.fromkeys((".docx", ".docm", ".dotx", ".dotm"), prepare_word),
    **dict.fromkeys((".pptx", ".pptm", ".potx", ".potm", ".ppsx"), prepare_slides),
    **dict.fromkeys((".xlsx", ".xlsm", ".xltx", ".xltm"), prepare_workbook),
    **dict.fromkeys((".odt", ".ods", ".odp"), prepare_open),
}
_HTML = "text/html"
_CHAPTERS = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document")
# Obfuscation of fonts, which does not concern the text.
_FONTS_ONLY = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_LINK = re.compile(
    r"(!?)\[((?:[^\[\]\\\n]|\\.)*)\]\((?:<[^>\n]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?: \"[^\"\n]*\")?\)"
)
_EMPHASIS = re.compile(r"(?<![\w\\*])(\*{1,3})(?=[^\s*])([^*\n]*[^\s*\\])\1(?!\*)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


def read_by_library(content: bytes, name: str) -> tuple[Page, ...]:
    """The pages of a document whose extension is in `MEDIA_TYPES`; raises `DocumentRefused`."""
    extension = PurePath(name).suffix.lower()
    left_out: list[str] = []
    title = ""
    if content.startswith(b"PK"):
        package = Package(content, name, EXPECTED.get(extension, f"a {extension} file"))
        package.check_xml()
        if extension in _PREPARE:
            changed, left_out = package.parsed(_PREPARE[extension])
            content = package.replaced(changed)
    elif MEDIA_TYPES[extension] == _HTML:
        title, content = _prepare_page(content, name)
    elif extension == ".rtf":
        content = _prepare_rich(content)
    elif not content.startswith(b"\xd0\xcf\x11\xe0") and b"\x00" not in content[:4096]:
        check_entities(content, name)
        content = decode_text(content).encode("utf-8", "ignore")
    document = _extract(content, name, MEDIA_TYPES[extension])
    pages = [*_split_pages(document, extension, title)]
    if left_out:
        pages.append(Page("", None, ", ".join(left_out)))
    return tuple(pages)


def html_to_text(content: bytes, name: str, declared: str = "") -> tuple[str, str]:
    """The title of an HTML page and the text of its body."""
    title, prepared = _prepare_page(content, name, declared)
    return title, show_markdown(_extract(prepared, "page.html", _HTML).content)


def _prepare_page(content: bytes, name: str, declared: str = "") -> tuple[str, bytes]:
    from lxml import etree

    title, root = prepare_html(content, name, declared)
    return title, etree.tostring(root, encoding="utf-8", method="html")


def _prepare_rich(content: bytes) -> bytes:
    """RTF without what is not read: pictures, deleted text, headers, the marks of bold; what stands behind it leaves.

    Letters become UTF-8 where the library would lose them: of two bytes, of two code units, and without an escape.
    """
    pieces, at = [], 0
    for binary in re.finditer(rb"\\bin(\d{1,9}) ?", content):
        if binary.start() >= at:
            pieces.append(content[at : binary.start()])
            at = binary.end() + int(binary[1])
    content = b"".join([*pieces, content[at:]])
    codepage = re.search(rb"\\ansicpg(\d{3,5})\b", content[:4096])
    name = f"cp{codepage[1].decode()}" if codepage else "cp1252"
    try:
        content.decode()
    except UnicodeDecodeError:
        content = re.sub(rb"[\x80-\xff]", lambda found: b"\\'%02x" % found[0][0], content)
    if name in ("cp932", "cp936", "cp949", "cp950"):
        content = _TWO_BYTES.sub(lambda found: _decode_pair(found, name), content)
    content = _TWO_UNITS.sub(_decode_units, content)
    for written, read in _READ_AS:
        content = written.sub(read, content)
    pieces, depth, dropped = [], 0, 0
    for piece in re.split(rb"((?<!\\)[{}])", content):
        depth += (piece == b"{") - (piece == b"}")
        if not dropped and _UNREAD.match(piece):
            dropped = depth
        if not dropped or depth < dropped:
            pieces.append(piece)
            dropped = 0
        if depth == 0 and piece == b"}":
            break
    return b"".join(pieces)


def _decode_pair(found: re.Match[bytes], codepage: str) -> bytes:
    pair = bytes.fromhex(found[1].decode()) + (bytes.fromhex(found[2].decode()) if found[2] else found[3])
    return pair.decode(codepage, "ignore").encode() or found[0]


def _decode_units(found: re.Match[bytes]) -> bytes:
    units = b"".join(struct.pack("<H", int(unit) & 0xFFFF) for unit in found.groups())
    return units.decode("utf-16-le", "ignore").encode()


_UNREAD = re.compile(rb"\s*(?:\\(?!par)[a-z]+-?\d* ?)*?\\(?:deleted|header[lrf]?|footer[lrf]?|shprslt)(?![a-z0-9])")
_TWO_BYTES = re.compile(rb"\\'([89a-fA-F][0-9a-fA-F])(?:\\'([0-9a-fA-F]{2})|([@-Z^-z]))")
_TWO_UNITS = re.compile(rb"\\u(-?\d+)\??\\u(-\d+)\??(?<=.)")
_READ_AS = [
    (re.compile(rb"\\(?:b|i|ul|strike|listtext|pntext)\d?(?![a-z0-9*-])(?: |\r?\n)?"), rb""),
    (re.compile(rb"\\(?:page|sect|column)(?![a-z0-9])"), rb"\\par"),
    (re.compile(rb"(?<!\\)\\~"), rb" "),
    (re.compile(rb"(?<!\\)\\_"), rb"-"),
]


def _extract(content: bytes, name: str, media_type: str) -> Any:
    """The first document that the library makes of it; raises `DocumentRefused`."""
    import asyncio

    import xberg

    config = xberg.ExtractionConfig(
        use_cache=False,
        disable_ocr=True,
        output_format="markdown",
        pages=xberg.PageConfig(extract_pages=True),
        html_options=xberg.ConversionOptions(
            extract_metadata=False,
            escape_asterisks=True,
            escape_misc=True,
            preprocessing=xberg.PreprocessingOptions(enabled=False, remove_navigation=False, remove_forms=False),
        ),
        security_limits=xberg.SecurityLimits(
            max_archive_size=MAX_UNPACKED,
            max_compression_ratio=10_000,
            max_files_in_archive=MAX_MEMBERS,
            max_table_cells=20 * MAX_CELLS,
            max_pages=MAX_PAGES,
        ),
        concurrency=xberg.ConcurrencyConfig(max_threads=1),
        max_archive_depth=0,
    )
    given = xberg.ExtractInput(
        kind=xberg.ExtractInputKind.BYTES, bytes=content, mime_type=media_type, filename=PurePath(name).name
    )

    async def extract() -> Any:
        return await xberg.extract(given, config)

    fault: Exception | None = None
    try:
        result = asyncio.run(extract())
        problems = [str(getattr(one, "message", one)) for one in result.errors]
    except xberg.XbergError as error:
        result, problems, fault = None, [str(error)], error
    if result is None or not result.results:
        detail = " ".join(" ".join(problems).split())
        raise DocumentRefused(
            f"{name}: expected {EXPECTED.get(PurePath(name).suffix.lower(), 'a document')}, "
            f"found a damaged one ({detail[:200].rstrip('.') or 'nothing in it'}).",
            hint="Open it in its own program, let it be repaired, save it and add it again.",
        ) from fault
    return result.results[0]


def _split_pages(document: Any, extension: str, title: str) -> Iterator[Page]:
    """Slides, sheets with their names; other formats are one page, with their title if they have no heading."""
    if extension in _SLIDES and document.pages and extension != ".odp":
        for page in document.pages:
            text = show_markdown(re.sub(r"\A##? ", "# ", page.content.strip()))
            if page.speaker_notes and page.speaker_notes.strip():
                text = f"{text}\n\nNotes:\n{normalise_text(page.speaker_notes.strip())}".strip()
            has_picture = bool(page.image_indices) or "![" in page.content
            yield Page(text, page.page_number, "no text, only a picture" if has_picture and not text else "")
    elif extension in _SLIDES:
        for number, slide in enumerate(re.split(r"(?m)^-----$\n", document.content)[1:], 1):
            yield Page(show_markdown(re.sub(r"\A\s*##(?: *$| )", "# ", slide.strip(), flags=re.M)), number)
    elif document.pages and any(page.sheet_name for page in document.pages):
        for page in document.pages:
            text = show_markdown(re.sub(r"\A## .*\n", "", page.content.lstrip()))
            yield Page(f"# {page.sheet_name}\n\n{text}" if text.strip() else "")
    else:
        body = show_markdown(document.content)
        yield Page(f"# {title}\n\n{body}" if title and body and not re.search(r"(?m)^# ", body) else body)


_SLIDES = (".odp", ".pptx", ".pptm", ".potx", ".potm", ".ppsx", ".ppt", ".pps", ".pot", ".key")


def show_markdown(text: str) -> str:
    """Markdown without links, pictures, emphasis and escapes, its tables as rows with their headers."""
    parts = re.split(r"(?ms)^((?:```|~~~).*?^(?:```|~~~))", show_markdown_tables(text))
    return normalise_text("".join(part if at % 2 else _show_plain(part) for at, part in enumerate(parts)))


def _show_plain(text: str) -> str:
    text = _LINK.sub(lambda found: "" if found[1] else found[2], text)
    text = _EMPHASIS.sub(r"\2", text)
    text = re.sub(r"(?m)^(?:\[\^[^\]\n]+\])+\n\n", "", text)
    notes = re.findall(r"(?m)^\[\^([^\]\n]+)\]:", text)
    text = re.sub(r"(?m)^\[\^([^\]\n]+)\]:\s*", r"[\1] ", text)
    text = re.sub(r"\[\^([^\]\n]+)\]", lambda found: f"[{found[1]}]" if found[1] in notes else "", text)
    text = re.sub(r"(?m)^(?:-{3,}|\* \* \*|#+ *|\\)$\n*", "", text)
    return re.sub(r"(?m)^(?:- )?[\u00b7\u2022-][ \t]+", "- ", _ESCAPE.sub(r"\1", text))


# --- books ------------------------------------------------------------------------------------------------------------


def read_epub(content: bytes, name: str) -> tuple[Page, ...]:
    """A page for the title and one for each chapter, without tables of contents."""
    package = Package(content, name, "an EPUB book (.epub)")
    _refuse_locked(package)
    place = _find_contents(package)
    book = package.parse(place)
    chapters = _list_chapters(book, posixpath.dirname(place), package)
    check_count(name, len(chapters), MAX_PARTS, "chapters")
    # One file may stand several times in the order, but is read once.
    pages = [Page(html_to_text(package.read(chapter), chapter)[1]) for chapter in dict.fromkeys(chapters)]
    # With a title alone, a book whose chapters are all missing would count as read.
    return (Page(_show_title(book)), *pages) if any(page.text.strip() for page in pages) else ()


def _refuse_locked(package: Package) -> None:
    if "META-INF/encryption.xml" not in package.names:
        return
    for data in package.parse("META-INF/encryption.xml").iter("{*}EncryptedData"):
        methods = [method.get("Algorithm", "") for method in data.iterchildren("{*}EncryptionMethod")]
        if not methods or any(method not in _FONTS_ONLY for method in methods):
            raise package.locked("a book with copy protection (DRM), and its text is encrypted")


def _find_contents(package: Package) -> str:
    """The path of the package document, which lists the files and their order."""
    if "META-INF/container.xml" in package.names:
        for file in package.parse("META-INF/container.xml").iter("{*}rootfile"):
            path = _resolve(file.get("full-path", ""), "", package)
            if path:
                return path
    for path in package.names:
        if path.lower().endswith(".opf"):
            return path
    raise package.damaged("its list of contents (.opf) is missing")


def _list_chapters(book: Any, folder: str, package: Package) -> list[str]:
    items = {item.get("id"): item for item in book.iter("{*}item")}
    order = [items[line.get("idref")] for line in book.iter("{*}itemref") if line.get("idref") in items]
    # A book whose order is missing or empty still has its files in some order.
    chapters = [_chapter_path(item, folder, package) for item in order or items.values()]
    return [path for path in chapters if path]


def _chapter_path(item: Any, folder: str, package: Package) -> str | None:
    is_chapter = item.get("media-type", "").lower() in _CHAPTERS and "nav" not in item.get("properties", "").split()
    return _resolve(item.get("href", ""), folder, package) if is_chapter else None


def _resolve(href: str, folder: str, package: Package) -> str | None:
    """The file that `href` means, or None: paths may be percent-encoded, or differ in case."""
    path = href.partition("#")[0].replace("\\", "/")
    meant = [posixpath.normpath(posixpath.join(folder, one)).lstrip("/") for one in (path, unquote(path))]
    for one in meant:
        if one in package.names:
            return one
    lowered = {name.lower(): name for name in package.names}
    return next((lowered[one.lower()] for one in meant if one.lower() in lowered), None)


def _show_title(book: Any) -> str:
    title, author = (" ".join(book.findtext(f".//{{*}}{tag}", "").split()) for tag in ("title", "creator"))
    return normalise_text(join_blocks([title and f"# {title}", author and f"Author: {author}"]))

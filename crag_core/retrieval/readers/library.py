"""Documents of some seventy formats through the library xberg: to Markdown, and from there to lines of text.

Nothing is fetched, recognised in pictures or written to a cache; the bytes go in, text comes out.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import PurePath
from typing import Any

from crag_core.retrieval.readers.decoding import decode_text
from crag_core.retrieval.readers.file_kind import EXPECTED
from crag_core.retrieval.readers.html import CROSSED_OUT, declared_charset, prepare_html, show_table, write_html
from crag_core.retrieval.readers.mail import prepare_mail
from crag_core.retrieval.readers.office.markup import Prepared
from crag_core.retrieval.readers.office.open_document import prepare_open
from crag_core.retrieval.readers.office.slides import NOTES, prepare_slides
from crag_core.retrieval.readers.office.word import prepare_word
from crag_core.retrieval.readers.office.workbook import read_workbook
from crag_core.retrieval.readers.packages import Package, check_entities, damaged
from crag_core.retrieval.readers.page import MAX_CELLS, MAX_MEMBERS, MAX_PAGES, MAX_UNPACKED, Page
from crag_core.retrieval.readers.tables import outside_code, show_markdown_tables
from crag_core.retrieval.readers.text import join_items, join_lines, normalise_text, raise_figures

_SLIDES = (".pptx", ".pptm", ".potx", ".potm", ".ppsx", ".ppt", ".pps", ".pot", ".key")
_HTML = (".htm", ".html", ".xhtml")
_MAILS = (".eml", ".msg")
# What the library calls otherwise, and then reads less of.
_READ_AS_TYPE = {".geojson": "application/json", ".xhtml": "text/html"}
# Obfuscation of fonts, which does not concern the text.
_FONTS_ONLY = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_UNDERLINED = re.compile(r"(?m)(?<![^\n]\n)^(?![#>|*+-])(\S[^|\n]*)\n(={2,}|-{3,})$")
# As notebooks and Markdown have them, with the frame that pandas puts around it.
_HTML_TABLE = re.compile(
    r"(?is)(?:<div>\s*)?(?:<style\b[^<]*</style>\s*)?<table\b(?:(?!<table\b).)*?</table>(?:\s*<p>[^<]*</p>)?(?:\s*</div>)?"
)
_LINK = re.compile(
    r"(!?)\[((?:[^\[\]\\\n]|\\.)*)\]\((?:<[^>\n]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?: \"[^\"\n]*\")?\)"
)
_EMPHASIS = re.compile(r"(?<![\w\\*])(\*{1,3})(?=[^\s*])([^*\n]*[^\s*\\])\1(?!\*)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


def read_by_library(content: bytes, name: str) -> tuple[Page, ...]:
    """The pages of a document whose extension is in `LIBRARY`; raises `DocumentRefused`."""
    extension = PurePath(name).suffix.lower()
    left_out: list[str] = []
    title = ""
    if content.startswith(b"PK"):
        kind = EXPECTED.get(extension, f"a {extension} file")
        package = Package(content, name, kind)
        package.check_xml()
        if kind == EXPECTED[".xlsx"]:
            return package.parsed(read_workbook)
        if kind in _PREPARE:
            changed, left_out = package.parsed(_PREPARE[kind])
            content = package.replaced(changed)
    elif extension in _HTML:
        title, root, left_out = prepare_html(content, name)
        content = write_html(root).encode()
    elif extension == ".rtf":
        content, left_out = _prepare_rich(content)
    elif extension == ".eml":
        content, left_out = prepare_mail(content)
    elif not content.startswith(b"\xd0\xcf\x11\xe0") and b"\x00" not in content[:4096]:
        check_entities(content, name)
        text = decode_text(content, declared_charset(content))
        content = re.sub(r"\A\s*<\?xml[^>]*\?>\s*", "", text).encode("utf-8", "ignore")
        if extension == ".xml" and re.search(rb"<\w[^<>]*?\s(?!xml)[\w.-]+=", content):
            left_out = ["attributes of elements"]
        elif extension == ".ipynb":
            content = re.sub(rb"\\u001b\[[0-9;]*m", b"", content)  # colours
    pages = [*_split_pages(_extract(content, name), extension, title)]
    if left_out:
        pages.append(Page("", None, ", ".join(left_out)))
    return tuple(pages)


def _prepare_book(package: Package) -> Prepared:
    """Its chapters as pages of HTML are; raises `DocumentRefused` for copy protection."""
    locks = package.roots("META-INF/encryption.xml")
    for data in (data for one in locks for data in one.iter("{*}EncryptedData")):
        methods = [method.get("Algorithm", "") for method in data.iterchildren("{*}EncryptionMethod")]
        if not methods or any(method not in _FONTS_ONLY for method in methods):
            raise package.locked("a book with copy protection (DRM), and its text is encrypted")
    changed, lost = {}, dict[str, None]()
    for part in package.names:
        if part.lower().endswith((".xhtml", ".html", ".htm")):
            _, changed[part], left_out = prepare_html(package.read(part), package.name)
            lost |= dict.fromkeys(left_out)
    return changed, [*lost]


_PREPARE = {
    EXPECTED[".docx"]: prepare_word,
    EXPECTED[".pptx"]: prepare_slides,
    EXPECTED[".odt"]: prepare_open,
    EXPECTED[".ods"]: prepare_open,
    EXPECTED[".odp"]: prepare_open,
    EXPECTED[".epub"]: _prepare_book,
}


def _prepare_rich(content: bytes) -> tuple[bytes, list[str]]:
    """RTF without the marks of bold, and in UTF-8 where the library would lose letters: of two code units, and without
    an escape; without what is crossed out, which is told in words."""
    if rb"\bin" in content:
        return content, []
    content, crossed_out = re.subn(rb"\{[^{}]*\\(?:deleted|striked?)(?![a-z0-9])[^{}]*\}", b"", content)
    try:
        content.decode()
    except UnicodeDecodeError:
        content = re.sub(rb"[\x80-\xff]", lambda found: b"\\'%02x" % found[0][0], content)
    for written, read in _READ_AS:
        content = written.sub(read, content)
    return content, [CROSSED_OUT] * bool(crossed_out)


def _decode_units(found: re.Match[bytes]) -> bytes:
    units = b"".join(struct.pack("<H", int(unit) & 0xFFFF) for unit in found.groups())
    return units.decode("utf-16-le", "ignore").encode()


_READ_AS: list[tuple[re.Pattern[bytes], Any]] = [
    (re.compile(rb"\\u(-?\d+)\??\\u(-\d+)\??(?<=.)"), _decode_units),
    (re.compile(rb"\\(?:b|i|ul|strike|listtext|pntext)\d?(?![a-z0-9*-])(?: |\r?\n)?"), rb""),
    (re.compile(rb"\\(?:page|sect|column)(?![a-z0-9])"), rb"\\par"),
    (
        re.compile(rb"(?<=\d)(\{?\\super ?)(\d+)"),
        lambda found: found[1] + raise_figures("1", found[2].decode()).encode(),
    ),
    (re.compile(rb"(?<!\\)\\~"), rb" "),
    (re.compile(rb"(?<!\\)\\_"), rb"-"),
]


@cache
def _media_types() -> dict[str, str]:
    import xberg

    known = {f".{one.extension.lstrip('.')}": one.mime_type for one in xberg.list_supported_formats()}
    return known | _READ_AS_TYPE


def _extract(content: bytes, name: str) -> Any:
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
    path = PurePath(name)
    kind = EXPECTED.get(path.suffix.lower(), "a document")
    given = xberg.ExtractInput(
        kind=xberg.ExtractInputKind.BYTES,
        bytes=content,
        mime_type=_media_types()[path.suffix.lower()],
        filename=path.name,
    )

    async def extract() -> Any:
        return await xberg.extract(given, config)

    try:
        result = asyncio.run(extract())
    except (xberg.XbergError, RuntimeError) as error:
        raise damaged(name, kind, " ".join(str(error).split())) from error
    if not result.results:
        problems = " ".join(str(getattr(one, "message", one)) for one in result.errors)
        raise damaged(name, kind, " ".join(problems.split()) or "nothing in it")
    return result.results[0]


def _split_pages(document: Any, extension: str, title: str) -> Iterator[Page]:
    """Slides, sheets with their names; other formats are one page, with their title if they have no heading."""
    if extension in _SLIDES and document.pages:
        for page in document.pages:
            text = show_markdown(re.sub(r"\A##? ", "# ", page.content.strip()))
            text = re.sub(rf"(?m)^(?:# )?{NOTES}\s+", "Notes:\n", text)
            if page.speaker_notes and page.speaker_notes.strip():
                text = f"{text}\n\nNotes:\n{normalise_text(page.speaker_notes.strip())}".strip()
            has_picture = bool(page.image_indices) or "![" in page.content
            yield Page(text, page.page_number, "no text, only a picture" if has_picture and not text else "")
    elif extension in (*_SLIDES, ".odp"):
        for number, slide in enumerate(re.split(r"(?m)^-----$\n", document.content)[1:], 1):
            yield Page(show_markdown(re.sub(r"\A\s*##(?: *$| )", "# ", slide.strip(), flags=re.M)), number)
    elif document.pages and any(page.sheet_name for page in document.pages):
        for page in document.pages:
            text = show_markdown(re.sub(r"\A## .*\n", "", page.content.lstrip()))
            yield Page(f"# {page.sheet_name}\n\n{text}" if text.strip() else "")
    elif extension in _MAILS:
        head = re.sub(r"(?m)^\*\*Message-ID\*\*: .*\n\n?", "", document.content, count=1)
        shown = show_markdown(re.sub(r"\A\*\*Subject\*\*: ", "# ", head))
        has_files = re.search(r"(?m)^Attachments:$", shown)
        yield Page(shown, None, "the attached files" if has_files else "")
    else:
        text = show_markdown(document.content)
        if extension == ".epub" and text:
            about = document.metadata
            title, author = (" ".join(one.split()) for one in (about.title or "", ", ".join(about.authors or ())))
            text = "\n\n".join(filter(None, [title and f"# {title}", author and f"Author: {author}", text]))
        elif title and text and not re.search(r"(?m)^# ", text):
            text = f"# {title}\n\n{text}"
        yield Page(join_items(text) if EXPECTED.get(extension) in (EXPECTED[".docx"], EXPECTED[".epub"]) else text)


def read_markdown(content: bytes, name: str) -> tuple[Page, ...]:
    """A single line break means a space there as well, headings keep their marks, and rows of tables get headers."""
    text = outside_code(normalise_text(decode_text(content)), _show_source)
    return (Page(show_markdown_tables(join_lines(text))),)


def _show_source(text: str) -> str:
    """Without remarks; tables of HTML as rows; underlined lines as headings with marks."""
    first, *rest = text.split("<!--")
    text = first + "".join(part.partition("-->")[2] if "-->" in part else f"<!--{part}" for part in rest)
    return _UNDERLINED.sub(lambda found: f"{'#' if found[2][0] == '=' else '##'} {found[1]}", _show_html_tables(text))


def _show_html_tables(text: str) -> str:
    def show(found: re.Match[str]) -> str:
        _, root, _ = prepare_html(found[0].encode(), "a table")
        return f"\n\n{show_table(root)}\n\n"

    return _HTML_TABLE.sub(show, text)


def show_markdown(text: str) -> str:
    """Markdown without links, pictures, emphasis and escapes, its tables as rows with their headers."""
    return normalise_text(outside_code(show_markdown_tables(_show_html_tables(text)), _show_plain))


def _show_plain(text: str) -> str:
    text = _LINK.sub(lambda found: "" if found[1] else found[2], text)
    text = _EMPHASIS.sub(r"\2", text)
    text = re.sub(r"(?m)^(?:\[\^[^\]\n]+\])+\n\n", "", text)
    notes = re.findall(r"(?m)^\[\^([^\]\n]+)\]:", text)
    text = re.sub(r"(?m)^\[\^([^\]\n]+)\]:\s*", r"[\1] ", text)
    text = re.sub(r"\[\^([^\]\n]+)\]", lambda found: f"[{found[1]}]" if found[1] in notes else "", text)
    text = re.sub(r"(?m)^(?:-{3,}|\* \* \*|#+ *|\\)$\n*", "", text)
    return re.sub(r"(?m)^(?:- )?[\u00b7\u2022-][ \t]+", "- ", _ESCAPE.sub(r"\1", text))

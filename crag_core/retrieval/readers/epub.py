"""EPUB books: the chapters in the order in which they are read, each as an HTML page."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import unquote

from crag_core.retrieval.readers.library import html_to_text
from crag_core.retrieval.readers.markdown_text import join_blocks, normalise_text
from crag_core.retrieval.readers.packages import Package
from crag_core.retrieval.readers.page import MAX_PARTS, Page, check_count

_CHAPTERS = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document")
# Obfuscation of fonts, which does not concern the text.
_FONTS_ONLY = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


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

"""Documents that are ZIP packages of XML files: Office, OpenDocument, EPUB. Never unpacked to disk.

The sizes that a package states are not trusted but counted while reading, and XML may not define entities.
"""

from __future__ import annotations

import io
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.page import MAX_MEMBERS, MAX_UNPACKED, MEGABYTE, check_count

Value = TypeVar("Value")
_ENCRYPTED = 0x1
# The only methods that these formats use; others can unpack more at once than was asked for.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_XML = (".xml", ".rels", ".vml", ".opf", ".ncx", ".xhtml", ".html", ".htm")
_READ_AT_ONCE = MEGABYTE
# Some parsers compare each attribute of an element with all before it.
MANY_ATTRIBUTES = (
    r"""<([A-Za-z][^\s"'<>=/]*)(?:[\s/]*+[^\s"'<>=/]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'<>]++))?+){1000,}+"""
)
# What zipfile and zlib raise for damaged archives; RuntimeError for passwords and for features that zipfile lacks.
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError, struct.error)


class Package:
    """The files of one document of a `kind` in words ("a Word document (.docx)").

    Refuses (`DocumentRefused`) what is damaged, encrypted, or unpacks to more than `MAX_UNPACKED`.
    """

    def __init__(self, content: bytes, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self._left = MAX_UNPACKED
        self._counted: set[str] = set()
        try:
            self._archive = open_archive(content, name)
        except BROKEN_ZIP as error:
            raise self.damaged(error) from error
        self._members = {member.filename: member for member in self._archive.infolist()}
        size = sum(member.file_size for member in self._archive.infolist())
        if size > MAX_UNPACKED:
            raise self._too_large(size)
        if any(member.flag_bits & _ENCRYPTED for member in self._archive.infolist()):
            raise self.locked("protected with a password")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def read(self, member: str) -> bytes:
        if member not in self._members:
            raise self.damaged(f"{member} is missing")
        is_counted = member in self._counted
        try:
            content = read_bounded(self._archive, self._members[member], MAX_UNPACKED if is_counted else self._left)
        except BROKEN_ZIP as error:
            raise self.damaged(error) from error
        if content is None:
            raise self._too_large(None)
        self._left -= 0 if is_counted else len(content)
        self._counted.add(member)
        return content

    def parse(self, member: str) -> Any:
        from lxml import etree

        content = self.read(member)
        check_entities(content, self.name)
        # Office writes "strict" files with other names for the same.
        content = re.sub(
            rb"http://purl\.oclc\.org/ooxml/(\w+)/", rb"http://schemas.openxmlformats.org/\1/2006/", content
        )
        # Nothing is expanded, loaded or fetched.
        parser = etree.XMLParser(
            resolve_entities=False,
            load_dtd=False,
            no_network=True,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        )
        try:
            return etree.fromstring(content, parser)
        except (etree.XMLSyntaxError, ValueError) as error:
            raise self.damaged(error) from error

    def roots(self, *members: str) -> list[Any]:
        """Of each of these that is there the root element."""
        return [self.parse(member) for member in members if member in self._members]

    def check_xml(self) -> None:
        """Read every XML file once, before a library that trusts them does."""
        for member in self._members:
            if member.lower().endswith(_XML):
                content = self.read(member)
                check_entities(content, self.name)
                if re.search(MANY_ATTRIBUTES.encode(), content):
                    raise self.damaged(f"{member} has an element with more than 1,000 attributes")

    def replaced(self, changed: Mapping[str, Any]) -> bytes:
        from lxml import etree

        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name in self._members:
                new = etree.tostring(changed[name], encoding="utf-8") if name in changed else self.read(name)
                archive.writestr(name, new, zipfile.ZIP_STORED)
        return stream.getvalue()

    def parsed(self, read: Callable[[Package], Value]) -> Value:
        """What `read` makes of it; its errors, of XML or for a missing part, become refusals."""
        try:
            return read(self)
        except DocumentRefused:
            raise
        except Exception as error:
            raise self.damaged(error) from error

    def damaged(self, error: Exception | str) -> DocumentRefused:
        return damaged(self.name, self.kind, str(error) or type(error).__name__)

    def locked(self, how: str) -> DocumentRefused:
        return DocumentRefused(
            f"{self.name}: the document is {how}.",
            hint="Open it in its own program, remove the protection, save it and add it again.",
        )

    def _too_large(self, size: int | None) -> DocumentRefused:
        limit = f"the limit of {MAX_UNPACKED // MEGABYTE} MB"
        how = f"to {size // MEGABYTE} MB, over {limit}" if size else f"to more than {limit}"
        return DocumentRefused(
            f"{self.name}: unpacks {how}.",
            hint="If the file is trustworthy, remove its pictures or split it, and add the parts.",
        )


def damaged(name: str, kind: str, detail: str) -> DocumentRefused:
    """For a document that is of a `kind` in words, and cannot be read."""
    return DocumentRefused(
        f"{name}: expected {kind}, found a damaged one ({detail[:200].rstrip('.')}).",
        hint="Open it in its own program, let it be repaired, save it and add it again.",
    )


def check_entities(content: bytes, name: str) -> None:
    """Raises `DocumentRefused` for XML that defines entities."""
    # Without its zeros UTF-16 reads as ASCII does.
    if re.search(rb"<!ENTITY", content.replace(b"\x00", b"")):
        raise DocumentRefused(
            f"{name}: defines XML entities, which no program writes and which can fill the memory.",
            hint="Do not trust this file; if it is yours, open it in its own program and save it again.",
        )


def open_archive(content: bytes, name: str) -> zipfile.ZipFile:
    """Raises `DocumentRefused` for too many members, and one of `BROKEN_ZIP` for what is no archive."""
    # Counted before the directory is parsed, since each entry takes far more memory then than in the file.
    check_count(name, content.count(b"PK\x01\x02"), MAX_MEMBERS, "files in one archive")
    return zipfile.ZipFile(io.BytesIO(content))


def read_bounded(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes | None:
    """The unpacked bytes, or None for more than `limit`; raises one of `BROKEN_ZIP`."""
    if member.compress_type not in _METHODS:
        raise NotImplementedError(
            f"{member.filename} is packed in a way that is not usual (method {member.compress_type})"
        )
    pieces, size = [], 0
    with archive.open(member) as stream:
        while piece := stream.read(_READ_AT_ONCE):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                return None
    return b"".join(pieces)


def local(element: Any) -> str:
    """The name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def text_of(element: Any) -> str:
    """All its text, on one line."""
    return " ".join("".join(element.itertext()).split())


def attribute(element: Any, name: str) -> str:
    """An attribute by its local name, whatever its namespace; "": it has none."""
    return next((str(value) for key, value in element.attrib.items() if key.rpartition("}")[2] == name), "")


def relations(package: Package, part: str) -> dict[str, str]:
    """The paths of the files that a file of an Office package refers to, by their ids."""
    folder, _, file = part.rpartition("/")
    links = [link for root in package.roots(f"{folder}/_rels/{file}.rels") for link in root]
    targets = {link.get("Id", ""): link.get("Target", "") for link in links}
    return {
        name: target.lstrip("/") if target.startswith("/") else posixpath.normpath(f"{folder}/{target}")
        for name, target in targets.items()
    }

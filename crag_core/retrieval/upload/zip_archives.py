"""Unpacks ZIP archives within limits, one file after the other, under safe names.

Nothing is unpacked to disk, and the bytes of one file are in memory at a time (for an archive inside an archive, those
of the inner one as well). What must not go in is refused by its name and stops no other; junk of systems ("Thumbs.db")
is left out.
"""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers import READERS
from crag_core.retrieval.readers.file_kind import refuse_extension
from crag_core.retrieval.readers.limits import (
    MAX_ARCHIVE,
    MAX_BUNDLE,
    MAX_BYTES,
    MAX_FILES,
    MAX_RATIO,
    MEGABYTE,
    format_size,
)
from crag_core.retrieval.readers.shared.zip_packages import BROKEN_ZIP, is_encrypted, open_archive, read_bounded
from crag_core.retrieval.upload.safe_names import is_junk, show_name, tidy_name

Given = tuple[str, bytes | Path | DocumentRefused]
"""A file by its name (a relative path with "/"): its content, the path where it is, or why it is refused."""

ARCHIVE = ".zip"
_UTF8_NAME = 0x800


@dataclass
class Allowance:
    """Limits for one archive or folder with the archives in it; counts files and bytes, and remembers names."""

    most_files: int = MAX_FILES
    most_size: int = MAX_BUNDLE
    files: int = 0
    size: int = 0
    names: set[str] = field(default_factory=set)

    def spend(self, name: str, files: int, size: int) -> None:
        """Raises `DocumentRefused` for `name` when that is more than is left."""
        if self.files + files > self.most_files:
            why = f"more than {self.most_files:,} files would be added at once"
            raise refuse(name, why, "Add them in smaller portions.")
        if self.size + size > self.most_size:
            why = f"more than the limit of {format_size(self.most_size)} would be unpacked and read"
            raise refuse(name, why, "Add the files in smaller portions.")
        self.files, self.size = self.files + files, self.size + size

    def check(self, name: str, size: int) -> None:
        """Raises `DocumentRefused` for a duplicate name, an unknown format, and a file that is too large."""
        if name in self.names:
            raise refuse(name, "occurs twice", "Give one of the two files another name.")
        self.names.add(name)
        extension = PurePosixPath(name).suffix.lower()
        if not is_wanted(name):
            raise refuse_extension(name, extension, (*READERS, ARCHIVE))
        limit = MAX_ARCHIVE if extension == ARCHIVE else MAX_BYTES
        if size > limit:
            raise refuse(
                name, f"{format_size(size)} is over the limit of {format_size(limit)}", "Split it and add the parts."
            )


def unpack(name: str, content: bytes) -> Iterator[Given]:
    """The files of a ZIP archive; an archive in it is opened too, one in that is refused.

    Raises `DocumentRefused` at once when `content` is no archive, or exceeds 20,000 files or 1 GB.
    """
    allowance = Allowance()
    return _walk(_open(name, content, allowance), "", allowance, may_nest=True)


def unpack_inner(name: str, content: bytes, allowance: Allowance) -> Iterator[Given]:
    """The files of an archive that is itself in an archive or a folder."""
    try:
        archive = _open(name, content, allowance)
    except DocumentRefused as refusal:
        yield name, refusal
    else:
        yield from _walk(archive, f"{name}/", allowance, may_nest=False)


def is_wanted(name: str) -> bool:
    extension = PurePosixPath(name).suffix.lower()
    return extension == ARCHIVE or extension in READERS


def refuse(name: str, why: str, hint: str) -> DocumentRefused:
    return DocumentRefused(f"{name}: {why}.", hint=hint)


def _open(name: str, content: bytes, allowance: Allowance) -> zipfile.ZipFile:
    try:
        archive = open_archive(content, name)
    except BROKEN_ZIP as error:
        why = f"expected a ZIP archive, found a damaged one or none ({str(error).rstrip('.')})"
        raise refuse(name, why, "Make the archive again, or add the files themselves.") from error
    wanted = [entry for entry in archive.infolist() if is_wanted(entry.filename) and not is_junk(entry.filename)]
    allowance.spend(name, len(wanted), sum(entry.file_size for entry in wanted))
    return archive


def _walk(archive: zipfile.ZipFile, folder: str, allowance: Allowance, may_nest: bool) -> Iterator[Given]:
    for entry in archive.infolist():
        written = _decode_name(entry)
        if is_junk(written) or written.endswith(("/", "\\")):
            continue
        name = folder + show_name(written)
        try:
            name = folder + tidy_name(written)
            allowance.check(name, entry.file_size)
            content = _read(archive, entry, name)
        except DocumentRefused as refusal:
            yield name, refusal
            continue
        if PurePosixPath(name).suffix.lower() != ARCHIVE:
            yield name, content
        elif may_nest:
            yield from unpack_inner(name, content, allowance)
        else:
            why = "an archive in an archive in an archive is not opened"
            yield name, refuse(name, why, "Unpack it and add the files inside.")


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> bytes:
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise refuse(name, "is a link to another file", "Put the file itself into the archive.")
    if is_encrypted(entry):
        raise refuse(name, "is protected with a password", "Make an archive without a password.")
    if entry.file_size > max(MEGABYTE, MAX_RATIO * entry.compress_size):
        why = f"unpacks to more than {MAX_RATIO} times its size, which no document does"
        raise refuse(name, why, "If the file is trustworthy, add it without an archive.")
    try:
        content = read_bounded(archive, entry, entry.file_size)
    except BROKEN_ZIP as error:
        why = f"is damaged in the archive ({str(error).rstrip('.')})"
        raise refuse(name, why, "Make the archive again, or add the file itself.") from error
    if content is None:
        raise refuse(name, "unpacks to more than the archive says", "Do not trust this archive.")
    return content


def _decode_name(entry: zipfile.ZipInfo) -> str:
    """Names that are not marked as UTF-8 are in code page 437, or UTF-8 nevertheless."""
    if entry.flag_bits & _UTF8_NAME:
        return entry.orig_filename
    try:
        return entry.orig_filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return entry.orig_filename

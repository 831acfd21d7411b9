"""Uploaded files, folders and ZIP archives as single files with safe names, within limits.

Nothing is unpacked to disk, and the bytes of one file are in memory at a time. What must not go in is refused by its
name and stops no other; junk of systems ("Thumbs.db") is left out.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers import READERS, load_content
from crag_core.retrieval.readers.file_kind import refuse_extension
from crag_core.retrieval.readers.packages import BROKEN_ZIP, is_encrypted, open_archive, read_bounded
from crag_core.retrieval.readers.page import (
    MAX_ARCHIVE,
    MAX_BUNDLE,
    MAX_BYTES,
    MAX_FILES,
    MAX_FOLDER,
    MAX_RATIO,
    MEGABYTE,
    format_size,
)

Given = tuple[str, bytes | Path | DocumentRefused]
"""A file by its name (a relative path with "/"): its content, the path where it is, or why it is refused."""

ARCHIVE = ".zip"
_UTF8_NAME = 0x800
_LONGEST = 500
_DRIVE = re.compile(r"[A-Za-z]:")
# Controls, halves of surrogate pairs, and marks that turn the direction of writing and so hide an extension.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_JUNK = frozenset(["__macosx", "thumbs.db", "desktop.ini", "ehthumbs.db", "$recycle.bin"])


def each_file(documents: Iterable[Given]) -> Iterator[Given]:
    """Files of a folder have their path in it as name, those of an archive the name of the archive before it.

    Junk of the system is left out, also where a browser lists the files of a folder one by one.
    """
    for name, given in documents:
        if "/" in name and is_junk(name):
            continue
        try:
            if isinstance(given, Path) and given.is_dir():
                yield from read_folder(given)
            elif _is_archive(name) and not isinstance(given, DocumentRefused):
                # Two archives may each have a README; many have a folder of their own name at the top.
                folder = f"{PurePosixPath(name).stem}/"
                for inner, one in unpack(name, load_content(given, name, MAX_ARCHIVE)):
                    yield (inner if inner.startswith(folder) else folder + inner), one
            else:
                yield name, given
        except DocumentRefused as refusal:
            yield name, refusal


def read_folder(path: Path | str) -> Iterator[Given]:
    """In the order of their names, as paths; only archives are read.

    Links are not followed: their targets are read in place inside the folder, and refused outside of it. Ends with a
    refusal in the folder's name at 50 GB or 20,000 files. Raises `DocumentRefused` when there is no such folder.
    """
    root = Path(path)
    if not root.is_dir():
        raise refuse(root.name or str(root), "there is no such folder", "Check the path and whether it may be read.")
    return _walk_folder(root)


def _walk_folder(root: Path) -> Iterator[Given]:
    unreadable: list[OSError] = []
    size = 0
    for count, path in enumerate(_list_files(root, unreadable), 1):
        try:
            status = path.lstat()
            size += status.st_size
            if size > MAX_FOLDER or count > MAX_FILES:
                why = f"more than {MAX_FILES:,} files or {format_size(MAX_FOLDER)}, which is the limit"
                yield root.name, refuse(root.name, why, "Add a smaller folder.")
                return
            yield from _named(path.relative_to(root).as_posix(), partial(_take, path, root, status))
        except OSError as error:
            unreadable.append(error)
    for fault in unreadable:
        name = show_name(os.path.relpath(str(fault.filename), root))
        yield name, refuse(name, f"cannot be read ({fault.strerror})", "Check that it exists and may be read.")


def _list_files(root: Path, unreadable: list[OSError]) -> Iterator[Path]:
    """Files and links without junk; errors of folders that cannot be read go to `unreadable`."""
    for folder, folders, files in os.walk(root, onerror=unreadable.append):
        here = Path(folder)
        folders[:] = sorted(one for one in folders if not is_junk(one))
        links = [one for one in folders if (here / one).is_symlink()]
        yield from (here / one for one in sorted([*files, *links]) if not is_junk(one))


def _named(written: str, take: Callable[[str], Iterator[Given]]) -> Iterator[Given]:
    """What `take` gives of a file under its tidied name, or why it is refused."""
    name = show_name(written)
    try:
        name = tidy_name(written)
        yield from take(name)
    except DocumentRefused as refusal:
        yield name, refusal


def _take(path: Path, root: Path, status: os.stat_result, name: str) -> Iterator[Given]:
    if stat.S_ISLNK(status.st_mode):
        if not path.resolve().is_relative_to(root.resolve()):
            raise refuse(name, "is a link that leads out of the folder", "Copy the file itself into the folder.")
    elif not stat.S_ISREG(status.st_mode):
        raise refuse(name, "is no file but a device or a connection", "Add files only.")
    elif _is_archive(name):
        for inner, given in unpack(name, load_content(path, name, MAX_ARCHIVE)):
            yield f"{name}/{inner}", given
    else:
        _check(name, status.st_size)
        yield name, path


def _check(name: str, size: int) -> None:
    extension = PurePosixPath(name).suffix.lower()
    if extension not in READERS:
        raise refuse_extension(name, extension, (*READERS, ARCHIVE))
    if size > MAX_BYTES:
        why = f"{format_size(size)} is over the limit of {format_size(MAX_BYTES)}"
        raise refuse(name, why, "Split it and add the parts.")


def unpack(name: str, content: bytes) -> Iterator[Given]:
    """The files of a ZIP archive; an archive in it is refused.

    Raises `DocumentRefused` at once when `content` is no archive, or exceeds 20,000 files or 1 GB.
    """
    try:
        archive = open_archive(content, name)
    except BROKEN_ZIP as error:
        why = f"expected a ZIP archive, found a damaged one or none ({str(error).rstrip('.')})"
        raise refuse(name, why, "Make the archive again, or add the files themselves.") from error
    wanted = [entry for entry in archive.infolist() if PurePosixPath(entry.filename).suffix.lower() in READERS]
    sizes = [entry.file_size for entry in wanted if not is_junk(entry.filename)]
    if len(sizes) > MAX_FILES:
        raise refuse(name, f"more than {MAX_FILES:,} files would be added at once", "Add them in smaller portions.")
    if sum(sizes) > MAX_BUNDLE:
        why = f"more than the limit of {format_size(MAX_BUNDLE)} would be unpacked and read"
        raise refuse(name, why, "Add the files in smaller portions.")
    return _walk_archive(archive)


def _walk_archive(archive: zipfile.ZipFile) -> Iterator[Given]:
    seen: set[str] = set()

    def take(entry: zipfile.ZipInfo, name: str) -> Iterator[Given]:
        if name in seen:
            raise refuse(name, "occurs twice", "Give one of the two files another name.")
        seen.add(name)
        _check(name, entry.file_size)
        yield name, _read(archive, entry, name)

    for entry in archive.infolist():
        written = _decode_name(entry)
        if not is_junk(written) and not written.endswith(("/", "\\")):
            yield from _named(written, partial(take, entry))


def _is_archive(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() == ARCHIVE


def refuse(name: str, why: str, hint: str) -> DocumentRefused:
    return DocumentRefused(f"{name}: {why}.", hint=hint)


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


def tidy_name(name: str) -> str:
    """The name as a relative path with "/"; raises `DocumentRefused` for one that leads out of its folder."""
    path = name.replace("\\", "/")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    why = ""
    if _UNSEEN.search(path):
        why = "has control characters in its name"
    elif path.startswith("/") or _DRIVE.match(path):
        why = "names a place on a disk (an absolute path)"
    elif ".." in parts:
        why = 'leads out of its folder ("..")'
    elif not parts or len(path) > _LONGEST:
        why = f"has no name of 1 to {_LONGEST} letters"
    if why:
        raise refuse(show_name(name), why, "Give the file a plain name and add it again.")
    # One and the same name whether a Mac or another system wrote it.
    return unicodedata.normalize("NFC", "/".join(parts))


def show_name(name: str) -> str:
    """A form of any name that can be shown and stored; not for opening a file."""
    return _UNSEEN.sub("\ufffd", name.replace("\\", "/"))[:_LONGEST] or "a file without a name"


def is_junk(path: str) -> bool:
    """Files of the system or of programs: hidden ones, thumbnails, lock files of Office."""
    return any(
        part.lower() in _JUNK or (part.startswith(("~$", ".")) and part not in (".", ".."))
        for part in PurePosixPath(path.replace("\\", "/")).parts
    )

"""Uploaded files and folders as single files with safe names, within limits.

The bytes of one file are in memory at a time. What must not go in is refused by its name and stops no other; junk of
systems ("Thumbs.db") is left out.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers import READERS
from crag_core.retrieval.readers.file_kind import refuse_extension
from crag_core.retrieval.readers.page import MAX_FILES, MAX_FOLDER, format_size

Given = tuple[str, bytes | Path | DocumentRefused]
"""A file by its name (a relative path with "/"): its content, the path where it is, or why it is refused."""

_LONGEST = 500
# Controls, halves of surrogate pairs, and marks that turn the direction of writing and so hide an extension.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_JUNK = frozenset(["__macosx", "thumbs.db", "desktop.ini", "ehthumbs.db", "$recycle.bin"])


def each_file(documents: Iterable[Given]) -> Iterator[Given]:
    """Files of a folder have their path in it as name.

    Junk of the system is left out, also where a browser lists the files of a folder one by one.
    """
    for name, given in documents:
        if "/" in name and is_junk(name):
            continue
        if isinstance(given, Path) and given.is_dir():
            yield from read_folder(given)
        else:
            yield name, given


def read_folder(root: Path) -> Iterator[Given]:
    """In the order of their names, as paths.

    Links are not followed: their targets are read in place inside the folder, and refused outside of it. Ends with a
    refusal in the folder's name at 50 GB or 20,000 files.
    """
    unreadable: list[OSError] = []
    size = 0
    for count, path in enumerate(_list_files(root, unreadable), 1):
        try:
            size += path.lstat().st_size
            if size > MAX_FOLDER or count > MAX_FILES:
                why = f"more than {MAX_FILES:,} files or {format_size(MAX_FOLDER)}, which is the limit"
                yield root.name, refuse(root.name, why, "Add a smaller folder.")
                return
            written = path.relative_to(root).as_posix()
            try:
                if _is_taken(path, root, name := tidy_name(written)):
                    yield name, path
            except DocumentRefused as refusal:
                yield show_name(written), refusal
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


def _is_taken(path: Path, root: Path, name: str) -> bool:
    """False for a link to what is taken in its own place; raises `DocumentRefused`."""
    if path.is_symlink():
        if not path.resolve().is_relative_to(root.resolve()):
            raise refuse(name, "is a link that leads out of the folder", "Copy the file itself into the folder.")
        return False
    extension = PurePosixPath(name).suffix.lower()
    if extension not in READERS:
        raise refuse_extension(name, extension, READERS)
    return True


def refuse(name: str, why: str, hint: str) -> DocumentRefused:
    return DocumentRefused(f"{name}: {why}.", hint=hint)


def tidy_name(name: str) -> str:
    """The name with composed letters; raises `DocumentRefused` for one that cannot be shown."""
    is_long = len(name) > _LONGEST
    if is_long or _UNSEEN.search(name):
        why = f"has a name of more than {_LONGEST} letters" if is_long else "has control characters in its name"
        raise refuse(show_name(name), why, "Give the file a plain name and add it again.")
    return unicodedata.normalize("NFC", name)  # one and the same whether a Mac or another system wrote it


def show_name(name: str) -> str:
    """A form of any name that can be shown and stored; not for opening a file."""
    return _UNSEEN.sub("\ufffd", name)[:_LONGEST]


def is_junk(path: str) -> bool:
    """Files of the system or of programs: hidden ones, thumbnails, lock files of Office."""
    return any(
        part.lower() in _JUNK or (part.startswith(("~$", ".")) and part not in (".", ".."))
        for part in PurePosixPath(path).parts
    )

"""Uploaded files, folders and ZIP archives as single files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers import load_content
from crag_core.retrieval.readers.limits import MAX_ARCHIVE, MAX_FOLDER, MAX_MEMBERS
from crag_core.retrieval.upload.safe_names import is_junk, show_name, tidy_name
from crag_core.retrieval.upload.zip_archives import ARCHIVE, Allowance, Given, is_wanted, refuse, unpack, unpack_inner


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
            elif PurePosixPath(name).suffix.lower() == ARCHIVE and not isinstance(given, DocumentRefused):
                yield from _unpack_below(PurePosixPath(name).stem, unpack(name, load_content(given, name, MAX_ARCHIVE)))
            else:
                yield name, given
        except DocumentRefused as refusal:
            yield name, refusal


def _unpack_below(folder: str, files: Iterator[Given]) -> Iterator[Given]:
    """Two archives may each have a README; many have a folder of their own name at the top."""
    for name, given in files:
        yield (name if name.startswith(f"{folder}/") else f"{folder}/{name}"), given


def read_folder(path: Path | str) -> Iterator[Given]:
    """In the order of their names, as paths; only archives are read.

    Links are not followed: their targets are read in place inside the folder, and refused outside of it. Ends with a
    refusal in the folder's name at 50 GB or 20,000 files. Raises `DocumentRefused` when there is no such folder.
    """
    root = Path(path)
    if not root.is_dir():
        raise refuse(root.name or str(root), "there is no such folder", "Check the path and whether it may be read.")
    return _walk(root)


def _walk(root: Path) -> Iterator[Given]:
    allowance = Allowance(most_size=MAX_FOLDER)
    unreadable: list[OSError] = []
    for looked_at, path in enumerate(_list_files(root, unreadable)):
        name = path.relative_to(root).as_posix()
        try:
            if looked_at >= MAX_MEMBERS:
                raise refuse(root.name, f"more than {MAX_MEMBERS:,} files, which is the limit", "Add a smaller folder.")
            if is_wanted(name):
                allowance.spend(root.name, 1, path.lstat().st_size)
        except DocumentRefused as refusal:
            yield root.name, refusal
            return
        except OSError as error:
            yield _unreadable(name, error)
            continue
        yield from _take(path, name, root, allowance)
    yield from (_unreadable(os.path.relpath(str(error.filename), root), error) for error in unreadable)


def _list_files(root: Path, unreadable: list[OSError]) -> Iterator[Path]:
    """Files and links without junk; errors of folders that cannot be read go to `unreadable`."""
    for folder, folders, files in os.walk(root, onerror=unreadable.append):
        here = Path(folder)
        folders[:] = sorted(one for one in folders if not is_junk(one))
        links = [one for one in folders if (here / one).is_symlink()]
        yield from (here / one for one in sorted([*files, *links]) if not is_junk(one))


def _take(path: Path, name: str, root: Path, allowance: Allowance) -> Iterator[Given]:
    try:
        name, written = show_name(name), name
        name = tidy_name(written)
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            if not path.resolve().is_relative_to(root.resolve()):
                raise refuse(name, "is a link that leads out of the folder", "Copy the file itself into the folder.")
            return
        if not stat.S_ISREG(status.st_mode):
            raise refuse(name, "is no file but a device or a connection", "Add files only.")
        allowance.check(name, status.st_size)
        if PurePosixPath(name).suffix.lower() == ARCHIVE:
            yield from unpack_inner(name, path.read_bytes(), allowance)
        else:
            yield name, path
    except DocumentRefused as refusal:
        yield name, refusal
    except (OSError, RuntimeError) as error:
        yield _unreadable(name, error)


def _unreadable(name: str, error: Exception) -> Given:
    reason = getattr(error, "strerror", None) or str(error)
    name = show_name(name)
    return name, refuse(name, f"cannot be read ({reason})", "Check that it exists and may be read.")

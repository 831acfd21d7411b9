"""Uploaded files one by one; an archive or a folder counts as the files in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers import load_content
from crag_core.retrieval.readers.limits import MAX_ARCHIVE
from crag_core.retrieval.upload.folders import read_folder
from crag_core.retrieval.upload.safe_names import is_junk
from crag_core.retrieval.upload.zip_archives import ARCHIVE, Given, unpack


def each_file(documents: Iterable[Given]) -> Iterator[Given]:
    """What is in a folder is named by its path there; in an archive too, below the name of the archive.

    Junk of systems is left out, also where a browser names the files of a folder one by one.
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

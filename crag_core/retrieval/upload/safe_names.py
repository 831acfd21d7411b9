"""Makes file names safe: relative, with "/", without control characters."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

from crag_core.base.errors import DocumentRefused

_LONGEST = 500
_DRIVE = re.compile(r"[A-Za-z]:")
# Controls, halves of surrogate pairs, and marks that turn the direction of writing and so hide an extension.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_JUNK = frozenset(["__macosx", "thumbs.db", "desktop.ini", "ehthumbs.db", "$recycle.bin"])


def tidy_name(name: str) -> str:
    """The name as a relative path with "/"; raises `DocumentRefused` for one that leads out of its folder."""
    path, shown = name.replace("\\", "/"), show_name(name)
    if _UNSEEN.search(path):
        raise _refuse(shown, "has control characters in its name")
    if path.startswith("/") or _DRIVE.match(path):
        raise _refuse(shown, "names a place on a disk (an absolute path)")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise _refuse(shown, 'leads out of its folder ("..")')
    if not parts or len(path) > _LONGEST:
        raise _refuse(shown, f"has no name of 1 to {_LONGEST} letters")
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


def _refuse(shown: str, why: str) -> DocumentRefused:
    return DocumentRefused(f"{shown}: {why}.", hint="Give the file a plain name and add it again.")

"""Documents of an index that an earlier release kept in LanceDB: their names by pylance, and their files."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from crag_core.base.documents import MAIN
from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.readers.file_kind import usual_extension

_TABLE, _ORIGINALS = "documents.lance", "originals"
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class EarlierDocument:
    id: str
    name: str
    collection: str
    path: Path


def is_there(folder: Path) -> bool:
    return os.path.isdir(folder / _ORIGINALS) and os.path.isdir(folder / _TABLE)


def documents(folder: Path) -> list[EarlierDocument]:
    """Those whose files are kept, by id; under a name made of its id where the table is damaged.

    Raises `StoreUnavailable` where pylance is not installed.
    """
    try:
        import lance
    except ImportError as error:
        raise StoreUnavailable(
            "An index of an earlier version is there, and the names of its documents are in a table of LanceDB.",
            hint="Run pip install pylance and start again; or delete the folder index in CRAG_HOME and add your files.",
        ) from error
    try:
        rows = lance.dataset(str(folder / _TABLE)).to_table(columns=["id", "name", "collection"]).to_pylist()
    except (OSError, ValueError, RuntimeError):
        rows = []
    # A later row of an id replaces the earlier.
    named = {row["id"]: (row["name"], row["collection"]) for row in rows}
    files = sorted(path for path in (folder / _ORIGINALS).iterdir() if _ID.fullmatch(path.name))
    known = [(path, *(named.get(path.name) or _unnamed(path))) for path in files]
    return [EarlierDocument(path.name, name, collection, path) for path, name, collection in known]


def _unnamed(path: Path) -> tuple[str, str]:
    return f"document-{path.name[:8]}{usual_extension(path.read_bytes())}", MAIN


def remove(folder: Path, refused: Collection[str]) -> None:
    """What is not needed any more: all but the files of documents that were refused."""
    for path in [path for path in (folder / _ORIGINALS).iterdir() if path.name not in refused]:
        path.unlink()
    for path in [*folder.glob("*.lance"), *([] if refused else [folder / _ORIGINALS])]:
        shutil.rmtree(path, ignore_errors=True)
    (folder / "write.lock").unlink(missing_ok=True)

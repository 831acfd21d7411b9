"""The list of documents: one row each, whole ones and those on their way, in a LanceDB table of its own.

A document's row says what is to become of it before anything happens to its passages, so that whatever a kill
interrupts is known at the next start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from crag_core.documents import Document
from crag_core.retrieval.lance import LanceFolder, explain_faults, quote

TABLE = "documents"


class Catalogue:
    """Call `put` and `drop` inside the folder's lock."""

    def __init__(self, folder: LanceFolder) -> None:
        self._folder = folder
        self._read: tuple[int, list[Document]] | None = None

    def is_there(self) -> bool:
        with explain_faults(self._folder.path):
            return self._folder.open(TABLE) is not None

    def rows(self) -> list[Document]:
        """All of them, in no order; read again only where somebody has written since."""
        with explain_faults(self._folder.path):
            table = self._folder.open(TABLE)
            if table is None:
                return []
            version = table.version
            read = self._read
            if read is None or read[0] != version:
                names = [field.name for field in fields(Document)]
                read = (version, [Document(**row) for row in table.to_arrow().select(names).to_pylist()])
                self._read = read
            return list(read[1])

    def put(self, rows: Sequence[Document]) -> None:
        """Add rows, or take the place of those of the same ids, with one commit; the table is made if need be."""
        import pyarrow as pa

        table = self._folder.open(TABLE)
        if table is None:
            table = self._folder.create(TABLE, _schema())
        if not rows:
            return
        given = pa.Table.from_pylist([asdict(row) for row in rows], schema=_schema())
        table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(given)

    def drop(self, ids: Iterable[str]) -> None:
        listed = ", ".join(map(quote, ids))
        table = self._folder.open(TABLE)
        if table is not None and listed:
            table.delete(f"id IN ({listed})")

    def tidy(self) -> None:
        self._folder.tidy(TABLE)


def now() -> str:
    return datetime.now(UTC).isoformat()


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema([(field.name, pa.int64() if field.type == "int" else pa.string()) for field in fields(Document)])

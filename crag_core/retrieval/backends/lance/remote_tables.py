"""Passages and rows in LanceDB tables that are read here and written in a process of its own.

A process that dies over a write has carried it out or not: whatever may be done twice is tried once more in a new one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crag_core.base.documents import IndexVersion
from crag_core.base.errors import WriteLost
from crag_core.retrieval.backends.backend import R
from crag_core.retrieval.backends.lance.passages import LancePassages
from crag_core.retrieval.backends.lance.rows import LanceRows
from crag_core.retrieval.backends.lance.tables import LanceTables
from crag_core.retrieval.backends.lance.write_protocol import Send, Write, pack_rows

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode


@dataclass(frozen=True)
class Remote:
    """How calls reach the index that `open_backend(setting, folder)` gives in the other process."""

    send: Send
    setting: str
    folder: str

    def call(self, name: str, body: bytes = b"", **arguments: Any) -> None:
        self.send(Write(self.setting, self.folder, name, **arguments), body)

    def call_twice(self, name: str, **arguments: Any) -> None:
        """Once more where the first try was lost."""
        try:
            self.call(name, **arguments)
        except WriteLost:
            self.call(name, **arguments)


class RemotePassages(LancePassages):
    def __init__(self, tables: LanceTables, version: IndexVersion, remote: Remote) -> None:
        super().__init__(tables, version)
        self._version = version
        self._remote = remote

    def add(self, nodes: Sequence[TextNode], collections: Mapping[str, str]) -> None:
        if not nodes:
            return
        with self._tables.explain():
            rows = pack_rows(self.to_rows(nodes, collections))
        ids = {node.ref_doc_id or "" for node in nodes}
        try:
            self._call("add_rows", body=rows)
        except WriteLost:
            try:
                self.delete(ids)  # it may be in
                self._call("add_rows", body=rows)
            except WriteLost:
                with suppress(WriteLost):
                    self.delete(ids)
                raise

    def delete(self, document_ids: Collection[str]) -> None:
        if document_ids:
            self._call_twice("delete", ids=tuple(document_ids))

    def move(self, document_ids: Collection[str], collection: str) -> None:
        if document_ids:
            self._call_twice("move", ids=tuple(document_ids), collection=collection)

    def index_vectors(self) -> None:
        self._call("index_vectors")

    def tidy(self) -> None:
        self._call("tidy")

    def rebuild_keywords(self) -> bool:
        self._call("rebuild_keywords")
        return True

    def rehearse(self, document_ids: Collection[str]) -> None:
        self._call("rehearse", ids=tuple(document_ids))

    def drop(self) -> None:
        self._call_twice("drop")
        self._tables.forget(self._name)

    def _call(self, name: str, **arguments: Any) -> None:
        self._remote.call(name, version=self._version, **arguments)

    def _call_twice(self, name: str, **arguments: Any) -> None:
        self._remote.call_twice(name, version=self._version, **arguments)


class RemoteRows(LanceRows[R]):
    def __init__(self, tables: LanceTables, name: str, kind: type[R], remote: Remote) -> None:
        super().__init__(tables, name, kind)
        self._remote = remote

    def put(self, rows: Sequence[R]) -> None:
        if rows or not self.is_there():
            self._remote.call_twice("put", part=self._name, **{self._name: tuple(rows)})

    def drop(self, ids: Iterable[str]) -> None:
        if gone := tuple(ids):
            self._remote.call_twice("drop", part=self._name, ids=gone)

    def tidy(self) -> None:
        self._remote.call_twice("tidy", part=self._name)

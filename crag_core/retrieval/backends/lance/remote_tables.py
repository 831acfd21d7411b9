"""Passages and rows in LanceDB tables that are read here and written in a process of its own.

A process that dies over a write has carried it out or not: whatever may be done twice is tried once more in a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from crag_core.base.documents import IndexVersion
from crag_core.base.errors import WriteLost
from crag_core.retrieval.backends.lance.passages import LancePassages
from crag_core.retrieval.backends.lance.rows import LanceRows
from crag_core.retrieval.backends.lance.tables import LanceTables
from crag_core.retrieval.backends.lance.write_protocol import Send, Write, pack_rows

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from llama_index.core.schema import TextNode

    R = TypeVar("R", bound=DataclassInstance)
else:
    R = TypeVar("R")


class LanceParts:
    """What a backend holds in LanceDB tables; `address` makes a call of a part a write to this index."""

    def __init__(self, tables: LanceTables, send: Send | None, address: Callable[..., Write]) -> None:
        self._tables = tables
        self._send = send
        self._address = address

    def rows(self, name: str, kind: type[R]) -> LanceRows[R]:
        if self._send is None:
            return LanceRows(self._tables, name, kind)
        return RowsApart(self._tables, name, kind, self._send, self._address)

    def passages(self, generation: IndexVersion) -> LancePassages:
        # The first is named as before there were generations.
        name = "passages" if generation.id == IndexVersion().id else f"passages-{generation.id}"
        if self._send is None:
            return LancePassages(self._tables, name, generation)
        return PassagesApart(self._tables, name, generation, self._send, self._address)


class PassagesApart(LancePassages):
    def __init__(
        self, tables: LanceTables, name: str, generation: IndexVersion, send: Send, address: Callable[..., Write]
    ) -> None:
        super().__init__(tables, name, generation)
        self._generation = generation
        self._send = send
        self._address = address

    def add(self, nodes: Sequence[TextNode], collections: Mapping[str, str]) -> None:
        if not nodes:
            return
        with self._tables.explain():
            rows = pack_rows(self.to_rows(nodes, collections))
        ids = {node.ref_doc_id or "" for node in nodes}
        try:
            self._tell("add_rows", body=rows)
        except WriteLost:
            try:
                self.delete(ids)  # it may be in
                self._tell("add_rows", body=rows)
            except WriteLost:
                with suppress(WriteLost):
                    self.delete(ids)
                raise

    def delete(self, document_ids: Collection[str]) -> None:
        if document_ids:
            self._tell_twice("delete", document_ids)

    def move(self, document_ids: Collection[str], collection: str) -> None:
        if document_ids:
            self._tell_twice("move", document_ids, collection)

    def index_vectors(self) -> None:
        self._tell("index_vectors")

    def tidy(self) -> None:
        self._tell("tidy")

    def remake_keywords(self) -> bool:
        self._tell("remake_keywords")
        return True

    def rehearse(self, document_ids: Collection[str]) -> None:
        self._tell("rehearse", document_ids)

    def drop(self) -> None:
        self._tell_twice("drop")
        self._tables.forget(self._name)

    def _tell(self, call: str, ids: Collection[str] = (), collection: str = "", body: bytes = b"") -> None:
        write = self._address(call, ids=tuple(ids), collection=collection, generation=self._generation)
        self._send(write, body)

    def _tell_twice(self, call: str, ids: Collection[str] = (), collection: str = "") -> None:
        try:
            self._tell(call, ids, collection)
        except WriteLost:
            self._tell(call, ids, collection)


class RowsApart(LanceRows[R]):
    """As `PassagesApart`."""

    def __init__(
        self, tables: LanceTables, name: str, kind: type[R], send: Send, address: Callable[..., Write]
    ) -> None:
        super().__init__(tables, name, kind)
        self._send = send
        self._address = address

    def put(self, rows: Sequence[R]) -> None:
        if rows or not self.is_there():
            self._tell("put", **{self._name: tuple(rows)})

    def drop(self, ids: Iterable[str]) -> None:
        if gone := tuple(ids):
            self._tell("drop", ids=gone)

    def tidy(self) -> None:
        self._tell("tidy")

    def _tell(self, call: str, **arguments: Any) -> None:
        write = self._address(call, part=self._name, **arguments)
        try:
            self._send(write, b"")
        except WriteLost:
            self._send(write, b"")

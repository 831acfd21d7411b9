"""What the backends share whose tables are LanceDB's: read here, and written here or in a process of its own.

A process that dies over a write has carried it out or not: whatever may be done twice is tried once more in a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from crag_core.base.documents import Document, IndexVersion
from crag_core.base.errors import WriteLost
from crag_core.retrieval.backends.backend import Backend, R
from crag_core.retrieval.backends.lance.passages import LancePassages
from crag_core.retrieval.backends.lance.tables import LanceRows, LanceTables

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode


class LanceBackend:
    """`remote` writes to the tables; None: they are written to here."""

    def __init__(self, tables: LanceTables, remote: Remote | None) -> None:
        self.place = tables.place
        self._tables = tables
        self._remote = remote
        self.documents = self._rows("documents", Document)
        self.index_versions = self._rows("generations", IndexVersion)

    def passages(self, version: IndexVersion) -> LancePassages:
        if self._remote is None:
            return LancePassages(self._tables, version)
        return RemotePassages(self._tables, version, self._remote)

    def _rows(self, name: str, kind: type[R]) -> LanceRows[R]:
        if self._remote is None:
            return LanceRows(self._tables, name, kind)
        return RemoteRows(self._tables, name, kind, self._remote)


@dataclass(frozen=True)
class Remote:
    """How calls reach the index that `open_backend(setting, folder)` gives in the other process."""

    send: Send
    setting: str
    folder: str

    def call(self, name: str, body: bytes = b"", *, tries: int = 1, **arguments: Any) -> None:
        """`tries` 2: once more where the first try was lost."""
        try:
            self.send(Write(self.setting, self.folder, name, **arguments), body)
        except WriteLost:
            if tries == 1:
                raise
            self.call(name, body, tries=tries - 1, **arguments)


class RemotePassages(LancePassages):
    def __init__(self, tables: LanceTables, version: IndexVersion, remote: Remote) -> None:
        super().__init__(tables, version)
        self._call = partial(remote.call, version=version)

    def add(self, nodes: Sequence[TextNode], collections: Mapping[str, str]) -> None:
        if not nodes:
            return
        with self._tables.explain():
            rows = pack_rows(self.to_rows(nodes, collections))
        ids = {node.ref_doc_id or "" for node in nodes}
        begun = {node.ref_doc_id or "" for node in nodes if node.metadata["ordinal"] == 0}
        try:
            self._call("add_rows", body=rows)
        except WriteLost:
            try:
                self.delete(ids)  # it may be in
                if ids != begun:  # what came before of a document went with it
                    raise
                self._call("add_rows", body=rows)
            except WriteLost:
                with suppress(WriteLost):
                    self.delete(ids)
                raise

    def delete(self, document_ids: Collection[str]) -> None:
        if document_ids:
            self._call("delete", tries=2, ids=tuple(document_ids))

    def move(self, document_ids: Collection[str], collection: str) -> None:
        if document_ids:
            self._call("move", tries=2, ids=tuple(document_ids), collection=collection)

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
        self._call("drop", tries=2)
        self._tables.forget(self._name)


class RemoteRows(LanceRows[R]):
    def __init__(self, tables: LanceTables, name: str, kind: type[R], remote: Remote) -> None:
        super().__init__(tables, name, kind)
        self._call = partial(remote.call, tries=2, part=name)

    def put(self, rows: Sequence[R]) -> None:
        if rows or not self.is_there():
            given: dict[str, Any] = {self._name: tuple(rows)}
            self._call("put", **given)

    def drop(self, ids: Iterable[str]) -> None:
        if gone := tuple(ids):
            self._call("drop", ids=gone)

    def tidy(self) -> None:
        self._call("tidy")


@dataclass(frozen=True)
class Write:
    """A call of a part of the index that `open_backend(setting, folder)` gives, with its arguments.

    The part is the passages of `version`, or the list of rows whose table is named `part`; rows to put are named
    likewise. The bytes of the frame are an Arrow stream of the passages to add.
    """

    setting: str
    folder: str
    call: str
    version: IndexVersion | None = None
    part: str = ""
    ids: tuple[str, ...] = ()
    collection: str = ""
    documents: tuple[Document, ...] = ()
    generations: tuple[IndexVersion, ...] = ()


Send = Callable[[Write, bytes], None]
"""Carries a write out elsewhere; raises what the call raises, and `WriteLost` when whoever was at it died."""


def pack_rows(rows: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def unpack_rows(body: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(body).read_all()


def carry_out(write: Write, body: bytes, backend: Backend) -> None:
    """The write, here; `backend` is one of LanceDB's."""
    lists: dict[str, Any] = {"documents": backend.documents, "generations": backend.index_versions}
    part: Any = backend.passages(write.version) if write.version else lists[write.part]
    call = getattr(part, write.call)
    if write.call == "add_rows":
        call(unpack_rows(body))
    elif write.call == "put":
        call([*write.documents, *write.generations])
    elif write.call == "move":
        call(write.ids, write.collection)
    elif write.call in ("delete", "rehearse") or (write.part and write.call == "drop"):
        call(write.ids)
    else:
        call()

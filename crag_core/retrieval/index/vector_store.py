"""An index whose vectors are searched in a vector store of LlamaIndex; documents, texts and words stay in its file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import NAMESPACE_OID, uuid5

from crag_core.base.documents import Document, IndexVersion, Recipe, State
from crag_core.base.errors import StoreUnavailable, WrongUse
from crag_core.base.protocols import Embedder
from crag_core.retrieval.chunking.split import make_nodes
from crag_core.retrieval.index.index_file import IndexFile
from crag_core.retrieval.index.index_writer import Embedded, IndexWriter, Written
from crag_core.retrieval.index.ingest import Read
from crag_core.retrieval.index.search import Hit, Searcher
from crag_core.retrieval.index.store import FindEmbedder, PassageStore

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode
    from llama_index.core.vector_stores.types import BasePydanticVectorStore

Ask = Callable[[Callable[["BasePydanticVectorStore"], Any]], Any]
"""Gives the vector store to a function, and what that returns back; an error of it comes as a `CragError`."""
_AT_ONCE = 256  # nodes
_MOST = 4096
"""Nodes asked for at most where those of no document here stand before the others."""


class VectorStoreWriter(IndexWriter):
    """Changes the vector store inside transactions of the file, so that all who change it take turns.

    The nodes of a document are put in by the transaction that commits it; those of a removed one are taken out by the
    next. The table `placed` names the documents that may have nodes there, so that what a kill or a failure leaves is
    taken out before the next document is put in. Until then it is not found.
    """

    def __init__(self, file: IndexFile, recipe: Recipe, ask: Ask) -> None:
        super().__init__(file, recipe)
        self._ask = ask

    def write_part(self, row: Document, embedded: Embedded, version: IndexVersion) -> bool:
        return False

    def write(self, row: Document, embedded: Embedded = (), version: IndexVersion | None = None) -> Written:
        if embedded:
            self._take_out(placing=row.id)
        written = super().write(row, embedded, version)
        if written.has_replaced:
            self._take_out()
        return written

    def put(self, row: Document, embedded: Embedded) -> None:
        nodes = make_nodes([chunk for chunk, _ in embedded], row)
        for node, (_, vector) in zip(nodes, embedded, strict=True):
            node.id_ = str(uuid5(NAMESPACE_OID, node.id_))  # some stores take no other ids
            node.embedding = list(vector)
        for start in range(0, len(nodes), _AT_ONCE):
            self._ask(partial(_add, nodes[start : start + _AT_ONCE]))

    def remove(self, ids: Iterable[str]) -> set[str]:
        removed = super().remove(ids)
        self._take_out()
        return removed

    def withdraw(self, owner: str) -> None:
        super().withdraw(owner)
        self._take_out()

    def discard(self) -> list[Document]:
        gone = super().discard()
        self._take_out()
        return gone

    def _take_out(self, placing: str = "") -> None:
        """All nodes of documents that are not indexed; `placing` is a document whose nodes are put in next."""
        with self.file.writing() as database:
            database.execute("CREATE TABLE IF NOT EXISTS placed (id TEXT PRIMARY KEY)")
            whole = f"SELECT id FROM documents WHERE state = '{State.INDEXED}'"
            for (one,) in database.execute(f"SELECT id FROM placed WHERE id NOT IN ({whole})").fetchall():
                try:
                    self._ask(partial(_delete, one))
                except StoreUnavailable:
                    if database.execute(f"{whole} LIMIT 1").fetchone():
                        raise
                    continue  # some have no collection before the first document; one that is away says so next
                database.execute("DELETE FROM placed WHERE id = ? AND id NOT IN (SELECT id FROM documents)", (one,))
            if placing:
                database.execute("INSERT OR IGNORE INTO placed VALUES (?)", (placing,))


def _add(nodes: Sequence[BaseNode], store: BasePydanticVectorStore) -> None:
    from llama_index.core.ingestion import IngestionPipeline

    IngestionPipeline(transformations=[], vector_store=store).run(nodes=nodes)


def _delete(document_id: str, store: BasePydanticVectorStore) -> None:
    store.delete(document_id)


def _nearest(
    vector: Sequence[float], limit: int, documents: Sequence[str], store: BasePydanticVectorStore
) -> list[tuple[str, int]]:
    """Document and ordinal of each; without `documents` of all."""
    from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters, VectorStoreQuery

    inside = MetadataFilter(key="ref_doc_id", value=list(documents), operator=FilterOperator.IN)
    filters = MetadataFilters(filters=[inside]) if documents else None
    found = store.query(VectorStoreQuery(query_embedding=list(vector), similarity_top_k=limit, filters=filters))
    return [(node.ref_doc_id or "", int(node.metadata.get("ordinal", -1))) for node in found.nodes or ()]


class VectorStorePassages(PassageStore):
    """A `PassageStore` whose vectors are searched by `ask`; words, documents and chunks are those of its file."""

    def __init__(
        self, folder: Path, embedder: Embedder, read: Read, ask: Ask, *, recipe: Recipe, find_embedder: FindEmbedder
    ) -> None:
        super().__init__(folder, embedder, read, recipe=recipe, find_embedder=find_embedder)
        self._writer = VectorStoreWriter(self._file, recipe, ask)
        self._ask = ask

    def search_dense(self, vector: Sequence[float], limit: int, collection: str = "") -> list[Hit]:
        """Nearest first, as far as the vector store finds them."""
        documents = [row.id for row in self._searched(collection)] if collection else []
        asked = limit
        while True:
            places = self._ask(partial(_nearest, vector, asked, documents))
            hits = self._search(partial(Searcher.at, places=list(dict.fromkeys(places))))
            if len(hits) >= limit or len(places) < asked or asked >= _MOST:
                return hits[:limit]
            asked *= 4

    def rebuild(self, *given: object, **more: object) -> NoReturn:
        raise WrongUse(
            "Documents in a vector store are not re-indexed.",
            hint="Name an empty one in CRAG_VECTOR_STORE, with an empty CRAG_HOME, and add the documents there.",
        )

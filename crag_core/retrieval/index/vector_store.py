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
from crag_core.retrieval.index.index_writer import Embedded, IndexWriter, Written, replaced_by, rows_where
from crag_core.retrieval.index.ingest import Read
from crag_core.retrieval.index.search import Hit
from crag_core.retrieval.index.store import FindEmbedder, PassageStore

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode
    from llama_index.core.vector_stores.types import BasePydanticVectorStore

Ask = Callable[[Callable[["BasePydanticVectorStore"], Any]], Any]
"""Gives the vector store to a function, and what that returns back; an error of it comes as a `CragError`."""
_AT_ONCE = 256  # nodes


class VectorStoreWriter(IndexWriter):
    """Puts the nodes of a document into the vector store before the document is committed here, and takes them out
    after it was removed here. What a kill leaves there belongs to no document: it is not found, and goes when the
    document is added again."""

    def __init__(self, file: IndexFile, recipe: Recipe, ask: Ask) -> None:
        super().__init__(file, recipe)
        self._ask = ask

    def write_part(self, row: Document, embedded: Embedded, version: IndexVersion) -> bool:
        return False

    def write(self, row: Document, embedded: Embedded = (), version: IndexVersion | None = None) -> Written:
        with self.file.reading() as database:
            older = replaced_by(database, row) if database else []
        if embedded:
            self._put(row, embedded)
        written = super().write(row, embedded, version)
        self._take_out([one.id for one in older if written.has_replaced])
        if written.row is None:  # removed meanwhile
            self._take_out([row.id])
        return written

    def remove(self, ids: Iterable[str]) -> set[str]:
        removed = super().remove(ids)
        self._take_out(removed)
        return removed

    def discard(self) -> list[Document]:
        gone = super().discard()
        self._take_out(row.id for row in gone)
        return gone

    def _put(self, row: Document, embedded: Embedded) -> None:
        try:
            self._take_out([row.id])
        except StoreUnavailable:  # some have no collection before the first document; one that is away says so below
            if self._has_documents():
                raise
        nodes = make_nodes([chunk for chunk, _ in embedded], row)
        for node, (_, vector) in zip(nodes, embedded, strict=True):
            node.id_ = str(uuid5(NAMESPACE_OID, node.id_))  # some stores take no other ids
            node.embedding = list(vector)
        for start in range(0, len(nodes), _AT_ONCE):
            self._ask(partial(_add, nodes[start : start + _AT_ONCE]))

    def _has_documents(self) -> bool:
        with self.file.reading() as database:
            return bool(database and rows_where(database, "state = ?", (State.INDEXED,)))

    def _take_out(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            self._ask(partial(_delete, id_))


def _add(nodes: Sequence[BaseNode], store: BasePydanticVectorStore) -> None:
    from llama_index.core.ingestion import IngestionPipeline

    IngestionPipeline(transformations=[], vector_store=store).run(nodes=nodes)


def _delete(document_id: str, store: BasePydanticVectorStore) -> None:
    store.delete(document_id)


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
        ids = [row.id for row in self._searched(collection)] if collection else []

        def work(store: BasePydanticVectorStore) -> list[tuple[str, int]]:
            from llama_index.core.vector_stores.types import (
                FilterOperator,
                MetadataFilter,
                MetadataFilters,
                VectorStoreQuery,
            )

            inside = MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value=ids, operator=FilterOperator.IN)])
            asked = VectorStoreQuery(
                query_embedding=list(vector), similarity_top_k=limit, filters=inside if collection else None
            )
            nodes = store.query(asked).nodes or ()
            return [(node.ref_doc_id or "", int(node.metadata["ordinal"])) for node in nodes]

        places = self._ask(work)
        return self._search(lambda searcher, database: searcher.at(database, places))

    def rebuild(self, *given: object, **more: object) -> NoReturn:
        raise WrongUse(
            "Documents in a vector store are not re-indexed.",
            hint="Name an empty one in CRAG_VECTOR_STORE, with an empty CRAG_HOME, and add the documents there.",
        )

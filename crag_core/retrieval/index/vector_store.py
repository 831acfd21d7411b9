"""An index whose vectors are searched in a vector store of LlamaIndex; documents, texts and words stay in its file."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

from crag_core.base.documents import Document, IndexVersion, Ingested, OnProgress, Progress, Recipe, State
from crag_core.base.errors import StoreUnavailable
from crag_core.base.protocols import Cancel, Embedder
from crag_core.retrieval.index.index_file import IndexFile
from crag_core.retrieval.index.index_writer import Embedded, IndexWriter, Written, rows_where
from crag_core.retrieval.index.ingest import Read
from crag_core.retrieval.index.search import Hit, Searcher
from crag_core.retrieval.index.store import FindEmbedder, PassageStore, no_progress

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores.types import BasePydanticVectorStore

Ask = Callable[[Callable[["BasePydanticVectorStore"], Any]], Any]
"""Gives the vector store to a function, and what that returns back; an error of it comes as a `CragError`."""
_AT_ONCE = 256  # nodes
_MOST = 4096
"""Nodes asked for at most where those of no document here stand before the others."""


class VectorStoreWriter(IndexWriter):
    """Brings the vector store in line with the file after each change of that, and so whatever a kill, a fault or
    another setting has left undone."""

    def __init__(self, file: IndexFile, recipe: Recipe, ask: Ask, name: str) -> None:
        """`name` is that of the vector store."""
        super().__init__(file, recipe)
        self._ask = ask
        self._name = name

    def write(self, row: Document, embedded: Embedded = (), version: IndexVersion | None = None) -> Written:
        written = super().write(row, embedded, version)
        self.sync()
        return written

    def remove(self, ids: Iterable[str]) -> set[str]:
        removed = super().remove(ids)
        self.sync()
        return removed

    def make_current(self, building: IndexVersion) -> list[Document]:
        missing = super().make_current(building)
        if not missing:
            self.sync()
        return missing

    def sync(self, on_progress: OnProgress = no_progress, cancel: Cancel | None = None) -> None:
        """Take out what is not indexed any more, and put in what is; those who do so take turns.

        The table `placed` says, by `key_of`, what may be in which vector store, and whether it is there as a whole.
        """
        from filelock import FileLock

        if not any(self._differences()):
            return
        with FileLock(self.file.folder / "vector-store.lock"):
            gone, new = self._differences()
            for key in gone:
                self._take_out(key)
            for position, row in enumerate(new, 1):
                if cancel and cancel.is_set():
                    return
                on_progress(Progress(row.name, position, len(new)))
                self._put(row)

    def _put(self, row: Document) -> None:
        with self.file.reading() as database:
            version = self.current(database).id
            of_it = "document = (SELECT number FROM documents WHERE id = ?) ORDER BY ordinal"
            query = f"SELECT text, page, section, vector FROM passages_{version} WHERE {of_it}"
            found = database.execute(query, (row.id,)).fetchall()
        key = key_of(row.id, version)
        self._note(key, is_whole=False)
        nodes = [_node(key, row.name, ordinal, *kept) for ordinal, kept in enumerate(found)]
        for start in range(0, len(nodes), _AT_ONCE):
            self._ask(partial(_add, nodes[start : start + _AT_ONCE]))
        self._note(key, is_whole=True)

    def _note(self, key: str, is_whole: bool) -> None:
        with self._noted() as database:
            database.execute("REPLACE INTO placed VALUES (?, ?, ?)", (key, self._name, is_whole))

    def _take_out(self, key: str) -> None:
        try:
            self._ask(lambda store: store.delete(key))
        except StoreUnavailable:  # some have no collection before the first document
            with self._noted() as database:
                if database.execute("SELECT 1 FROM placed WHERE store = ? AND whole", (self._name,)).fetchone():
                    raise
        with self._noted() as database:
            database.execute("DELETE FROM placed WHERE key = ? AND store = ?", (key, self._name))

    def _differences(self) -> tuple[list[str], list[Document]]:
        """Keys of what is to be taken out, and what is to be put in."""
        with self._noted() as database:
            version = self.current(database).id
            rows = {key_of(row.id, version): row for row in rows_where(database, "state = ?", (State.INDEXED,))}
            placed = dict(database.execute("SELECT key, whole FROM placed WHERE store = ?", (self._name,)).fetchall())
        done = {key for key, is_whole in placed.items() if is_whole and key in rows}
        return [key for key in placed if key not in done], [row for key, row in rows.items() if key not in done]

    @contextmanager
    def _noted(self) -> Iterator[Connection]:
        with self.file.writing() as database:
            layout = "(key TEXT, store TEXT, whole INTEGER, PRIMARY KEY (key, store))"
            database.execute(f"CREATE TABLE IF NOT EXISTS placed {layout}")
            yield database


def key_of(document_id: str, version: int) -> str:
    """The `ref_doc_id` of the nodes of a document, in one version of its passages."""
    return f"{document_id}-{version}"


def _node(key: str, name: str, ordinal: int, text: str, page: int | None, section: str, vector: bytes) -> TextNode:
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    label = {"file_name": name, "page_label": str(page or ""), "ordinal": ordinal, "section": section}
    return TextNode(
        id_=str(uuid5(NAMESPACE_OID, f"{key}-{ordinal}")),  # some stores take no other ids
        text=text,
        embedding=array("f", vector).tolist(),
        metadata=label,
        # For people: the vector is of the text alone.
        excluded_embed_metadata_keys=[*label],
        excluded_llm_metadata_keys=[*label],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=key)},
    )


def _add(nodes: Sequence[TextNode], store: BasePydanticVectorStore) -> None:
    from llama_index.core.ingestion import IngestionPipeline

    IngestionPipeline(transformations=[], vector_store=store).run(nodes=nodes)


def _nearest(
    vector: Sequence[float], limit: int, keys: Sequence[str], store: BasePydanticVectorStore
) -> list[tuple[str, int]]:
    """Key and ordinal of each; without `keys` of all."""
    from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters, VectorStoreQuery

    inside = MetadataFilter(key="ref_doc_id", value=list(keys), operator=FilterOperator.IN)
    filters = MetadataFilters(filters=[inside]) if keys else None
    found = store.query(VectorStoreQuery(query_embedding=list(vector), similarity_top_k=limit, filters=filters))
    return [(node.ref_doc_id or "", int(node.metadata.get("ordinal", -1))) for node in found.nodes or ()]


class VectorStorePassages(PassageStore):
    """A `PassageStore` whose vectors are searched by `ask`, in the vector store `name`."""

    def __init__(
        self, folder: Path, embedder: Embedder, read: Read, ask: Ask, name: str, recipe: Recipe, find: FindEmbedder
    ) -> None:
        super().__init__(folder, embedder, read, recipe=recipe, find_embedder=find)
        self._vectors = self._writer = VectorStoreWriter(self._file, recipe, ask, name)
        self._ask = ask

    def take_over(self, on_progress: OnProgress = no_progress, cancel: Cancel | None = None) -> tuple[Ingested, ...]:
        outcomes = super().take_over(on_progress, cancel)
        self._vectors.sync(on_progress, cancel)
        return outcomes

    def search_dense(self, vector: Sequence[float], limit: int, collection: str = "") -> list[Hit]:
        """Nearest first, as far as the vector store finds them."""
        version, asked = self.index_version.id, limit
        keys = [key_of(row.id, version) for row in self._searched(collection)] if collection else []
        while True:
            places = self._ask(partial(_nearest, vector, asked, keys))
            there = list(dict.fromkeys((key.removesuffix(f"-{version}"), ordinal) for key, ordinal in places))
            hits = self._search(partial(Searcher.at, places=there))
            if len(hits) >= limit or len(places) < asked or asked >= _MOST:
                return hits[:limit]
            asked *= 4

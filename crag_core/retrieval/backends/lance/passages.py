"""Passages in a LanceDB table: its columns, what is searched for in it, and how rows come and go.

The table has the columns of LlamaIndex's LanceDBVectorStore, so that its own tools can read it; everything goes to
LanceDB directly. The wrapper reports exp(-distance) as similarity, rebuilds the keyword index for every new process,
and pastes filter values into SQL unescaped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crag_core.base.documents import MAIN, Document, IndexVersion, State
from crag_core.base.types.passages import Passage
from crag_core.retrieval.backends.backend import Hit, check_id, to_passage
from crag_core.retrieval.backends.lance.tables import LanceTables, quote

if TYPE_CHECKING:
    from lancedb.table import LanceTable
    from llama_index.core.schema import TextNode

_EMBEDDING = b"crag_embedding"
_ADDED = {"collection": f"'{MAIN}'", "section": "''"}
"""Columns beside those of LlamaIndex's LanceDBVectorStore, and their values in an index that lacks them."""
_PASSAGE = {
    "id": "id",
    "text": "text",
    "document_id": "doc_id",
    "name": "metadata.file_name",
    "page": "metadata.page_label",
    "ordinal": "metadata.ordinal",
    "section": "section",
}
_HIT = {**_PASSAGE, "vector": "vector"}
_VECTOR_INDEX, _KEYWORD_INDEX = "vector_idx", "text_idx"  # as LanceDB names them
_REHEARSED = "-rehearsed"
_ROWS_AT_ONCE = 256
_AS_IT_IS = {"lance-encoding:dict-divisor": str(2**31)}
"""Of texts that repeat Lance keeps each once, and then reserves for N rows N times the mean length of these few: one of
10 MB among thousands of equal short ones took 27 GB, for want of which the process aborts (lancedb 0.40)."""
_LONG = ("text", "metadata._node_content")
"""Columns with texts of any length."""
_MOST_PARTS = 8
_REFINED = 2
"""So many times as many candidates as are asked for are compared by their whole vectors."""
_DOCUMENT = {
    "id": "doc_id",
    "name": "metadata.file_name",
    "collection": "collection",
    "pages": "metadata.pages",
    "characters": "metadata.characters",
    "changed_at": "metadata.indexed_at",
}


class LancePassages:
    """`Passages` in a table of their own; the effort is the number of partitions that are looked into."""

    efforts = (10, 20, 40, 80, 160, 320)

    def __init__(self, tables: LanceTables, version: IndexVersion) -> None:
        self._tables = tables
        # The first is named as before there were several.
        self._name = "passages" if version.id == IndexVersion().id else f"passages-{version.id}"
        self._embedding = version.embedding
        self._effort = version.effort

    def built_with(self) -> str | None:
        with self._tables.opened(self._name) as table:
            return None if table is None else (table.schema.metadata or {}).get(_EMBEDDING, b"").decode()

    def add(self, nodes: Sequence[TextNode], collections: Mapping[str, str]) -> None:
        """With one commit."""
        if nodes:
            with self._tables.explain():
                self.add_rows(self.to_rows(nodes, collections))

    def to_rows(self, nodes: Sequence[TextNode], collections: Mapping[str, str]) -> Any:
        """An Arrow table of what `add` adds."""
        import pyarrow as pa

        schema = _schema(len(nodes[0].get_embedding()), self._embedding)
        # Some at a time, since rows in Python take several times the memory of a table.
        parts = [nodes[start : start + _ROWS_AT_ONCE] for start in range(0, len(nodes), _ROWS_AT_ONCE)]
        rows = ([_row(node, collections[node.ref_doc_id or ""]) for node in part] for part in parts)
        return pa.concat_tables(pa.Table.from_pylist(part, schema=schema) for part in rows)

    def add_rows(self, rows: Any) -> None:
        with self._tables.opened(self._name) as table:
            if table is None:
                table = self._tables.create(self._name, rows.schema)
            # Found missing when the process was killed right after making the table.
            if not table.list_indices():
                table.create_index("text", config=_keyword_index())
            self._bring_up_to_date(table)
            table.add(rows)

    def delete(self, document_ids: Collection[str]) -> None:
        with self._tables.opened(self._name) as table:
            if table is not None and document_ids:
                table.delete(_pick_documents(document_ids))

    def move(self, document_ids: Collection[str], collection: str) -> None:
        with self._tables.opened(self._name) as table:
            if table is not None and document_ids:
                self._bring_up_to_date(table)
                table.update(where=_pick_documents(document_ids), values={"collection": collection})

    def documents(self, ids: Collection[str] | None = None) -> list[Document]:
        if ids is not None and not ids:
            return []
        found = self._scan(_DOCUMENT, ids or ())
        if found is None:
            return []
        names = [name for name in found.column_names if name != "id"]
        first = [(name, "first") for name in names]
        grouped = found.group_by("id", use_threads=False).aggregate([*first, ("id", "count")])
        rows = grouped.rename_columns(["id", *names, "passages"]).to_pylist()
        return [Document(**{"collection": MAIN, **row}, state=State.INDEXED) for row in rows]

    def of(self, document_id: str) -> list[Passage]:
        found = self._scan(_PASSAGE, [document_id])
        passages = [_to_passage(row) for row in found.to_pylist()] if found is not None else []
        return sorted(passages, key=lambda passage: passage.ordinal)

    def search_dense(self, vector: Sequence[float], limit: int, collection: str = "", exact: bool = False) -> list[Hit]:
        def prepare(query: Any) -> Any:
            query = query.distance_type("cosine")
            if exact or not self._effort:
                return query.bypass_vector_index()
            query = query.minimum_nprobes(self._effort).refine_factor(_REFINED)
            # In a collection, go on until enough is found: it may lie in few partitions, or in none of those.
            return query.maximum_nprobes(0 if collection else self._effort)

        asked = {"query": list(vector), "vector_column_name": "vector"}
        rows = self._search("_distance", limit, collection, asked, prepare)
        return [_to_hit(row, 1.0 - row["_distance"]) for row in rows]

    def search_keyword(self, text: str, limit: int, collection: str = "") -> list[Hit]:
        """By BM25: quotes and brackets mean nothing."""
        # A text in quotes would be looked for as a phrase, which the index cannot do.
        words = text.replace('"', " ")
        asked = {"query": words, "query_type": "fts", "fts_columns": "text"}
        rows = self._search("_score", limit, collection, asked)
        return [_to_hit(row, row["_score"]) for row in rows]

    def sample(self, limit: int, collection: str = "") -> list[Hit]:
        import numpy as np

        with self._tables.opened(self._name) as table:
            if table is None:
                return []
            offsets = np.arange(table.count_rows())
            if collection and not self._missing(table):
                names = table.search().select(["collection"]).to_arrow()["collection"]
                offsets = offsets[np.asarray(names) == collection]
            elif collection not in ("", MAIN):
                return []
            chosen = offsets[np.unique(np.linspace(0, len(offsets) - 1, min(limit, len(offsets))).astype(int))]
            rows = table.take_offsets(chosen.tolist()).select(self._known(_HIT, table)).to_arrow().to_pylist()
            return [_to_hit(row, 0.0) for row in rows]

    def coverage(self) -> tuple[int, int]:
        with self._tables.opened(self._name) as table:
            if table is None:
                return 0, 0
            stats = table.index_stats(_VECTOR_INDEX)
            return table.count_rows(), stats.num_indexed_rows if stats else 0

    def is_worn(self) -> bool:
        """Each tidying adds a part to the approximate index, and each part is searched."""
        with self._tables.opened(self._name) as table:
            stats = table.index_stats(_VECTOR_INDEX) if table is not None else None
            return stats is not None and (stats.num_indices or 0) > _MOST_PARTS

    def index_vectors(self) -> None:
        """And of the columns that are searched by value, where a filter would have to look at every row."""
        from lancedb.index import Bitmap, BTree, IvfRq

        with self._tables.opened(self._name) as table:
            if table is None:
                return
            # Four bits with refinement lose nothing that probing does not; more samples win little, and take minutes
            # at a million passages once some were deleted.
            table.create_index("vector", config=IvfRq(distance_type="cosine", num_bits=4, sample_rate=32), replace=True)
            there = {column for index in table.list_indices() for column in index.columns}
            for column, config in (("collection", Bitmap()), ("doc_id", BTree()), ("id", BTree())):
                if column not in there:
                    table.create_index(column, config=config)

    def tidy(self) -> None:
        with self._tables.opened(self._name) as table:
            self._tables.tidy(self._name)
            stats = table.index_stats(_KEYWORD_INDEX) if table is not None else None
            if stats and stats.num_unindexed_rows:  # LanceDB only warns of an index that it cannot read
                raise RuntimeError("the keyword index cannot be read")

    def rebuild_keywords(self) -> bool:
        with self._tables.opened(self._name) as table:
            if table is not None:
                self._bring_up_to_date(table)
                # Replaced, not dropped: there is one to search meanwhile.
                table.create_index("text", config=_keyword_index(), replace=True)
                self._tables.tidy(self._name)
            return True

    def rehearse(self, document_ids: Collection[str]) -> None:
        """In a table of its own, which goes again."""
        name = f"{self._name}{_REHEARSED}"
        with self._tables.opened(self._name) as table:
            if table is None or not document_ids:
                return
            self._tables.drop(name)
            try:
                found = table.search().where(_pick_documents(document_ids)).to_batches(batch_size=_ROWS_AT_ONCE)
                copied = self._tables.create(name, table.schema)
                copied.add(found)
                copied.create_index("text", config=_keyword_index())
                copied.optimize()
            finally:
                self._tables.drop(name)

    def drop(self) -> None:
        with self._tables.explain():
            self._tables.drop(self._name)

    def _search(
        self,
        score: str,
        limit: int,
        collection: str,
        asked: Mapping[str, Any],
        prepare: Callable[[Any], Any] = lambda query: query,
    ) -> list[dict[str, Any]]:
        """The best `limit` rows of one collection, or of all; `asked` are the arguments of LanceDB's own search."""
        with self._tables.opened(self._name) as table:
            if table is None:
                return []
            query = prepare(table.search(**asked))
            if collection and not self._missing(table):
                query = query.where(f"collection = {quote(collection)}", prefilter=True)
            elif collection not in ("", MAIN):
                return []
            columns = self._known({**_HIT, score: score}, table)
            rows: list[dict[str, Any]] = query.select(columns).limit(limit).to_arrow().to_pylist()
            return rows

    def _scan(self, columns: Mapping[str, str], document_ids: Collection[str]) -> Any:
        """An Arrow table with rows of some documents, or of all; `columns` maps the names wanted to the table's own."""
        with self._tables.opened(self._name) as table:
            if table is None:
                return None
            query = table.search().select(self._known(columns, table))
            if document_ids:
                query = query.where(_pick_documents(document_ids))
            return query.to_arrow()

    def _bring_up_to_date(self, table: LanceTable) -> None:
        """Add the columns that an index of an earlier release lacks; tidying rewrites its older rows."""
        if self._name in self._tables.up_to_date:
            return
        if not table.schema.field("text").metadata:
            table.update_field_metadata(*({"path": path, "metadata": _AS_IT_IS} for path in _LONG))
        if missing := self._missing(table):
            table.add_columns({name: _ADDED[name] for name in missing})

    def _missing(self, table: LanceTable) -> set[str]:
        """The columns that an index of an earlier release lacks."""
        if self._name in self._tables.up_to_date:
            return set()
        schema = table.schema
        missing = _ADDED.keys() - {*schema.names}
        if not missing and schema.field("text").metadata:
            self._tables.up_to_date.add(self._name)
        return missing

    def _known(self, columns: Mapping[str, str], table: LanceTable) -> dict[str, Any]:
        """`columns` without those that are missing."""
        missing = self._missing(table)
        return {name: column for name, column in columns.items() if column not in missing}


def _pick_documents(ids: Iterable[str]) -> str:
    """A filter that holds nothing but hexadecimal digits."""
    return f"doc_id IN ({', '.join(quote(check_id(one)) for one in ids)})"


def _to_passage(row: Mapping[str, Any]) -> Passage:
    return to_passage(**{name: row[name] for name in _PASSAGE if name in row})


def _to_hit(row: Mapping[str, Any], score: float) -> Hit:
    import numpy as np

    return Hit(_to_passage(row), np.asarray(row["vector"], dtype=np.float32), float(score))


def _row(node: TextNode, collection: str) -> dict[str, Any]:
    """As LlamaIndex's LanceDBVectorStore writes it, so that its own tools can read the table."""
    from llama_index.core.vector_stores.utils import node_to_metadata_dict

    metadata = node_to_metadata_dict(
        node.model_copy(update={"embedding": None}), remove_text=False, flat_metadata=False
    )
    section = metadata.pop("section", "")
    return {
        "id": node.node_id,
        "doc_id": node.ref_doc_id,
        "vector": node.get_embedding(),
        "text": node.text,
        "metadata": metadata,
        "collection": collection,
        "section": section,
    }


def _schema(dimension: int, embedding: str) -> Any:
    """The columns that LlamaIndex's LanceDBVectorStore writes, with types fixed, and our own.

    Left to itself the wrapper guesses the types from the first row and, when two processes start together, the second
    overwrites the first's table.
    """
    import pyarrow as pa

    text, whole = pa.string(), pa.int64()
    metadata = pa.struct(
        [(name, text) for name in ("file_name", "page_label", "indexed_at")]
        + [pa.field("_node_content", text, metadata=_AS_IT_IS), ("_node_type", text)]
        + [(name, whole) for name in ("ordinal", "pages", "characters")]
        + [(name, text) for name in ("document_id", "doc_id", "ref_doc_id")]
    )
    return pa.schema(
        [
            ("id", text),
            ("doc_id", text),
            ("vector", pa.list_(pa.float32(), dimension)),
            pa.field("text", text, metadata=_AS_IT_IS),
            ("metadata", metadata),
            *((name, text) for name in _ADDED),
        ],
        metadata={_EMBEDDING: embedding.encode()},
    )


def _keyword_index() -> Any:
    """Chosen by hit@5 on question sets: LanceDB's default finds 7 % in Chinese and 77 % in Thai, this one 99 %.

    English stems win one to three points in English and lose none elsewhere; leaving out stop words wins one or two in
    most languages, at the price that "IT" or "WHO" alone is found by meaning only. N-grams win up to six points in
    inflected languages and lose six in English.
    """
    from lancedb.index import FTS

    return FTS(base_tokenizer="icu/split", stem=True, remove_stop_words=True)

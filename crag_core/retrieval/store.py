"""Indexed documents: files in, passages out, on LanceDB in one folder.

Rows are written through LlamaIndex's LanceDBVectorStore, so that its own tools can read the table; everything else goes
to LanceDB directly. The wrapper reports exp(-distance) as similarity, rebuilds the keyword index for every new process,
and pastes filter values into SQL unescaped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from crag_core.errors import DocumentMissing
from crag_core.protocols import Embedder
from crag_core.retrieval.chunking import Tokenize
from crag_core.retrieval.indexing import Indexer
from crag_core.retrieval.joining import join_passages
from crag_core.retrieval.originals import Originals
from crag_core.retrieval.reports import Hit, IndexedDocument, Ingested, IngestOutcome, OnProgress, Progress
from crag_core.retrieval.surroundings import Surroundings, surround
from crag_core.retrieval.table import DOCUMENT_ID, PassageTable, explain_faults
from crag_core.types import Passage

__all__ = ["Hit", "IndexedDocument", "IngestOutcome", "Ingested", "PassageStore", "Progress"]

_PASSAGE = {
    "id": "id",
    "text": "text",
    "vector": "vector",
    "document_id": "doc_id",
    "name": "metadata.file_name",
    "page": "metadata.page_label",
    "ordinal": "metadata.ordinal",
}
_DOCUMENT = {
    "id": "doc_id",
    "name": "metadata.file_name",
    "pages": "metadata.pages",
    "characters": "metadata.characters",
    "indexed_at": "metadata.indexed_at",
}


class PassageStore:
    """All methods raise `StoreUnavailable`; safe to use from several threads and processes.

    Constructing it touches no disk. `tokenize` is the embedding model's own tokenizer, where it offers one, so that no
    passage is longer than the model reads.
    """

    def __init__(self, folder: Path | str, embedder: Embedder, tokenize: Tokenize | None = None) -> None:
        self._folder = Path(folder)
        self._embedder = embedder
        self._tokenize = tokenize
        self._table = PassageTable(self._folder, embedder.name)
        self._originals = Originals(self._folder / "originals")

    def ingest(
        self, documents: Iterable[tuple[str, bytes | Path]], on_progress: OnProgress | None = None
    ) -> tuple[Ingested, ...]:
        """Index (name, content or path) pairs; one outcome each, in order. A refused file never stops the others.

        A document's passages go in with one commit, so a kill leaves it whole or absent; a new version goes in before
        the old one goes out, and indexing the same name again finishes what a kill left between the two. The file
        itself is kept before its passages go in, also when it was indexed already. The same content under a second
        name is already indexed under the first. An exception out of `on_progress` (a user who stops) leaves the
        current document out. Raises `EmbeddingUnavailable` too.
        """
        return Indexer(self._table, self._originals, self._embedder, self._tokenize).ingest(
            documents, on_progress or (lambda progress: None)
        )

    def documents(self) -> tuple[IndexedDocument, ...]:
        """By name, then newest first."""
        rows = self._table.scan(_DOCUMENT)
        counts: dict[str, int] = {}
        for row in rows:
            counts[row["id"]] = counts.get(row["id"], 0) + 1
        known = {row["id"]: row for row in rows}
        found = [
            IndexedDocument(**{**row, "passages": counts[id_], "indexed_at": datetime.fromisoformat(row["indexed_at"])})
            for id_, row in known.items()
        ]
        return tuple(sorted(found, key=lambda document: (document.name.casefold(), -document.indexed_at.timestamp())))

    def delete(self, document_id: str) -> bool:
        """True when it was there. The file kept of it goes at once, its passages leave the disk with a later write."""
        if not DOCUMENT_ID.fullmatch(document_id):
            return False
        with self._table.lock():
            was_there = self._table.count(document_id) > 0
            if was_there:
                self._table.delete(document_id)
                self._originals.tidy(self._table.names())
                self._table.tidy()
            return was_there

    def passages_of(self, document_id: str) -> tuple[Passage, ...]:
        """In reading order; empty for a document that is not there."""
        if not DOCUMENT_ID.fullmatch(document_id):
            return ()
        columns = {name: column for name, column in _PASSAGE.items() if name != "vector"}
        passages = [_to_passage(row) for row in self._table.scan(columns, document_id)]
        return tuple(sorted(passages, key=lambda passage: passage.ordinal))

    def read_document(self, document_id: str) -> str | None:
        """The whole text as it was read from the file, but for white space; None for a document that is not there."""
        passages = self.passages_of(document_id)
        return join_passages(passages, self._tokenize) if passages else None

    def surround(self, passage: Passage) -> Surroundings | None:
        """What stands beside a passage in its document; None where it does not stand there, or not any more."""
        return surround(passage, self.passages_of(passage.document_id), self._tokenize)

    def read_original(self, document_id: str) -> bytes:
        """The file as it was indexed; raises `DocumentMissing` where it is not, or not any more, or was never kept."""
        if not DOCUMENT_ID.fullmatch(document_id) or not self._table.count(document_id):
            raise DocumentMissing(
                "This document is not in the index, or not any more in this version.",
                hint="Add it on the Documents page.",
            )
        return self._originals.read(document_id)

    def count(self) -> int:
        """Passages of all documents."""
        return self._table.count()

    def fingerprint(self) -> str:
        """Changes whenever a document comes or goes, and with the embedding model: the key for caches."""
        ids = sorted(document.id for document in self.documents())
        return hashlib.sha256("\n".join([self._embedder.name, *ids]).encode()).hexdigest()[:16]

    def search_dense(self, vector: Sequence[float], limit: int) -> list[Hit]:
        """Nearest first by exact cosine; there is no approximate index to miss one."""
        with explain_faults(self._folder):
            table = self._table.open()
            if table is None:
                return []
            query = table.search(list(vector), vector_column_name="vector").distance_type("cosine")
            rows = query.select({**_PASSAGE, "_distance": "_distance"}).limit(limit).to_arrow().to_pylist()
            return [_to_hit(row, 1.0 - row["_distance"]) for row in rows]

    def search_keyword(self, text: str, limit: int) -> list[Hit]:
        """Best BM25 first. `text` is words, never a query language: quotes and brackets mean nothing."""
        with explain_faults(self._folder):
            table = self._table.open()
            if table is None:
                return []
            # A text in quotes would be looked for as a phrase, which the index cannot do.
            query = table.search(text.replace('"', " "), query_type="fts", fts_columns="text")
            rows = query.select({**_PASSAGE, "_score": "_score"}).limit(limit).to_arrow().to_pylist()
            return [_to_hit(row, row["_score"]) for row in rows]


def _to_passage(row: dict[str, Any]) -> Passage:
    return Passage(
        id=row["id"],
        text=row["text"],
        source=row["name"],
        document_id=row["document_id"],
        page=int(row["page"]) if row["page"] else None,
        ordinal=row["ordinal"],
    )


def _to_hit(row: dict[str, Any], score: float) -> Hit:
    import numpy as np

    return Hit(_to_passage(row), np.asarray(row["vector"], dtype=np.float32), float(score))

"""Indexed documents: files in, passages out, on LanceDB in one folder.

The table of passages has the columns of LlamaIndex's LanceDBVectorStore, so that its own tools can read it; everything
goes to LanceDB directly. The wrapper reports exp(-distance) as similarity, rebuilds the keyword index for every new
process, and pastes filter values into SQL unescaped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag_core.documents import MAIN, Document, Ingested, OnProgress, Progress
from crag_core.errors import DocumentMissing
from crag_core.protocols import Cancel, Embedder
from crag_core.retrieval.chunking import Tokenize
from crag_core.retrieval.indexing import Indexer, Read
from crag_core.retrieval.intake import Given
from crag_core.retrieval.joining import join_passages
from crag_core.retrieval.lance import explain_faults
from crag_core.retrieval.readers import Page, read_document
from crag_core.retrieval.shelf import Shelf
from crag_core.retrieval.surroundings import Surroundings, surround
from crag_core.retrieval.table import DOCUMENT_ID, PASSAGE_ID
from crag_core.types import Passage

if TYPE_CHECKING:
    import numpy as np

_PASSAGE = {
    "id": "id",
    "text": "text",
    "vector": "vector",
    "document_id": "doc_id",
    "name": "metadata.file_name",
    "page": "metadata.page_label",
    "ordinal": "metadata.ordinal",
    "section": "section",
}


@dataclass(frozen=True)
class Hit:
    """A passage with its stored vector and the search engine's own score (cosine, or BM25)."""

    passage: Passage
    vector: np.ndarray
    score: float


def _read_here(content: bytes, name: str, cancel: Cancel) -> Sequence[Page]:
    return read_document(content, name)


def _tell_nobody(progress: Progress) -> None:
    pass


class PassageStore:
    """All methods raise `StoreUnavailable`; safe to use from several threads and processes.

    Constructing it touches no disk. `tokenize` is the embedding model's own tokenizer, where it offers one, so that no
    passage is longer than the model reads. `read` takes a file apart; the default does so in this very process.
    """

    def __init__(
        self, folder: Path | str, embedder: Embedder, tokenize: Tokenize | None = None, read: Read = _read_here
    ) -> None:
        self._folder = Path(folder)
        self._embedder = embedder
        self._tokenize = tokenize
        self._read = read
        self._shelf = Shelf(self._folder, embedder.name)

    def ingest(
        self,
        documents: Iterable[Given],
        on_progress: OnProgress = _tell_nobody,
        *,
        collection: str = MAIN,
        cancel: Cancel | None = None,
    ) -> tuple[Ingested, ...]:
        """Index files, and those in ZIP archives; one outcome each, in order. A refused file never stops the others.

        All files are kept before the first is read, so what a kill leaves undone `finish_interrupted` does. The
        passages of a document go in with one commit, which leaves it whole or absent; a new version goes in before the
        old one goes out. The same content under a second name is already indexed under the first. Once `cancel` is set,
        or `on_progress` raises `Stopped`, the current document and those after it are left out. Raises
        `EmbeddingUnavailable` too, and leaves them out likewise.
        """
        return self._indexer(on_progress, cancel).ingest(documents, collection)

    def finish_interrupted(
        self, on_progress: OnProgress = _tell_nobody, cancel: Cancel | None = None
    ) -> tuple[Ingested, ...]:
        """Bring in what processes that were killed had begun, and take out what they were removing.

        Safe while others index: what a living process is at work on is left to it.
        """
        return self._indexer(on_progress, cancel).finish() if self._shelf.rows() else ()

    def documents(self) -> tuple[Document, ...]:
        """The indexed ones, by name."""
        return tuple(document for document in self.listing() if document.is_whole)

    def listing(self) -> tuple[Document, ...]:
        """Every document, also those that wait, are being indexed, or were refused, by name."""
        return tuple(sorted(self._shelf.rows(), key=lambda row: (row.name.casefold(), row.changed_at)))

    def delete(self, document_id: str) -> bool:
        """True when it was there. The file kept of it goes at once, its passages leave the disk with a later write."""
        return bool(self.delete_all([document_id]))

    def delete_all(self, document_ids: Iterable[str]) -> set[str]:
        """Those that were there, waiting and refused ones too."""
        ids = [one for one in document_ids if DOCUMENT_ID.fullmatch(one)]
        if not {row.id for row in self._shelf.rows()} & {*ids}:
            return set()
        gone = self._shelf.remove(ids)
        self._shelf.tidy()
        return gone

    def move(self, document_ids: Iterable[str], collection: str) -> None:
        """Put indexed documents into another collection."""
        self._shelf.move([one for one in document_ids if DOCUMENT_ID.fullmatch(one)], collection)

    def passages_of(self, document_id: str) -> tuple[Passage, ...]:
        """In reading order; empty for a document that is not there."""
        if not DOCUMENT_ID.fullmatch(document_id):
            return ()
        columns = {name: column for name, column in _PASSAGE.items() if name != "vector"}
        passages = [_to_passage(row) for row in self._shelf.passages.scan(columns, [document_id])]
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
        if document_id not in self._shelf.whole():
            raise DocumentMissing(
                "This document is not in the index, or not any more in this version.",
                hint="Add it on the Documents page.",
            )
        return self._shelf.originals.read(document_id)

    def count(self, collection: str = "") -> int:
        """Passages of all documents, or of those of a collection."""
        return sum(row.passages for row in self._shelf.whole().values() if collection in ("", row.collection))

    def fingerprint(self, collection: str = "") -> str:
        """Changes whenever a document comes to a collection, or to any, or goes, and with the embedding model.

        The key for caches.
        """
        ids = sorted(row.id for row in self._shelf.whole().values() if collection in ("", row.collection))
        return hashlib.sha256("\n".join([self._embedder.name, *ids]).encode()).hexdigest()[:16]

    def search_dense(self, vector: Sequence[float], limit: int, collection: str = "") -> list[Hit]:
        """Nearest first by exact cosine; there is no approximate index to miss one."""
        rows = self._search(limit, collection, "_distance", query=list(vector), vector_column_name="vector")
        return [_to_hit(row, 1.0 - row["_distance"]) for row in rows]

    def search_keyword(self, text: str, limit: int, collection: str = "") -> list[Hit]:
        """Best BM25 first. `text` is words, never a query language: quotes and brackets mean nothing."""
        # A text in quotes would be looked for as a phrase, which the index cannot do.
        words = text.replace('"', " ")
        rows = self._search(limit, collection, "_score", query=words, query_type="fts", fts_columns="text")
        return [_to_hit(row, row["_score"]) for row in rows]

    def sample(self, limit: int, collection: str = "") -> list[Hit]:
        """At most `limit` passages with their vectors, evenly taken from a collection or from all; score 0."""
        if not self.count(collection):
            return []
        return [_to_hit(row, 0.0) for row in self._shelf.passages.sample(_PASSAGE, limit, collection)]

    def find_passages(self, passage_ids: Sequence[str]) -> list[Hit]:
        """Those that are indexed, in the order asked for; score 0."""
        sound = [one for one in passage_ids if PASSAGE_ID.fullmatch(one)]
        found = {row["id"]: _to_hit(row, 0.0) for row in self._shelf.passages.find(_PASSAGE, sound)}
        return [found[one] for one in sound if one in found]

    def _search(self, limit: int, collection: str, score: str, **asked: Any) -> list[dict[str, Any]]:
        with explain_faults(self._folder):
            found = self._shelf.passages.search({**_PASSAGE, score: score}, limit, collection, **asked)
        return found

    def _indexer(self, on_progress: OnProgress, cancel: Cancel | None) -> Indexer:
        return Indexer(self._shelf, self._embedder, self._tokenize, self._read, on_progress, cancel or Cancel())


def _to_passage(row: dict[str, Any]) -> Passage:
    return Passage(
        id=row["id"],
        text=row["text"],
        source=row["name"],
        document_id=row["document_id"],
        page=int(row["page"]) if row["page"] else None,
        ordinal=row["ordinal"],
        section=row.get("section") or "",
    )


def _to_hit(row: dict[str, Any], score: float) -> Hit:
    import numpy as np

    return Hit(_to_passage(row), np.asarray(row["vector"], dtype=np.float32), float(score))

"""The passage store: files in, passages out, over one SQLite file."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from copy import copy
from functools import lru_cache, partial
from pathlib import Path
from sqlite3 import Connection

from crag_core.base.concurrency import sqlite_file
from crag_core.base.documents import (
    MAIN,
    Document,
    IndexVersion,
    Ingested,
    OnProgress,
    Progress,
    Rebuilt,
    Recipe,
    State,
)
from crag_core.base.errors import DocumentMissing, StoreUnavailable
from crag_core.base.protocols import Cancel, Embedder
from crag_core.base.types.passages import Passage
from crag_core.retrieval.chunking.join import Surroundings, join_pieces, surround
from crag_core.retrieval.chunking.split import Chunks, cut_document
from crag_core.retrieval.chunking.text_splitter import Cut
from crag_core.retrieval.index import earlier_index
from crag_core.retrieval.index.index_file import IndexFile, generation
from crag_core.retrieval.index.index_writer import (
    EARLIER,
    IndexVersionChanged,
    IndexWriter,
    name_content,
    now,
    rows_where,
)
from crag_core.retrieval.index.ingest import Indexer, Preparer, Read, rebuild
from crag_core.retrieval.index.search import Hit, Searcher
from crag_core.retrieval.readers import read_document
from crag_core.retrieval.upload import Given

FindEmbedder = Callable[[str], Embedder]
"""By name; may load nothing before the embedder is used."""


def _read_here(content: bytes, name: str, cut: Cut, cancel: Cancel) -> Chunks:
    return cut_document(read_document(content, name), name, cut, cancel)


def _by_name(row: Document) -> tuple[str, str]:
    return row.name.casefold(), row.changed_at


def no_progress(progress: Progress) -> None:
    pass


class PassageStore:
    """All methods raise `StoreUnavailable`; safe to use from several threads and processes.

    Constructing it touches no disk. An index is searched with the embedding model that it was made with, whatever the
    settings say, until `rebuild` has re-indexed it.
    """

    def __init__(
        self,
        folder: Path | str,
        embedder: Embedder,
        read: Read = _read_here,
        *,
        recipe: Recipe | None = None,
        find_embedder: FindEmbedder | None = None,
    ) -> None:
        """`embedder` and `recipe` are for an index that holds nothing yet.

        `read` reads and splits a file, by default in this process. `find_embedder` gives the embedders of other models,
        for an index that was made by one.
        """
        self._embedder = embedder
        self._find_embedder = find_embedder
        self._read = read
        self._file = IndexFile(Path(folder))
        self._earlier = Path(folder) / "index"
        self._writer = IndexWriter(self._file, recipe or Recipe(embedder.name))
        self._pinned: IndexVersion | None = None
        self._searcher = lru_cache(maxsize=1)(Searcher)
        self._listed: list[tuple[int, tuple[Document, ...]]] = []

    @property
    def place(self) -> str:
        return str(self._file.folder)

    @property
    def index_version(self) -> IndexVersion:
        """The one that is searched, with the recipe that its passages were made by."""
        if self._pinned is not None:
            return self._pinned
        with self._file.reading() as database:
            return self._writer.current(database)

    @property
    def embedder(self) -> Embedder:
        return self._embedder_of(self.index_version)

    def pinned(self) -> PassageStore:
        """The same store, which raises `IndexVersionChanged` at a search once another version replaced the present."""
        other = copy(self)
        other._pinned = self.index_version
        return other

    def ingest(
        self,
        documents: Iterable[Given],
        on_progress: OnProgress = no_progress,
        *,
        collection: str = MAIN,
        cancel: Cancel | None = None,
    ) -> tuple[Ingested, ...]:
        """Index files, and those in folders; one outcome each, in order. A refused file never stops the others.

        All files are kept before the first is read, so `finish_interrupted` can index what a kill left. A document is
        whole or absent, but for a long one that is being embedded: its first passages are searched meanwhile, and its
        row says so. A new version takes the place of the old one in one step. The same content under a second name is
        already indexed under the first. Once `cancel` is set, or `on_progress` raises `Stopped`, the current document
        and those after it are left out. Raises `EmbeddingUnavailable` too, and leaves them out likewise.
        """
        return self._indexer(on_progress, cancel).ingest(documents, collection)

    def finish_interrupted(
        self, on_progress: OnProgress = no_progress, cancel: Cancel | None = None
    ) -> tuple[Ingested, ...]:
        """Index what killed processes had begun to index.

        Safe while others index: the work of a living process is left to it.
        """
        return self._indexer(on_progress, cancel).finish() if self._writer.lost() else ()

    def rebuild(self, recipe: Recipe, on_progress: OnProgress = no_progress, cancel: Cancel | None = None) -> Rebuilt:
        """Re-index all documents by another recipe, beside the present passages, which are searched until that is done.

        Documents may be added and removed meanwhile. Once `cancel` is set, or after an error, the present ones stay
        and the new ones are dropped; after a kill the next `take_over` or `rebuild` drops them. Raises `Stopped` and
        `EmbeddingUnavailable` too.
        """
        return rebuild(recipe, self._writer, partial(self._preparer, cancel or Cancel()), on_progress)

    def take_over(self, on_progress: OnProgress = no_progress, cancel: Cancel | None = None) -> tuple[Ingested, ...]:
        """Read the documents of an index of an earlier release once more, from the files that it kept, and drop what a
        killed process was re-indexing; nothing to do without either.

        Their files are kept in this index first; what is stopped or killed is continued by the next call. The earlier
        index is deleted afterwards, but for the files of documents that cannot be read any more.
        """
        self._file.upgrade()
        self._writer.drop_lost_version()
        self._register_earlier()
        if not earlier_index.is_there(self._earlier) and not self._waiting_earlier():
            return ()
        outcomes = self._indexer(on_progress, cancel).finish(EARLIER)
        if not self._waiting_earlier():
            refused = {row.id for row in self.listing() if row.state == State.REFUSED}
            with suppress(FileNotFoundError):  # another process was faster
                earlier_index.remove(self._earlier, refused)
        return outcomes

    def _register_earlier(self) -> None:
        if not earlier_index.is_there(self._earlier) or not self._writer.is_earlier_due():
            return
        there = {row.id for row in self.listing()}
        for one in earlier_index.documents(self._earlier):
            content = one.path.read_bytes()
            if one.id not in there and name_content(content) == one.id:
                row = Document(one.id, one.name, one.collection, size=len(content), owner=EARLIER, changed_at=now())
                self._writer.register([(row, content)])
        self._writer.end_earlier()

    def _waiting_earlier(self) -> bool:
        return any(row.owner == EARLIER for row in self.listing())

    def copy_to(self, file: Path) -> None:
        """The whole file, with all that is committed now; others may write meanwhile. Nothing where there is none."""
        self._register_earlier()
        with self._file.explained("copied"):
            sqlite_file.copy(self._file.path, file)
            if file.exists():
                with closing(sqlite3.connect(file)) as made:  # whoever restores it fills a vector store again
                    made.execute("DROP TABLE IF EXISTS placed")

    def documents(self) -> tuple[Document, ...]:
        return tuple(document for document in self.listing() if document.is_whole)

    def listing(self) -> tuple[Document, ...]:
        """Every document, also those that wait, are being indexed, or were refused, by name."""
        with self._file.reading() as database:
            now = generation(database)
            if not self._listed or self._listed[0][0] != now:
                self._listed[:] = [(now, tuple(sorted(rows_where(database), key=_by_name)))]
            return self._listed[0][1]

    def delete_all(self, document_ids: Iterable[str]) -> set[str]:
        """Those that were there, waiting and refused ones too."""
        ids = {*document_ids} & {row.id for row in self.listing()}
        return self._writer.remove(ids) if ids else set()

    def move(self, document_ids: Iterable[str], collection: str) -> None:
        self._writer.move(document_ids, collection)

    def passages_of(self, document_id: str) -> tuple[Passage, ...]:
        """In reading order; empty for a document that is not there."""
        return tuple(self._writer.passages(document_id))

    def read_document(self, document_id: str) -> str | None:
        """The whole text as it was read from the file, but for white space; None for a document that is not there."""
        return join_pieces(self._writer.pieces(document_id)) or None

    def surround(self, passage: Passage) -> Surroundings | None:
        """The text around a passage in its document; None where it does not stand there, or not any more."""
        return surround(passage, self._writer.pieces(passage.document_id))

    def read_original(self, document_id: str) -> bytes:
        """The file as it was indexed; raises `DocumentMissing` where it is not, or not any more."""
        is_searched = document_id in {row.id for row in self._searched("")}
        content = self._writer.content(document_id) if is_searched else None
        if content is None:
            raise DocumentMissing(
                "This document is not in the index, or not any more in this version.",
                hint="Add it on the Documents page.",
            )
        return content

    def count(self, collection: str = "") -> int:
        return sum(row.passages for row in self._searched(collection))

    def fingerprint(self, collection: str = "") -> str:
        """Changes with the documents of a collection, or of all, and with the recipe; the key for caches."""
        recipe = self.index_version.recipe
        is_usual = recipe == Recipe(recipe.embedding)
        lengths = [] if is_usual else [f"{recipe.tokens} tokens, {recipe.overlap} repeated"]
        searched = self._searched(collection)
        ids = sorted(f"{row.id} {row.passages}" if row.is_partial else row.id for row in searched)
        return hashlib.sha256("\n".join([recipe.embedding, *lengths, *ids]).encode()).hexdigest()[:16]

    def search_dense(self, vector: Sequence[float], limit: int, collection: str = "") -> list[Hit]:
        """Nearest first by exact cosine with every passage; `vector` is by `embedder`."""
        return self._search(lambda searcher, database: searcher.nearest(database, vector, limit, collection))

    def search_keyword(self, text: str, limit: int, collection: str = "") -> list[Hit]:
        """Best first, by BM25. `text` is words, never a query language: quotes and brackets mean nothing."""
        return self._search(lambda searcher, database: searcher.by_words(database, text, limit, collection))

    def _search(self, search: Callable[[Searcher, Connection], list[Hit]]) -> list[Hit]:
        with self._file.reading() as database:
            version = self._writer.current(database)
            if self._pinned is not None and self._pinned.id != version.id:
                raise IndexVersionChanged
            return search(self._searcher(version.id), database) if version.id else []

    def _searched(self, collection: str) -> list[Document]:
        rows = [row for row in self.listing() if row.is_whole or row.is_partial]
        return [row for row in rows if collection in ("", row.collection)]

    def _embedder_of(self, version: IndexVersion) -> Embedder:
        if version.embedding == self._embedder.name:
            return self._embedder
        if self._find_embedder is None:
            raise StoreUnavailable(
                f"The index in {self.place} was built with the embedding model {version.embedding!r}; "
                f"expected {self._embedder.name!r}, and their vectors cannot be compared.",
                hint=f"Choose {version.embedding!r} in the settings, or index the documents again.",
            )
        return self._find_embedder(version.embedding)

    def _preparer(self, cancel: Cancel, version: IndexVersion) -> Preparer:
        return Preparer(version, self._embedder_of(version), self._read, cancel)

    def _indexer(self, on_progress: OnProgress, cancel: Cancel | None) -> Indexer:
        cancel = cancel or Cancel()
        return Indexer(self._writer, lambda: self._preparer(cancel, self.index_version), on_progress, cancel)

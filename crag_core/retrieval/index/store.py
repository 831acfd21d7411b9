"""The passage store: files in, passages out, over any backend."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from copy import copy
from pathlib import Path

from crag_core.base.documents import MAIN, Document, IndexVersion, Ingested, OnProgress, Progress, Rebuilt, Recipe
from crag_core.base.errors import DocumentMissing, StoreUnavailable
from crag_core.base.protocols import Cancel, Embedder
from crag_core.base.types.passages import Passage
from crag_core.retrieval.backends.backend import DOCUMENT_ID, Backend, Hit, Passages
from crag_core.retrieval.backends.disk import FolderBackend
from crag_core.retrieval.chunking.join import Surroundings, join_passages, surround
from crag_core.retrieval.chunking.split import Chunks, Cut, cut_document
from crag_core.retrieval.index.index_writer import IndexWriter
from crag_core.retrieval.index.ingest import Indexer, Preparer, Read, cut_of
from crag_core.retrieval.index.reindex import Rebuilder
from crag_core.retrieval.readers import read_document
from crag_core.retrieval.upload import Given

FindEmbedder = Callable[[str], Embedder]
"""By name; may load nothing before the embedder is used."""


def _read_here(content: bytes, name: str, cut: Cut, cancel: Cancel) -> Chunks:
    return cut_document(read_document(content, name), name, cut, cancel)


def _by_name(row: Document) -> tuple[str, str]:
    return row.name.casefold(), row.changed_at


def _ignore(progress: Progress) -> None:
    pass


class PassageStore:
    """All methods raise `StoreUnavailable`; safe to use from several threads and processes.

    Constructing it touches no disk. An index is searched with the embedding model that it was made with, whatever the
    settings say, until `rebuild` has re-indexed it.
    """

    def __init__(
        self,
        place: Path | str | Backend,
        embedder: Embedder,
        read: Read = _read_here,
        *,
        recipe: Recipe | None = None,
        find_embedder: FindEmbedder | None = None,
    ) -> None:
        """`place` is a folder or a backend. `embedder` and `recipe` are for an index that holds nothing yet.

        `read` reads and splits a file, by default in this process. `find_embedder` gives the embedders of other models,
        for an index that was made by one.
        """
        self._embedder = embedder
        self._find_embedder = find_embedder
        self._read = read
        backend = FolderBackend(Path(place)) if isinstance(place, Path | str) else place
        self._index_writer = IndexWriter(backend, recipe or Recipe(embedder.name))
        self._pinned: IndexVersion | None = None

    @property
    def place(self) -> str:
        """For people, without secrets."""
        return self._index_writer.backend.place

    @property
    def remark(self) -> str:
        """What people should know of how the index is; "": all is well."""
        return self._index_writer.remark

    @property
    def index_version(self) -> IndexVersion:
        """The one that is searched, with the recipe that its passages were made by."""
        return self._pinned or self._index_writer.versions.current()

    @property
    def embedder(self) -> Embedder:
        """That of the passages that are searched: no other's vectors can be compared with theirs."""
        return self._embedder_of(self.index_version)

    def pinned(self) -> PassageStore:
        """The same store, which searches the present version even if another replaces it (for some minutes)."""
        other = copy(self)
        other._pinned = self.index_version
        return other

    def ingest(
        self,
        documents: Iterable[Given],
        on_progress: OnProgress = _ignore,
        *,
        collection: str = MAIN,
        cancel: Cancel | None = None,
    ) -> tuple[Ingested, ...]:
        """Index files, and those in ZIP archives; one outcome each, in order. A refused file never stops the others.

        After these come earlier documents that had to be set aside. All files are kept before the first is read, so
        `finish_interrupted` can index what a kill left. A document is whole or absent, but for a long one that is being
        embedded: its first passages are searched meanwhile, and its row says so. A new version is added before the old
        one is removed. The same content under a second name is
        already indexed under the first. Once `cancel` is set, or `on_progress` raises `Stopped`, the current document
        and those after it are left out. Raises `EmbeddingUnavailable` too, and leaves them out likewise.
        """
        return self._indexer(on_progress, cancel).ingest(documents, collection)

    def finish_interrupted(
        self, on_progress: OnProgress = _ignore, cancel: Cancel | None = None
    ) -> tuple[Ingested, ...]:
        """Index what killed processes had begun to index, and remove what they were removing.

        Safe while others index: the work of a living process is left to it.
        """
        return self._indexer(on_progress, cancel).finish() if self._index_writer.rows() else ()

    def interrupted(self) -> tuple[Document, ...]:
        """What killed processes had begun to index, by name, after what takes no reading was finished or taken back.

        It waits for `finish_interrupted` or `discard_interrupted`. Parts of a document that were searched are gone.
        """
        return tuple(sorted(self._index_writer.recover(), key=_by_name))

    def discard_interrupted(self) -> tuple[Document, ...]:
        """Forget what killed processes had begun to index, with the copies of the files; what is forgotten."""
        return tuple(self._index_writer.discard())

    def rebuild(self, recipe: Recipe, on_progress: OnProgress = _ignore, cancel: Cancel | None = None) -> Rebuilt:
        """Re-index all documents by another recipe, beside the present index, which is searched until that is done.

        Documents may be added and removed meanwhile. Once `cancel` is set, or after an error, the present index stays
        and the new one is dropped; after a kill `finish_rebuild` continues. Raises `Stopped` and
        `EmbeddingUnavailable` too.
        """
        return self._rebuilder(on_progress, cancel).rebuild(recipe)

    def finish_rebuild(self, on_progress: OnProgress = _ignore, cancel: Cancel | None = None) -> Rebuilt | None:
        """Continue the re-indexing that a killed process had begun; None: there is none."""
        return self._rebuilder(on_progress, cancel).go_on()

    def interrupted_rebuild(self) -> Recipe | None:
        """What a killed process was re-indexing by; None: there is nothing to continue."""
        return self._rebuilder(_ignore, None).interrupted()

    def discard_rebuild(self) -> None:
        """Drop what a killed process had re-indexed, if anything; the present index stays."""
        self._rebuilder(_ignore, None).discard()

    def at_rest(self) -> AbstractContextManager[None]:
        """Nobody writes to the index inside, of this process or another; they wait."""
        return self._index_writer.backend.lock()

    def is_untouched(self) -> bool:
        """Whether nothing was ever put in, not even something that was removed since."""
        return self._index_writer.is_untouched()

    def documents(self) -> tuple[Document, ...]:
        """The indexed ones, by name."""
        return tuple(document for document in self.listing() if document.is_whole)

    def listing(self) -> tuple[Document, ...]:
        """Every document, also those that wait, are being indexed, or were refused, by name."""
        return tuple(sorted(self._index_writer.rows(), key=_by_name))

    def delete_all(self, document_ids: Iterable[str]) -> set[str]:
        """Those that were there, waiting and refused ones too.

        Their files are deleted at once, their passages leave the disk with a later write.
        """
        ids = {*document_ids} & {row.id for row in self._index_writer.rows()}
        if not ids:
            return set()
        removed = self._index_writer.remove(ids)
        self._index_writer.try_tidy()
        return removed

    def move(self, document_ids: Iterable[str], collection: str) -> None:
        """Put indexed documents into another collection."""
        self._index_writer.move([*document_ids], collection)

    def passages_of(self, document_id: str) -> tuple[Passage, ...]:
        """In reading order; empty for a document that is not there."""
        if not DOCUMENT_ID.fullmatch(document_id):
            return ()
        return tuple(self._passages().of(document_id))

    def read_document(self, document_id: str) -> str | None:
        """The whole text as it was read from the file, but for white space; None for a document that is not there."""
        passages = self.passages_of(document_id)
        return join_passages(passages, cut_of(self.index_version, self.embedder)) if passages else None

    def surround(self, passage: Passage) -> Surroundings | None:
        """The text around a passage in its document; None where it does not stand there, or not any more."""
        return surround(passage, self.passages_of(passage.document_id), cut_of(self.index_version, self.embedder))

    def read_original(self, document_id: str) -> bytes:
        """The file as it was indexed; raises `DocumentMissing` where it is not, or not any more, or was never kept."""
        rows = {row.id: row for row in self._index_writer.rows()}
        if document_id not in rows or not (rows[document_id].is_whole or rows[document_id].is_partial):
            raise DocumentMissing(
                "This document is not in the index, or not any more in this version.",
                hint="Add it on the Documents page.",
            )
        return self._index_writer.originals.read(document_id)

    def count(self, collection: str = "") -> int:
        """Passages that are searched, of all documents or of those of a collection."""
        return sum(row.passages for row in self._searched(collection))

    def fingerprint(self, collection: str = "") -> str:
        """Changes with the documents of a collection, or of all, and with the recipe; the key for caches."""
        recipe = self.index_version.recipe
        is_usual = recipe == Recipe(recipe.embedding)
        lengths = [] if is_usual else [f"{recipe.tokens} tokens, {recipe.overlap} repeated"]
        searched = self._searched(collection)
        ids = sorted(f"{row.id} {row.passages}" if row.is_partial else row.id for row in searched)
        return hashlib.sha256("\n".join([recipe.embedding, *lengths, *ids]).encode()).hexdigest()[:16]

    def coverage(self) -> tuple[int, int]:
        """(passages that are searched, those of them in the approximate index)."""
        return self._passages().coverage()

    def search_dense(self, vector: Sequence[float], limit: int, collection: str = "") -> list[Hit]:
        """Nearest first by cosine; `vector` is by `embedder`.

        Exact for a small index; in a large one approximate, with the recall that `index_version` states.
        """
        return self._passages().search_dense(vector, limit, collection)

    def search_keyword(self, text: str, limit: int, collection: str = "") -> list[Hit]:
        """Best first. `text` is words, never a query language: quotes and brackets mean nothing."""
        return self._passages().search_keyword(text, limit, collection)

    def _searched(self, collection: str) -> list[Document]:
        rows = [row for row in self._index_writer.rows() if row.is_whole or row.is_partial]
        return [row for row in rows if collection in ("", row.collection)]

    def _passages(self) -> Passages:
        return self._index_writer.passages(self._pinned)

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

    def _preparer(self, version: IndexVersion, cancel: Cancel) -> Preparer:
        return Preparer(version, self._embedder_of(version), self._read, cancel)

    def _indexer(self, on_progress: OnProgress, cancel: Cancel | None) -> Indexer:
        cancel = cancel or Cancel()
        current = self._index_writer.versions.current
        return Indexer(self._index_writer, lambda: self._preparer(current(), cancel), on_progress, cancel)

    def _rebuilder(self, on_progress: OnProgress, cancel: Cancel | None) -> Rebuilder:
        cancel = cancel or Cancel()
        return Rebuilder(self._index_writer, lambda version: self._preparer(version, cancel), on_progress)

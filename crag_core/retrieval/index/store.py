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
from crag_core.base.types import Passage
from crag_core.retrieval.backends.backend import Backend, Passages
from crag_core.retrieval.backends.disk.backend import FolderBackend
from crag_core.retrieval.chunking.join import join_passages
from crag_core.retrieval.chunking.split import Chunks, Cut, cut_document
from crag_core.retrieval.hits import DOCUMENT_ID, PASSAGE_ID, Hit
from crag_core.retrieval.index.context_text import Surroundings, surround
from crag_core.retrieval.index.embed_documents import Preparer, Read, cut_of
from crag_core.retrieval.index.index_writer import IndexWriter
from crag_core.retrieval.index.ingest import Indexer
from crag_core.retrieval.index.reindex import Rebuilder
from crag_core.retrieval.readers import read_document
from crag_core.retrieval.upload.zip_archives import Given

FindEmbedder = Callable[[str], Embedder]
"""By name; may load nothing before the embedder is used."""


def _read_here(content: bytes, name: str, cut: Cut, cancel: Cancel) -> Chunks:
    return cut_document(read_document(content, name), name, cut, cancel)


def _tell_nobody(progress: Progress) -> None:
    pass


class PassageStore:
    """All methods raise `StoreUnavailable`; safe to use from several threads and processes.

    Constructing it touches no disk. An index is searched with the embedding model that it was made with, whatever the
    settings say, until `rebuild` made it anew. `read` takes a file apart; the default does so in this very process.
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

        `find_embedder` gives those of other models, for an index that was made by one.
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
    def generation(self) -> IndexVersion:
        """By which recipe the passages were made that are searched."""
        return self._pinned or self._index_writer.generations.current()

    @property
    def embedder(self) -> Embedder:
        """That of the passages that are searched: no other's vectors can be compared with theirs."""
        return self._embedder_of(self.generation)

    def pinned(self) -> PassageStore:
        """The same store, which searches the present generation even if another takes its place (for minutes)."""
        other = copy(self)
        other._pinned = self.generation
        return other

    def ingest(
        self,
        documents: Iterable[Given],
        on_progress: OnProgress = _tell_nobody,
        *,
        collection: str = MAIN,
        cancel: Cancel | None = None,
    ) -> tuple[Ingested, ...]:
        """Index files, and those in ZIP archives; one outcome each, in order. A refused file never stops the others.
        After these come the documents of before that had to be set aside.

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
        return self._indexer(on_progress, cancel).finish() if self._index_writer.rows() else ()

    def rebuild(self, recipe: Recipe, on_progress: OnProgress = _tell_nobody, cancel: Cancel | None = None) -> Rebuilt:
        """Make all passages anew by another recipe, beside the present ones, which are searched until all are there.

        Documents may come and go meanwhile. Once `cancel` is set, or after an error, the present ones stay and the new
        ones go; what a kill interrupts `finish_rebuild` finishes. Raises `Stopped` and `EmbeddingUnavailable` too.
        """
        return self._rebuilder(on_progress, cancel).rebuild(recipe)

    def finish_rebuild(self, on_progress: OnProgress = _tell_nobody, cancel: Cancel | None = None) -> Rebuilt | None:
        """Go on with what a process that was killed had begun to make anew; None: there is nothing of that kind."""
        return self._rebuilder(on_progress, cancel).go_on()

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
        return tuple(sorted(self._index_writer.rows(), key=lambda row: (row.name.casefold(), row.changed_at)))

    def delete(self, document_id: str) -> bool:
        """True when it was there. The file kept of it goes at once, its passages leave the disk with a later write."""
        return bool(self.delete_all([document_id]))

    def delete_all(self, document_ids: Iterable[str]) -> set[str]:
        """Those that were there, waiting and refused ones too."""
        ids = [one for one in document_ids if DOCUMENT_ID.fullmatch(one)]
        if not {row.id for row in self._index_writer.rows()} & {*ids}:
            return set()
        gone = self._index_writer.remove(ids)
        self._index_writer.try_tidy()
        return gone

    def move(self, document_ids: Iterable[str], collection: str) -> None:
        """Put indexed documents into another collection."""
        self._index_writer.move([one for one in document_ids if DOCUMENT_ID.fullmatch(one)], collection)

    def passages_of(self, document_id: str) -> tuple[Passage, ...]:
        """In reading order; empty for a document that is not there."""
        if not DOCUMENT_ID.fullmatch(document_id):
            return ()
        return tuple(self._passages().of(document_id))

    def read_document(self, document_id: str) -> str | None:
        """The whole text as it was read from the file, but for white space; None for a document that is not there."""
        passages = self.passages_of(document_id)
        return join_passages(passages, cut_of(self.generation, self.embedder)) if passages else None

    def surround(self, passage: Passage) -> Surroundings | None:
        """What stands beside a passage in its document; None where it does not stand there, or not any more."""
        return surround(passage, self.passages_of(passage.document_id), cut_of(self.generation, self.embedder))

    def read_original(self, document_id: str) -> bytes:
        """The file as it was indexed; raises `DocumentMissing` where it is not, or not any more, or was never kept."""
        if document_id not in self._index_writer.whole():
            raise DocumentMissing(
                "This document is not in the index, or not any more in this version.",
                hint="Add it on the Documents page.",
            )
        return self._index_writer.originals.read(document_id)

    def count(self, collection: str = "") -> int:
        """Passages of all documents, or of those of a collection."""
        return sum(row.passages for row in self._index_writer.whole().values() if collection in ("", row.collection))

    def fingerprint(self, collection: str = "") -> str:
        """Changes whenever a document comes to a collection, or to any, or goes, and with how passages are made.

        The key for caches.
        """
        made = self.generation.recipe
        lengths = [] if made == Recipe(made.embedding) else [f"{made.tokens} tokens, {made.overlap} repeated"]
        ids = sorted(row.id for row in self._index_writer.whole().values() if collection in ("", row.collection))
        return hashlib.sha256("\n".join([made.embedding, *lengths, *ids]).encode()).hexdigest()[:16]

    def coverage(self) -> tuple[int, int]:
        """(passages that are searched, those of them in the approximate index)."""
        return self._passages().coverage()

    def search_dense(self, vector: Sequence[float], limit: int, collection: str = "") -> list[Hit]:
        """Nearest first by cosine; `vector` is by `embedder`.

        Exact for a small index; in a large one approximate, with the recall that `generation` tells.
        """
        return self._passages().search_dense(vector, limit, collection)

    def search_keyword(self, text: str, limit: int, collection: str = "") -> list[Hit]:
        """Best first. `text` is words, never a query language: quotes and brackets mean nothing."""
        return self._passages().search_keyword(text, limit, collection)

    def sample(self, limit: int, collection: str = "") -> list[Hit]:
        """At most `limit` passages with their vectors, evenly taken from a collection or from all; score 0."""
        return self._passages().sample(limit, collection) if self.count(collection) else []

    def find_passages(self, passage_ids: Sequence[str]) -> list[Hit]:
        """Those that are indexed, in the order asked for; score 0."""
        sound = [one for one in passage_ids if PASSAGE_ID.fullmatch(one)]
        found = {hit.passage.id: hit for hit in self._passages().find(sound)}
        return [found[one] for one in sound if one in found]

    def _passages(self) -> Passages:
        return self._index_writer.passages(self._pinned)

    def _embedder_of(self, generation: IndexVersion) -> Embedder:
        if generation.embedding == self._embedder.name:
            return self._embedder
        if self._find_embedder is None:
            raise StoreUnavailable(
                f"The index in {self.place} was built with the embedding model {generation.embedding!r}; "
                f"expected {self._embedder.name!r}, and their vectors cannot be compared.",
                hint=f"Choose {generation.embedding!r} in the settings, or index the documents again.",
            )
        return self._find_embedder(generation.embedding)

    def _preparer(self, generation: IndexVersion, cancel: Cancel) -> Preparer:
        return Preparer(generation, self._embedder_of(generation), self._read, cancel)

    def _indexer(self, on_progress: OnProgress, cancel: Cancel | None) -> Indexer:
        cancel = cancel or Cancel()
        now_current = self._index_writer.generations.current
        return Indexer(self._index_writer, lambda: self._preparer(now_current(), cancel), on_progress, cancel)

    def _rebuilder(self, on_progress: OnProgress, cancel: Cancel | None) -> Rebuilder:
        cancel = cancel or Cancel()
        return Rebuilder(self._index_writer, lambda generation: self._preparer(generation, cancel), on_progress)

"""Files into the table: read, split, embed, then written in one commit a document."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from crag_core.errors import DocumentRefused, StoreUnavailable
from crag_core.llama_import import import_llama_index
from crag_core.protocols import Embedder
from crag_core.retrieval.chunking import Source, Tokenize, split_pages
from crag_core.retrieval.originals import Originals, name_content
from crag_core.retrieval.readers import Page, load_content, read_document
from crag_core.retrieval.reports import Ingested, IngestOutcome, OnProgress, Progress
from crag_core.retrieval.table import PassageTable, explain_faults

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode

_EMBEDDED_AT_ONCE = 32
_TIDIED_AFTER = 50
_log = logging.getLogger(__name__)


class Indexer:
    """Writes documents into one table; see `PassageStore.ingest` for what it promises."""

    def __init__(
        self, table: PassageTable, originals: Originals, embedder: Embedder, tokenize: Tokenize | None
    ) -> None:
        self._table = table
        self._originals = originals
        self._embedder = embedder
        self._tokenize = tokenize

    def ingest(self, documents: Iterable[tuple[str, bytes | Path]], report: OnProgress) -> tuple[Ingested, ...]:
        files = list(documents)
        with explain_faults(self._table.folder):
            self._table.open()
        done: list[Ingested] = []
        for position, (name, content) in enumerate(files, 1):
            if done and not len(done) % _TIDIED_AFTER:
                self._tidy()  # each document is a small file of its own, and all of them are looked through for names
            progress = Progress(name, position, len(files))
            report(progress)
            try:
                done.append(self._ingest_one(name, load_content(content, name), progress, report))
            except DocumentRefused as refusal:
                done.append(Ingested(name, IngestOutcome.REFUSED, message=refusal.message, hint=refusal.hint))
        if any(one.outcome in (IngestOutcome.INDEXED, IngestOutcome.REPLACED) for one in done):
            self._tidy()
        return tuple(done)

    def _ingest_one(self, name: str, content: bytes, progress: Progress, report: OnProgress) -> Ingested:
        document_id = name_content(content)
        # Asked first without the lock: re-adding a folder of files should not embed any of them.
        if document_id not in self._table.names():
            pages = read_document(content, name)
            nodes = self._embed(
                split_pages(pages, _describe(document_id, name, pages), self._tokenize), progress, report
            )
        else:
            nodes = []
        with self._table.lock():
            return self._write(document_id, name, content, nodes)

    def _embed(self, nodes: list[TextNode], progress: Progress, report: OnProgress) -> list[TextNode]:
        for start in range(0, len(nodes), _EMBEDDED_AT_ONCE):
            report(Progress(progress.name, progress.position, progress.total, start, len(nodes)))
            batch = nodes[start : start + _EMBEDDED_AT_ONCE]
            vectors = self._embedder.embed_texts([node.text for node in batch])
            for node, vector in zip(batch, vectors, strict=True):
                node.embedding = list(vector)
        report(Progress(progress.name, progress.position, progress.total, len(nodes), len(nodes)))
        return nodes

    def _write(self, document_id: str, name: str, content: bytes, nodes: list[TextNode]) -> Ingested:
        names = self._table.names()
        older = [id_ for id_, other in names.items() if other == name and id_ != document_id]
        added = document_id not in names
        if added and not nodes:
            raise DocumentRefused(f"{name}: was deleted from the index while it was added.", hint="Add it again.")
        # Before the passages: a kill between the two leaves a file too many, never a document without its own.
        self._originals.keep(document_id, content)
        if added:
            import_llama_index()
            from llama_index.vector_stores.lancedb import LanceDBVectorStore

            table = self._table.create(len(nodes[0].get_embedding()))
            LanceDBVectorStore.from_table(table).add([*nodes])
        for id_ in older:
            self._table.delete(id_)
            self._originals.drop(id_)
        if added:
            outcome = IngestOutcome.REPLACED if older else IngestOutcome.INDEXED
            return Ingested(name, outcome, document_id, len(nodes), f"{name}: {len(nodes)} passages, {outcome}.")
        where = "" if names[document_id] == name else f" as {names[document_id]!r}"
        gone = "; its older version was removed" if older else ""
        message = f"{name}: already indexed{where}{gone}."
        return Ingested(name, IngestOutcome.ALREADY, document_id, self._table.count(document_id), message)

    def _tidy(self) -> None:
        # The documents are in already: an untidy index finds them too, only more slowly.
        try:
            with self._table.lock():
                self._table.tidy()
                self._originals.tidy(self._table.names())
        except StoreUnavailable as fault:
            _log.warning("the index could not be tidied: %s", fault)


def _describe(document_id: str, name: str, pages: Sequence[Page]) -> Source:
    numbers = [page.number for page in pages if page.number is not None]
    characters = sum(len(page.text) for page in pages)
    return Source(document_id, name, max(numbers, default=0), characters, datetime.now(UTC).isoformat())

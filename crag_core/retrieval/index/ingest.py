"""Ingests files: store, read, chunk, embed and write, several documents at a time."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from crag_core.base.concurrency.shutdown import is_ending
from crag_core.base.documents import Document, Ingested, IngestOutcome, OnProgress, Progress, State
from crag_core.base.errors import DocumentMissing, DocumentRefused, Stopped, StoreUnavailable, WriteLost
from crag_core.base.protocols import Cancel
from crag_core.retrieval.backends.worker_lease import LEASE, name_self
from crag_core.retrieval.hits import name_content, now
from crag_core.retrieval.index.ann_index import Approximation
from crag_core.retrieval.index.embed_documents import Preparer
from crag_core.retrieval.index.index_writer import IndexVersionChanged, IndexWriter, Written
from crag_core.retrieval.readers import load_content
from crag_core.retrieval.upload.files import each_file
from crag_core.retrieval.upload.zip_archives import Given

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode

_KEPT_AT_ONCE = 32 * 2**20  # bytes
WRITTEN_AT_ONCE = 512  # passages
_WRITTEN_AFTER = 2.0  # seconds
_TIDIED_AFTER = 20  # writes, each of which adds small files
SAID_EVERY = LEASE.total_seconds() / 30
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Ready:
    """A document that only has to be written. `position` is its place among the files that were given.

    `given` is its row before it was read.
    """

    position: int
    given: Document
    row: Document
    nodes: list[TextNode]


class Indexer:
    """Brings one set of files in; see `PassageStore.ingest` for what it promises."""

    def __init__(
        self, index_writer: IndexWriter, preparer: Callable[[], Preparer], on_progress: OnProgress, cancel: Cancel
    ) -> None:
        """`preparer` gives one for the generation that is current now."""
        self._index_writer = index_writer
        self._new_preparer = preparer
        self._on_progress = on_progress
        self._cancel = cancel
        self._owner = f"{name_self()}/{uuid4().hex[:8]}"
        self._outcomes: dict[int, Ingested] = {}
        self._ready: list[_Ready] = []
        self._first_ready_at = 0.0
        self._said_at = -math.inf
        self._writes = 0
        self._total = 0
        self._preparer: Preparer | None = None
        # Looked up once for each write: for each of thousands of documents it would take longer than they do.
        self._whole: set[str] | None = None

    def ingest(self, documents: Iterable[Given], collection: str) -> tuple[Ingested, ...]:
        rows: dict[int, Document] = {}
        try:
            self._register(documents, collection, rows)
            self._bring_in(rows)
        except Stopped:
            self._end_early(rows)
        except Exception:  # the model or the disk is away: what is whole goes in all the same
            self._end_early(rows)
            raise
        return self._describe()

    def finish(self) -> tuple[Ingested, ...]:
        """Bring in what processes that are gone had begun."""
        rows = dict(enumerate(self._index_writer.claim(self._owner), 1))
        try:
            self._bring_in(rows)
        except Stopped:
            self._end_early(rows)
        return self._describe()

    def _register(self, files: Iterable[Given], collection: str, rows: dict[int, Document]) -> None:
        """Keep every file and note that it waits, so that a kill forgets none of them; `rows` by position, from 1."""
        kept: list[tuple[Document, bytes]] = []
        for position, (name, given) in enumerate(each_file(files), 1):
            self._look()
            try:
                if isinstance(given, DocumentRefused):
                    raise given
                content = load_content(given, name)
            except DocumentRefused as refusal:
                self._refuse(position, name, refusal)
                continue
            row = Document(
                name_content(content), name, collection, size=len(content), owner=self._owner, changed_at=now()
            )
            rows[position] = row
            kept.append((row, content))
            if sum(len(content) for _, content in kept) > _KEPT_AT_ONCE:
                self._index_writer.register(kept)
                kept = []
        self._index_writer.register(kept)

    def _bring_in(self, rows: dict[int, Document]) -> None:
        self._total = max(rows, default=0)
        for position, row in rows.items():
            self._prepare(position, row)
            self._write_if_due()
        self._write()
        if any(one.outcome in (IngestOutcome.INDEXED, IngestOutcome.REPLACED) for one in self._outcomes.values()):
            self._tidy()
            Approximation(self._index_writer).try_refresh()

    def _prepare(self, position: int, given: Document) -> None:
        """Read, split and embed one document, unless it is there; asked without the lock, since that takes long."""
        progress = Progress(given.name, position, self._total)
        self._tell(progress)
        row = given
        nodes: list[TextNode] = []
        if self._whole is None:
            self._whole = {*self._index_writer.whole()}
        if row.id not in self._whole and all(one.row.id != row.id for one in self._ready):
            self._say(row)

            def tell(embedded: int, passages: int) -> None:
                self._tell(replace(progress, embedded=embedded, passages=passages))
                self._say(given)

            self._preparer = self._preparer or self._new_preparer()
            try:
                row, nodes = self._preparer.prepare(row, self._index_writer.originals.read(row.id), tell)
            except DocumentMissing:
                pass  # somebody removed it
            except DocumentRefused as refusal:
                self._refuse(position, row.name, refusal)
                self._index_writer.note(
                    replace(row, state=State.REFUSED, owner="", message=refusal.message, hint=refusal.hint)
                )
                return
        if not self._ready:
            self._first_ready_at = time.monotonic()
        self._ready.append(_Ready(position, given, row, nodes))

    def _say(self, row: Document) -> None:
        """Now and then, since it costs a commit: that this process is alive, and which document it is at."""
        if time.monotonic() - self._said_at > SAID_EVERY:
            self._index_writer.note(replace(row, state=State.INDEXING))
            self._said_at = time.monotonic()

    def _write_if_due(self) -> None:
        passages = sum(len(one.nodes) for one in self._ready)
        if passages >= WRITTEN_AT_ONCE or (self._ready and time.monotonic() - self._first_ready_at > _WRITTEN_AFTER):
            self._write()
            self._writes += 1
            if not self._writes % _TIDIED_AFTER:
                self._tidy()

    def _tidy(self) -> None:
        for gone in self._index_writer.try_tidy():
            self._set_aside(gone)

    def _write(self) -> None:
        while ready := self._ready:
            try:
                self._put()
            except IndexVersionChanged:  # made for passages that were replaced meanwhile: once more, for the new ones
                self._preparer = None
                for one in ready:
                    self._prepare(one.position, one.given)

    def _put(self) -> None:
        ready, self._ready = self._ready, []
        if not ready:
            return
        self._whole = None
        self._preparer = self._preparer or self._new_preparer()
        try:
            written = self._index_writer.write([(one.row, one.nodes) for one in ready], self._preparer.generation)
        except WriteLost:
            self._put_each(ready)
            return
        for one, result in zip(ready, written, strict=True):
            self._outcomes[one.position] = _outcome(one.row.name, result)

    def _put_each(self, ready: Sequence[_Ready]) -> None:
        """Documents that cannot be written together: who cannot be alone either is refused, and no other."""
        if len(ready) > 1:
            for one in ready:
                self._ready = [one]
                self._put()
        else:
            self._outcomes[ready[0].position] = _refused(self._index_writer.set_aside(ready[0].row))

    def _set_aside(self, gone: Document) -> None:
        """One of those that were given, or another, which is told after them."""
        given = (at for at, one in self._outcomes.items() if one.document_id == gone.id)
        self._outcomes[next(given, max(self._total, *self._outcomes) + 1)] = _refused(gone)

    def _tell(self, progress: Progress) -> None:
        self._look()
        self._on_progress(progress)

    def _look(self) -> None:
        if self._cancel.is_set():
            raise Stopped("Stopped by you.")

    def _describe(self) -> tuple[Ingested, ...]:
        return tuple(self._outcomes[position] for position in sorted(self._outcomes))

    def _end_early(self, rows: dict[int, Document]) -> None:
        """Write what is ready, and forget the rest; where the program ends, the next start finishes all of it."""
        if is_ending():
            return
        try:
            with suppress(IndexVersionChanged):
                self._put()
            for position in rows.keys() - self._outcomes.keys():
                name = rows[position].name
                self._outcomes[position] = Ingested(name, IngestOutcome.LEFT_OUT, message=f"{name}: left out, stopped.")
            self._index_writer.withdraw(rows.values())
        except StoreUnavailable as fault:  # the next start finds what waits, and finishes it
            _log.warning("what was not indexed could not be withdrawn: %s", fault)

    def _refuse(self, position: int, name: str, refusal: DocumentRefused) -> None:
        self._outcomes[position] = Ingested(name, IngestOutcome.REFUSED, message=refusal.message, hint=refusal.hint)


def _refused(row: Document) -> Ingested:
    return Ingested(row.name, IngestOutcome.REFUSED, message=row.message, hint=row.hint)


def _outcome(name: str, written: Written) -> Ingested:
    row = written.row
    if row is None:
        message = f"{name}: was removed from the index while it was added."
        return Ingested(name, IngestOutcome.REFUSED, message=message, hint="Add it again.")
    if written.is_new:
        outcome = IngestOutcome.REPLACED if written.has_replaced else IngestOutcome.INDEXED
        return Ingested(name, outcome, row.id, row.passages, f"{name}: {row.passages} chunks, {outcome}.")
    where = "" if row.name == name else f" as {row.name!r}"
    gone = "; its older version was removed" if written.has_replaced else ""
    return Ingested(name, IngestOutcome.ALREADY, row.id, row.passages, f"{name}: already indexed{where}{gone}.")

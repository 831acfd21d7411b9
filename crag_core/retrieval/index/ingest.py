"""Ingests files: store, read, chunk, embed and write, several documents at a time."""

from __future__ import annotations

import logging
import math
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from crag_core.base.concurrency.shutdown import is_ending
from crag_core.base.documents import Document, IndexVersion, Ingested, IngestOutcome, OnProgress, Progress, State
from crag_core.base.errors import DocumentMissing, DocumentRefused, Stopped, StoreUnavailable, WriteLost
from crag_core.base.protocols import Cancel, Embedder
from crag_core.retrieval.backends.backend import name_content, now
from crag_core.retrieval.backends.worker_lease import LEASE, name_work
from crag_core.retrieval.chunking.split import Chunks, Cut, Tokenize, cut_document, make_nodes
from crag_core.retrieval.index import ann_index
from crag_core.retrieval.index.index_writer import IndexVersionChanged, IndexWriter, Written
from crag_core.retrieval.readers import Page, load_content
from crag_core.retrieval.upload import Given, each_file

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode

_STORED_AT_ONCE = 32 * 2**20  # bytes
WRITTEN_AT_ONCE = 512  # passages
_WRITTEN_AFTER = 2.0  # seconds
_TIDIED_AFTER = 20  # writes, each of which adds small files
ALIVE_EVERY = LEASE.total_seconds() / 30
_log = logging.getLogger(__name__)
Read = Callable[[bytes, str, Cut, Cancel], Chunks]
"""(content, name, cut, cancel) to chunks; raises `DocumentRefused`, and `Stopped` once `cancel` is set."""
OnEmbedded = Callable[[int, int], None]
"""Called with the number of passages that have a vector, and of all."""
OnPart = Callable[[Document, "Sequence[TextNode]"], None]
"""Called with the row of a long document and its first passages, which have vectors, before the others do."""

# A stop waits for so many: half a second of the built-in model on two cores.
_EMBEDDED_AT_ONCE = 16
PART = 64
"""Passages after which a document that has more than twice as many is searched in part."""


@dataclass(frozen=True)
class _Ready:
    """A document that only has to be written: its place among the given files, and its row before it was read."""

    position: int
    given: Document
    row: Document
    nodes: list[TextNode]


@dataclass
class _Searched:
    """The part of a document that is searched already; `is_over`: it gets no larger before the document is whole."""

    passages: int = 0
    page: int = 0
    pages: int = 0
    is_over: bool = False


def _no_part(row: Document, nodes: Sequence[TextNode]) -> None:
    pass


class Indexer:
    """Indexes one set of files; see `PassageStore.ingest` for what it promises."""

    def __init__(
        self, index_writer: IndexWriter, preparer: Callable[[], Preparer], on_progress: OnProgress, cancel: Cancel
    ) -> None:
        """`preparer` makes one for the current version."""
        self._index_writer = index_writer
        self._new_preparer = preparer
        self._on_progress = on_progress
        self._cancel = cancel
        self._owner = name_work()
        self._outcomes: dict[int, Ingested] = {}
        self._ready: list[_Ready] = []
        self._first_ready_at = 0.0
        self._alive_at = -math.inf
        self._writes = 0
        self._total = 0
        self._preparer: Preparer | None = None
        # Looked up once for each write: for each of thousands of documents it would take longer than they do.
        self._whole: set[str] | None = None

    def ingest(self, documents: Iterable[Given], collection: str) -> tuple[Ingested, ...]:
        rows: dict[int, Document] = {}
        try:
            self._register(documents, collection, rows)
            self._index(rows)
        except Stopped:
            self._end_early(rows)
        except Exception:  # the model or the disk is away: what is ready is written all the same
            self._end_early(rows)
            raise
        return self._describe()

    def finish(self) -> tuple[Ingested, ...]:
        """Index what processes that are gone had begun."""
        rows = dict(enumerate(self._index_writer.claim(self._owner), 1))
        try:
            self._index(rows)
        except Stopped:
            self._end_early(rows)
        return self._describe()

    def _register(self, files: Iterable[Given], collection: str, rows: dict[int, Document]) -> None:
        """Store every file and note that it waits, so that a kill loses none; `rows` by position, from 1."""
        kept: list[tuple[Document, bytes]] = []
        for position, (name, given) in enumerate(each_file(files), 1):
            self._check_cancel()
            try:
                if isinstance(given, DocumentRefused):
                    raise given
                content = load_content(given, name)
            except DocumentRefused as refusal:
                self._outcomes[position] = _refused(name, refusal)
                continue
            row = Document(
                name_content(content), name, collection, size=len(content), owner=self._owner, changed_at=now()
            )
            rows[position] = row
            kept.append((row, content))
            if sum(len(content) for _, content in kept) > _STORED_AT_ONCE:
                self._index_writer.register(kept)
                kept = []
        self._index_writer.register(kept)

    def _index(self, rows: dict[int, Document]) -> None:
        self._total = max(rows, default=0)
        for position, row in rows.items():
            self._prepare(position, row)
            self._write_if_due()
        self._write()
        if any(one.outcome in (IngestOutcome.INDEXED, IngestOutcome.REPLACED) for one in self._outcomes.values()):
            self._tidy()
            ann_index.try_refresh(self._index_writer)

    def _prepare(self, position: int, given: Document) -> None:
        """Read, split and embed one document, unless it is indexed; outside the lock, since that takes long."""
        progress = Progress(given.name, position, self._total)
        self._report(progress)
        row = given
        nodes: list[TextNode] = []
        if self._whole is None:
            self._whole = {*self._index_writer.whole()}
        if row.id not in self._whole and all(one.row.id != row.id for one in self._ready):
            self._signal_alive(row)

            searched = _Searched()

            def on_embedded(embedded: int, passages: int) -> None:
                now = replace(progress, embedded=embedded, passages=passages, page=searched.page, pages=searched.pages)
                self._report(now)
                self._signal_alive(given)

            def on_part(part: Document, first: Sequence[TextNode]) -> None:
                self._write_part(part, first, searched)

            self._preparer = self._preparer or self._new_preparer()
            try:
                content = self._index_writer.originals.read(row.id)
                row, nodes = self._preparer.prepare(row, content, on_embedded, on_part)
                row = replace(row, passages=searched.passages)
            except DocumentMissing:
                pass  # somebody removed it
            except DocumentRefused as refusal:
                self._outcomes[position] = _refused(row.name, refusal)
                self._index_writer.note(
                    replace(row, state=State.REFUSED, owner="", message=refusal.message, hint=refusal.hint)
                )
                return
        if not self._ready:
            self._first_ready_at = time.monotonic()
        self._ready.append(_Ready(position, given, row, nodes))

    def _write_part(self, row: Document, nodes: Sequence[TextNode], searched: _Searched) -> None:
        """So that its first passages are found before the last have vectors; the next start takes back what a kill
        leaves of them."""
        assert self._preparer
        if searched.is_over:
            return
        begun = replace(row, passages=searched.passages)
        try:
            searched.is_over = not self._index_writer.write_part(begun, nodes, self._preparer.version)
        except WriteLost:  # the whole is tried at the end
            searched.is_over, searched.passages = True, 0
        if not searched.is_over:
            searched.passages, searched.pages = len(nodes), row.pages
            searched.page = int(nodes[-1].metadata["page_label"] or 0)
            self._alive_at = time.monotonic()

    def _signal_alive(self, row: Document) -> None:
        """Now and then, since it costs a commit: that this process is alive, and at work on this document."""
        if time.monotonic() - self._alive_at > ALIVE_EVERY:
            self._index_writer.note(replace(row, state=State.INDEXING))
            self._alive_at = time.monotonic()

    def _write_if_due(self) -> None:
        passages = sum(len(one.nodes) for one in self._ready)
        if passages >= WRITTEN_AT_ONCE or (self._ready and time.monotonic() - self._first_ready_at > _WRITTEN_AFTER):
            self._write()
            self._writes += 1
            if not self._writes % _TIDIED_AFTER:
                self._tidy()

    def _tidy(self) -> None:
        for gone in self._index_writer.try_tidy():
            self._report_refused(gone)

    def _write(self) -> None:
        while ready := self._ready:
            try:
                self._write_ready()
            except (
                IndexVersionChanged
            ):  # prepared for a version that was replaced meanwhile: once more, for the new one
                self._preparer = None
                for one in ready:
                    self._prepare(one.position, one.given)

    def _write_ready(self) -> None:
        ready, self._ready = self._ready, []
        if not ready:
            return
        self._whole = None
        self._preparer = self._preparer or self._new_preparer()
        try:
            written = self._index_writer.write([(one.row, one.nodes) for one in ready], self._preparer.version)
        except WriteLost:
            self._write_each(ready)
            return
        for one, result in zip(ready, written, strict=True):
            self._outcomes[one.position] = _outcome(one.row.name, result)

    def _write_each(self, ready: Sequence[_Ready]) -> None:
        """Documents that cannot be written together: only those that cannot be written alone either are refused."""
        if len(ready) > 1 or ready[0].row.passages:
            for one in ready:
                # The part of it that was there went too.
                self._ready = [replace(one, row=replace(one.row, passages=0))]
                self._write_ready()
        else:
            self._outcomes[ready[0].position] = _refused(ready[0].row.name, self._index_writer.set_aside(ready[0].row))

    def _report_refused(self, gone: Document) -> None:
        """One of those that were given, or another, which is reported after them."""
        given = (at for at, one in self._outcomes.items() if one.document_id == gone.id)
        self._outcomes[next(given, max(self._total, *self._outcomes) + 1)] = _refused(gone.name, gone)

    def _report(self, progress: Progress) -> None:
        self._check_cancel()
        self._on_progress(progress)

    def _check_cancel(self) -> None:
        if self._cancel.is_set():
            raise Stopped("Stopped by you.")

    def _describe(self) -> tuple[Ingested, ...]:
        return tuple(self._outcomes[position] for position in sorted(self._outcomes))

    def _end_early(self, rows: dict[int, Document]) -> None:
        """Write what is ready, and drop the rest; where the program ends, the next start finishes all of it."""
        if is_ending():
            return
        try:
            with suppress(IndexVersionChanged):
                self._write_ready()
            for position in rows.keys() - self._outcomes.keys():
                name = rows[position].name
                self._outcomes[position] = Ingested(name, IngestOutcome.LEFT_OUT, message=f"{name}: left out, stopped.")
            self._index_writer.withdraw(rows.values())
        except StoreUnavailable as fault:  # the next start finds what waits, and finishes it
            _log.warning("what was not indexed could not be withdrawn: %s", fault)


def _refused(name: str, why: DocumentRefused | Document) -> Ingested:
    return Ingested(name, IngestOutcome.REFUSED, message=why.message, hint=why.hint)


def _outcome(name: str, written: Written) -> Ingested:
    row = written.row
    if row is None:
        message = f"{name}: was removed from the index while it was added."
        return Ingested(name, IngestOutcome.REFUSED, message=message, hint="Add it again.")
    if written.is_new:
        outcome = IngestOutcome.REPLACED if written.has_replaced else IngestOutcome.INDEXED
        message = f"{name}: {row.passages} chunks, {outcome}."
        return Ingested(name, outcome, row.id, row.passages, message, left_out=row.message)
    where = "" if row.name == name else f" as {row.name!r}"
    gone = "; its older version was removed" if written.has_replaced else ""
    return Ingested(name, IngestOutcome.ALREADY, row.id, row.passages, f"{name}: already indexed{where}{gone}.")


class Preparer:
    """Makes passages for one version. Raises `Stopped` once `cancel` is set, and `EmbeddingUnavailable`."""

    def __init__(self, version: IndexVersion, embedder: Embedder, read: Read, cancel: Cancel) -> None:
        self.version = version
        self._embedder = embedder
        self.cut = cut_of(version, embedder)
        self._read = read
        self._cancel = cancel

    def prepare(
        self, row: Document, content: bytes, on_embedded: OnEmbedded, on_part: OnPart = _no_part
    ) -> tuple[Document, list[TextNode]]:
        """The row with what reading found out about the document, and its passages; raises `DocumentRefused` too."""
        cut = replace(self.cut, tokenizer=_find_tokenizer(self._embedder))
        return self._embed(row, self._read(content, row.name, cut, self._cancel), on_embedded, on_part)

    def prepare_pages(
        self, row: Document, pages: Sequence[Page], on_embedded: OnEmbedded
    ) -> tuple[Document, list[TextNode]]:
        """The same of a text that was read before."""
        return self._embed(row, cut_document(pages, row.name, self.cut, self._cancel), on_embedded, _no_part)

    def _embed(
        self, row: Document, read: Chunks, on_embedded: OnEmbedded, on_part: OnPart
    ) -> tuple[Document, list[TextNode]]:
        row = replace(row, pages=read.pages, characters=read.characters, changed_at=now(), message=read.left_out)
        nodes = make_nodes(read.chunks, row)
        for start, end in divide(len(nodes), PART):
            if start:
                on_part(row, nodes[:start])
            # Texts of about the same length together: the model reads all of a batch as long as its longest.
            part = sorted(nodes[start:end], key=lambda node: len(node.text))
            for done in range(0, len(part), _EMBEDDED_AT_ONCE):
                self.check_cancel()
                on_embedded(start + done, len(nodes))
                self._embed_nodes(part[done : done + _EMBEDDED_AT_ONCE])
        self.check_cancel()
        on_embedded(len(nodes), len(nodes))
        return row, nodes

    def _embed_nodes(self, nodes: Sequence[TextNode]) -> None:
        vectors = self._embedder.embed_texts([node.text for node in nodes])
        for node, vector in zip(nodes, vectors, strict=True):
            # A list of Python's own numbers takes eight times the memory, and the index keeps no more of each; an
            # assignment would make it one again.
            object.__setattr__(node, "embedding", array("f", vector))

    def check_cancel(self) -> None:
        if self._cancel.is_set():
            raise Stopped("Stopped by you.")


def divide(passages: int, first: int) -> Iterator[tuple[int, int]]:
    """Parts of a document, from and to: the first is searched soon, and they grow, since each costs a commit."""
    start, size = 0, first
    while passages - start > 2 * size:
        yield start, start + size
        start += size
        size = max(first, start // 2)
    yield start, passages


def cut_of(version: IndexVersion, embedder: Embedder) -> Cut:
    """In the embedding model's own tokens, where it offers them, so that no passage is longer than it reads."""
    tokenize: Tokenize | None = getattr(embedder, "tokenize", None)
    return Cut(version.tokens, version.overlap, tokenize)


def _find_tokenizer(embedder: Embedder) -> str:
    find: Callable[[], str] | None = getattr(embedder, "find_tokenizer", None)
    return find() if find else ""

"""Ingests files, one document after the other: keep, read, split, embed and write; and re-indexes them all."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from crag_core.base.concurrency.shutdown import is_ending
from crag_core.base.documents import (
    Document,
    IndexVersion,
    Ingested,
    IngestOutcome,
    OnProgress,
    Progress,
    Rebuilt,
    Recipe,
)
from crag_core.base.errors import DocumentRefused, Stopped, StoreUnavailable
from crag_core.base.protocols import Cancel, Embedder
from crag_core.base.text.display import counted
from crag_core.retrieval.chunking.join import join_pages
from crag_core.retrieval.chunking.split import Chunks, cut_document
from crag_core.retrieval.chunking.text_splitter import Cut
from crag_core.retrieval.index.index_writer import (
    Embedded,
    IndexVersionChanged,
    IndexWriter,
    Written,
    name_content,
    now,
)
from crag_core.retrieval.index.workers import at_work, is_alive
from crag_core.retrieval.readers import Page, load_content
from crag_core.retrieval.upload import Given, each_file

Read = Callable[[bytes, str, Cut, Cancel], Chunks]
"""(content, name, cut, cancel) to chunks; raises `DocumentRefused`, and `Stopped` once `cancel` is set."""
PART = 64
"""Passages after which a document that has more than twice as many is searched in part."""
_KEPT_AT_ONCE = 32 * 2**20  # bytes
# A stop waits for so many: half a second of the built-in model on two cores.
_EMBEDDED_AT_ONCE = 16
_log = logging.getLogger(__name__)


class Indexer:
    """Indexes one set of files; see `PassageStore.ingest` for what it promises."""

    def __init__(
        self, writer: IndexWriter, preparer: Callable[[], Preparer], on_progress: OnProgress, cancel: Cancel
    ) -> None:
        """`preparer` makes one for the current version."""
        self._writer = writer
        self._new_preparer = preparer
        self._preparer: Preparer | None = None
        self._on_progress = on_progress
        self._cancel = cancel
        self._rows: dict[int, Document] = {}
        """By position among the given files, from 1."""
        self._outcomes: dict[int, Ingested] = {}

    def ingest(self, documents: Iterable[Given], collection: str) -> tuple[Ingested, ...]:
        with at_work(self._writer.file.folder) as owner:
            return self._index(owner, lambda: self._register(documents, collection, owner))

    def finish(self, owner: str = "") -> tuple[Ingested, ...]:
        """Index what killed processes had begun; as `EARLIER` what was taken over from an earlier index, unless another
        process does: stopped, the rest waits."""
        if is_alive(self._writer.file.folder, owner):
            return ()
        with at_work(self._writer.file.folder, owner) as owner:
            return self._index(owner, lambda: self._rows.update(enumerate(self._writer.claim(owner), 1)))

    def _register(self, files: Iterable[Given], collection: str, owner: str) -> None:
        """Keep every file and note that it waits, so that a kill loses none."""
        kept: list[tuple[Document, bytes]] = []
        for position, (name, given) in enumerate(each_file(files), 1):
            check(self._cancel)
            try:
                if isinstance(given, DocumentRefused):
                    raise given
                content = load_content(given, name)
            except DocumentRefused as refusal:
                self._outcomes[position] = _refused(name, refusal)
                continue
            row = Document(name_content(content), name, collection, size=len(content), owner=owner, changed_at=now())
            self._rows[position] = row
            kept.append((row, content))
            if sum(len(content) for _, content in kept) > _KEPT_AT_ONCE:
                self._writer.register(kept)
                kept = []
        if kept:
            self._writer.register(kept)

    def _index(self, owner: str, register: Callable[[], None]) -> tuple[Ingested, ...]:
        try:
            register()
            for position, row in self._rows.items():
                progress = Progress(row.name, position, max(self._rows))
                self._report(progress)
                self._outcomes[position] = self._index_one(row, progress)
        except Stopped:
            self._leave_out(owner)
        except Exception:  # the model or the disk is away
            self._leave_out(owner)
            raise
        return tuple(self._outcomes[position] for position in sorted(self._outcomes))

    def _index_one(self, row: Document, progress: Progress) -> Ingested:
        while True:
            content = self._writer.content(row.id, is_waiting=True)
            try:
                if content is None:
                    return _outcome(row.name, self._writer.write(row))
                return _outcome(row.name, self._write(row, content, progress))
            except DocumentRefused as refusal:
                self._writer.refuse(replace(row, message=refusal.message, hint=refusal.hint))
                return _refused(row.name, refusal)
            except IndexVersionChanged:  # made for a version that was replaced meanwhile: once more, for the new one
                self._preparer = None

    def _write(self, row: Document, content: bytes, progress: Progress) -> Written:
        preparer = self._preparer = self._preparer or self._new_preparer()
        self._writer.begin_document(row.id)
        read = preparer.read(row.name, content)
        row = replace(row, pages=read.pages, characters=read.characters, message=read.left_out)

        def on_part(first: Embedded) -> None:
            nonlocal row
            row = self._writer.write_part(row, first, preparer.version)

        def on_embedded(count: int) -> None:
            told = replace(progress, embedded=count, passages=len(read.chunks))
            if row.passages:
                told = replace(told, page=read.chunks[row.passages - 1].page or 0, pages=read.pages)
            self._report(told)

        embedded = preparer.embed(read, on_embedded, on_part)
        return self._writer.write(row, embedded, preparer.version)

    def _report(self, progress: Progress) -> None:
        check(self._cancel)
        self._on_progress(progress)

    def _leave_out(self, owner: str) -> None:
        """Drop what did not get in; where the program ends, the next start finishes it."""
        for position in self._rows.keys() - self._outcomes.keys():
            name = self._rows[position].name
            self._outcomes[position] = Ingested(name, IngestOutcome.LEFT_OUT, message=f"{name}: left out, stopped.")
        if is_ending():
            return
        try:
            self._writer.withdraw(owner)
        except StoreUnavailable as fault:  # the next start finds what waits, and finishes it
            _log.warning("what was not indexed could not be withdrawn: %s", fault)


def _refused(name: str, why: DocumentRefused) -> Ingested:
    return Ingested(name, IngestOutcome.REFUSED, message=why.message, hint=why.hint)


def _outcome(name: str, written: Written) -> Ingested:
    row = written.row
    if row is None:
        message = f"{name}: was removed from the index while it was added."
        return Ingested(name, IngestOutcome.REFUSED, message=message, hint="Add it again.")
    if written.is_new:
        outcome = IngestOutcome.REPLACED if written.has_replaced else IngestOutcome.INDEXED
        message = f"{name}: {outcome}, {counted(row.passages, 'chunk')}."
        return Ingested(name, outcome, row.id, row.passages, message, left_out=row.message)
    where = "" if row.name == name else f" as {row.name}"
    gone = "; the older version of this name was removed" if written.has_replaced else ""
    message = f"{name}: already indexed{where}, {counted(row.passages, 'chunk')}{gone}."
    return Ingested(name, IngestOutcome.ALREADY, row.id, row.passages, message)


class Preparer:
    """Makes passages for one version. Raises `Stopped` once `cancel` is set, and `EmbeddingUnavailable`."""

    def __init__(self, version: IndexVersion, embedder: Embedder, read: Read, cancel: Cancel) -> None:
        self.version = version
        self._embedder = embedder
        self._read = read
        self.cancel = cancel

    def cut(self) -> Cut:
        """In the embedding model's own tokens, where it offers them, so that no passage is longer than it reads."""
        find: Callable[[], str] | None = getattr(self._embedder, "find_tokenizer", None)
        tokenize = getattr(self._embedder, "tokenize", None)
        return Cut(self.version.tokens, self.version.overlap, tokenize, find() if find else "")

    def read(self, name: str, content: bytes) -> Chunks:
        return self._read(content, name, self.cut(), self.cancel)

    def embed(
        self, read: Chunks, on_embedded: Callable[[int], None], on_part: Callable[[Embedded], None] | None = None
    ) -> Embedded:
        """`on_embedded` is called with the number of chunks that have a vector; `on_part` with the first chunks of a
        long document, before the others have one."""
        chunks = read.chunks
        vectors: list[array[float]] = [array("f")] * len(chunks)
        for start, end in divide(len(chunks), PART):
            if start and on_part:
                on_part(list(zip(chunks[:start], vectors[:start], strict=True)))
            # Texts of about the same length together: the model reads all of a batch as long as its longest.
            part = sorted(range(start, end), key=lambda at: len(chunks[at].text))
            for done in range(0, len(part), _EMBEDDED_AT_ONCE):
                check(self.cancel)
                on_embedded(start + done)
                batch = part[done : done + _EMBEDDED_AT_ONCE]
                made = self._embedder.embed_texts([chunks[at].text for at in batch])
                for at, vector in zip(batch, made, strict=True):
                    vectors[at] = array("f", vector)
        check(self.cancel)
        on_embedded(len(chunks))
        return list(zip(chunks, vectors, strict=True))


def check(cancel: Cancel) -> None:
    if cancel.is_set():
        raise Stopped()


def divide(passages: int, first: int) -> Iterator[tuple[int, int]]:
    """Parts of a document, from and to: the first is searched soon, and they grow, since each costs a commit."""
    start, size = 0, first
    while passages - start > 2 * size:
        yield start, start + size
        start += size
        size = max(first, start // 2)
    yield start, passages


def rebuild(
    recipe: Recipe, writer: IndexWriter, new_preparer: Callable[[IndexVersion], Preparer], on_progress: OnProgress
) -> Rebuilt:
    """Builds another index version; see `PassageStore.rebuild` for what it promises."""
    kept_text = 0
    with at_work(writer.file.folder) as owner:
        building = writer.begin(recipe, owner)
        try:
            preparer = new_preparer(building)
            while missing := writer.missing_in(building) or writer.make_current(building):
                for position, row in enumerate(missing, 1):
                    kept_text += _rebuild_one(
                        writer, preparer, row, Progress(row.name, position, len(missing)), on_progress
                    )
        except Exception:  # stopped, or the model or the disk is away
            with suppress(StoreUnavailable):  # with the disk away, the next start drops what was begun
                writer.abandon(building)
            raise
    return Rebuilt(recipe, *writer.count(), kept_text)


def _rebuild_one(
    writer: IndexWriter, preparer: Preparer, row: Document, progress: Progress, on_progress: OnProgress
) -> bool:
    """Whether its text was kept, since its file cannot be read any more."""
    check(preparer.cancel)
    on_progress(progress)
    content = writer.content(row.id)
    if content is None:
        return False  # removed meanwhile
    try:
        read, is_kept = preparer.read(row.name, content), False
    except DocumentRefused:  # by a reader that was another once
        pages = [Page(text, number) for number, text in join_pages(writer.pieces(row.id))]
        read, is_kept = cut_document(pages, row.name, preparer.cut()), True

    def on_embedded(count: int) -> None:
        on_progress(replace(progress, embedded=count, passages=len(read.chunks)))

    writer.add_to(preparer.version, row, preparer.embed(read, on_embedded))
    return is_kept

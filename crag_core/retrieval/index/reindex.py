"""Re-indexes all documents under another recipe, beside the version that is searched."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from crag_core.base.concurrency.shutdown import is_ending
from crag_core.base.documents import Document, IndexVersion, OnProgress, Progress, Rebuilt, Recipe
from crag_core.base.errors import DocumentMissing, DocumentRefused, StoreUnavailable
from crag_core.retrieval.backends.worker_lease import is_alive, name_work
from crag_core.retrieval.chunking.join import join_pages
from crag_core.retrieval.index import ann_index
from crag_core.retrieval.index.index_writer import IndexWriter
from crag_core.retrieval.index.ingest import ALIVE_EVERY, WRITTEN_AT_ONCE, OnEmbedded, Preparer
from crag_core.retrieval.readers import Page

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode


class Rebuilder:
    """Builds one index version; see `PassageStore.rebuild` for what it promises."""

    def __init__(
        self, index_writer: IndexWriter, preparer: Callable[[IndexVersion], Preparer], on_progress: OnProgress
    ) -> None:
        self._index_writer = index_writer
        self._new_preparer = preparer
        self._on_progress = on_progress
        self._owner = name_work()
        self._kept_text = 0
        self._alive_at = time.monotonic()

    def rebuild(self, recipe: Recipe) -> Rebuilt:
        building = self._index_writer.begin(recipe, self._owner)
        try:
            return self._build(building)
        except Exception:  # stopped, or the model or the disk is away
            self._abandon(building)
            raise

    def interrupted(self) -> Recipe | None:
        row = self._lost()
        return None if row is None else row.recipe

    def discard(self) -> None:
        if (row := self._lost()) is not None:
            self._index_writer.abandon(row)

    def _lost(self) -> IndexVersion | None:
        """What a killed process had begun."""
        row = self._index_writer.versions.building()
        return None if row is None or is_alive(row.owner, row.time) else row

    def go_on(self) -> Rebuilt | None:
        """Continue what a killed process had begun; None: there is nothing."""
        row = self._lost()
        return None if row is None else self.rebuild(row.recipe)

    def _build(self, building: IndexVersion) -> Rebuilt:
        preparer = self._new_preparer(building)
        made = {row.id for row in self._index_writer.passages(building).documents()}
        missing = [row for row in self._index_writer.whole().values() if row.id not in made]
        while True:
            self._make(building, preparer, missing)
            before, missing = missing, self._try_make_current(building)
            if not missing:
                break
            if {row.id for row in missing} & {row.id for row in before}:
                names = ", ".join(row.name for row in missing[:3])
                raise StoreUnavailable(f"No chunks could be made of: {names}.", hint="Remove these, and try again.")
        whole = self._index_writer.whole().values()
        return Rebuilt(building.recipe, len(whole), sum(row.passages for row in whole), self._kept_text)

    def _try_make_current(self, building: IndexVersion) -> list[Document]:
        self._index_writer.passages(building).tidy()
        return self._index_writer.make_current(ann_index.refresh(self._index_writer, building))

    def _make(self, building: IndexVersion, preparer: Preparer, rows: Sequence[Document]) -> None:
        ready: list[tuple[Document, list[TextNode]]] = []
        for position, row in enumerate(rows, 1):
            preparer.check_cancel()
            progress = Progress(row.name, position, len(rows))
            self._on_progress(progress)

            def on_embedded(embedded: int, passages: int, progress: Progress = progress) -> None:
                self._on_progress(replace(progress, embedded=embedded, passages=passages))
                if time.monotonic() - self._alive_at > ALIVE_EVERY:
                    self._add(building, [])

            if prepared := self._prepare(preparer, row, on_embedded):
                ready.append(prepared)
            is_late = time.monotonic() - self._alive_at > ALIVE_EVERY
            if is_late or sum(len(nodes) for _, nodes in ready) >= WRITTEN_AT_ONCE:
                self._add(building, ready)
                ready = []
        self._add(building, ready)

    def _add(self, building: IndexVersion, ready: Sequence[tuple[Document, Sequence[TextNode]]]) -> None:
        self._index_writer.add_to(building, ready)
        self._alive_at = time.monotonic()

    def _prepare(
        self, preparer: Preparer, row: Document, on_embedded: OnEmbedded
    ) -> tuple[Document, list[TextNode]] | None:
        """From the file, else from the text of the present passages; None: the document was removed."""
        try:
            made = preparer.prepare(row, self._index_writer.originals.read(row.id), on_embedded)
            if made[1]:
                return made
        except (DocumentMissing, DocumentRefused):
            pass
        current = self._index_writer.versions.current()
        passages = self._index_writer.passages(current).of(row.id)
        if not passages:
            return None
        self._kept_text += 1
        pages = [Page(text, number) for number, text in join_pages(passages, self._new_preparer(current).cut)]
        _, nodes = preparer.prepare_pages(row, pages, on_embedded)
        return row, nodes

    def _abandon(self, building: IndexVersion) -> None:
        if is_ending():  # the next start goes on with it
            return
        with suppress(StoreUnavailable):  # with the disk away, the next start finds what was begun
            self._index_writer.abandon(building)

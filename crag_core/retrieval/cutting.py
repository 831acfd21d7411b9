"""Pages into chunks within limits: how many a document may have, and whether somebody has stopped it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crag_core.errors import DocumentRefused, Stopped
from crag_core.protocols import Cancel
from crag_core.retrieval.chunking import Chunk, Chunks, Cut, count_pages, cut_pages
from crag_core.retrieval.readers import Page

# Some 17 MB of English, or fifteen long novels: the built-in model needs about ten minutes for them on two cores, and
# the application 50 MB.
MAX_CHUNKS = 20_000


class TooManyChunks(Exception):
    """Has how many there are."""

    def __init__(self, found: int) -> None:
        super().__init__(found)
        self.found = found


def cut_bounded(pages: Sequence[Page], name: str, cut: Cut, limit: int, cancel: Cancel | None = None) -> Chunks:
    """Raises `TooManyChunks`, and `Stopped` once `cancel` is set."""
    kept: list[Chunk] = []
    found = 0
    for found, chunk in enumerate(_unless_stopped(cut_pages(pages, name, cut), cancel), 1):
        if found <= limit:
            kept.append(chunk)
    if found > limit:
        raise TooManyChunks(found)
    return Chunks(tuple(kept), *count_pages(pages))


def cut_here(pages: Sequence[Page], name: str, cut: Cut, cancel: Cancel) -> Chunks:
    """In this very process; raises `DocumentRefused` and `Stopped`."""
    try:
        return cut_bounded(pages, name, cut, MAX_CHUNKS, cancel)
    except TooManyChunks as too_many:
        raise refuse_chunks(name, too_many.found, MAX_CHUNKS) from None


def refuse_chunks(name: str, found: int, limit: int) -> DocumentRefused:
    return DocumentRefused(
        f"{name}: its text makes {found:,} chunks; the limit is {limit:,}.",
        hint="Split the document into smaller files and add those, or leave out data that nobody asks questions about.",
    )


def _unless_stopped(chunks: Iterator[Chunk], cancel: Cancel | None) -> Iterator[Chunk]:
    for chunk in chunks:
        if cancel is not None and cancel.is_set():
            raise Stopped("Stopped by you.")
        yield chunk

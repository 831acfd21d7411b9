"""Chunks pages within a limit on their number, and stops when cancelled."""

from __future__ import annotations

from collections.abc import Sequence

from crag_core.base.errors import DocumentRefused, Stopped
from crag_core.base.protocols import Cancel
from crag_core.retrieval.chunking.split import Chunk, Chunks, Cut, count_pages, cut_pages
from crag_core.retrieval.readers import Page

# Some 17 MB of English, or fifteen long novels: the built-in model needs about ten minutes for them on two cores, and
# the application 50 MB.
MAX_CHUNKS = 20_000


class TooManyChunks(Exception):
    """Says no more; the rest is not cut, since that may take longer than the file has time."""


def cut_bounded(pages: Sequence[Page], name: str, cut: Cut, limit: int, cancel: Cancel | None = None) -> Chunks:
    """Raises `TooManyChunks`, and `Stopped` once `cancel` is set."""
    kept: list[Chunk] = []
    for chunk in cut_pages(pages, name, cut):
        if cancel is not None and cancel.is_set():
            raise Stopped("Stopped by you.")
        if len(kept) == limit:
            raise TooManyChunks
        kept.append(chunk)
    return Chunks(tuple(kept), *count_pages(pages))


def cut_here(pages: Sequence[Page], name: str, cut: Cut, cancel: Cancel) -> Chunks:
    """In this very process; raises `DocumentRefused` and `Stopped`."""
    try:
        return cut_bounded(pages, name, cut, MAX_CHUNKS, cancel)
    except TooManyChunks:
        raise refuse_chunks(name, count_pages(pages)[1], MAX_CHUNKS) from None


def refuse_chunks(name: str, characters: int, limit: int) -> DocumentRefused:
    return DocumentRefused(
        f"{name}: its {characters:,} characters of text make more than {limit:,} chunks, which is the limit.",
        hint="Split the document into smaller files and add those, or leave out data that nobody asks questions about.",
    )

"""Shows the page of a document that a passage stands on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePath

from crag_core.base.types.passages import Passage
from crag_core.retrieval.index.store import PassageStore
from crag_core.retrieval.page_view.page_image import Draw, PagePicture, Span, page_picture

_WIDTH = 1400  # pixels
_MOST_KEPT = 16  # pictures, of 20 MB at most


class Places:
    """Shows passages in their documents; thread-safe. Raises `StoreUnavailable`.

    `draw` makes the pictures, by default in this process.
    """

    def __init__(self, store: PassageStore, draw: Draw = page_picture) -> None:
        self._store = store
        self._draw = draw
        self._drawn = lru_cache(_MOST_KEPT)(self._draw_page)

    def has_pages(self, passage: Passage) -> bool:
        """Whether it comes from a file with printed pages, which `picture` needs."""
        return bool(passage.document_id) and PurePath(passage.source).suffix.lower() == ".pdf"

    def picture(self, passage: Passage, spans: Sequence[Span], page: int | None = None) -> PagePicture:
        """A page of the passage's document, by default its own, with its text marked.

        Raises `DocumentMissing` and `DocumentRefused` as well.
        """
        self._store.read_original(passage.document_id)  # a deleted document is not shown
        shown = page or passage.page or 1
        # Only a whole document has several pages.
        text, marked = (passage.text, tuple(spans)) if passage.page in (shown, None) else ("", ())
        return self._drawn(passage.document_id, shown, text, marked)

    def _draw_page(self, document_id: str, page: int, text: str, marked: tuple[Span, ...]) -> PagePicture:
        return self._draw(self._store.read_original(document_id), page, text, marked, _WIDTH)

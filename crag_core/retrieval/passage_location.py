"""Shows a passage in its document: the page as an image, or the text around it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from threading import Lock

from crag_core.base.types.passages import Passage
from crag_core.retrieval.chunking.join import Surroundings
from crag_core.retrieval.index.store import PassageStore
from crag_core.retrieval.page_view.page_image import Draw, PagePicture, Span, page_picture

_MOST_KEPT = 64 * 1024 * 1024  # bytes of pictures


class Places:
    """Shows passages in their documents; thread-safe. Raises `StoreUnavailable`.

    `draw` makes the pictures, by default in this process.
    """

    def __init__(self, store: PassageStore, draw: Draw = page_picture) -> None:
        self._store = store
        self._draw = draw
        self._pictures: dict[tuple[object, ...], PagePicture] = {}
        self._lock = Lock()

    def has_pages(self, passage: Passage) -> bool:
        """Whether it comes from a file with printed pages, which `picture` needs."""
        return bool(passage.document_id) and PurePath(passage.source).suffix.lower() == ".pdf"

    def picture(
        self, passage: Passage, spans: Sequence[Span], page: int | None = None, width: int = 1400
    ) -> PagePicture:
        """A page of the passage's document, by default its own, with its text marked.

        Raises `DocumentMissing` and `DocumentRefused` as well.
        """
        # Read also when the picture is cached: a deleted document must not be shown.
        original = self._store.read_original(passage.document_id)
        shown = page or passage.page or 1
        # Only a whole document has several pages.
        text, marked = (passage.text, tuple(spans)) if passage.page in (shown, None) else ("", ())
        key = (passage.document_id, shown, text, marked, width)
        with self._lock:
            found = self._pictures.pop(key, None)
        found = found or self._draw(original, shown, text, marked, width)
        with self._lock:
            self._pictures[key] = found
            while sum(len(one.png) for one in self._pictures.values()) > _MOST_KEPT and len(self._pictures) > 1:
                del self._pictures[next(iter(self._pictures))]  # which was longest not asked for
        return found

    def surroundings(self, passage: Passage) -> Surroundings | None:
        """None for a document that was deleted or re-indexed in another way."""
        return self._store.surround(passage)

"""Where a passage stands on a page of a PDF: the page as a picture, the passage marked in it sentence by sentence."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from threading import Lock

from crag_core.retrieval.aligning import Letters, align, letters_of
from crag_core.retrieval.boxes import Box, join_letters
from crag_core.retrieval.marking import mark_page
from crag_core.retrieval.sheets import Sheet, open_sheet
from crag_core.retrieval.store import PassageStore
from crag_core.retrieval.surroundings import Surroundings
from crag_core.types import Passage

Span = tuple[int, int, bool]
"""A sentence of a text: from, to (as in a slice), and whether it is kept."""

_MOST_KEPT = 64 * 1024 * 1024  # bytes of pictures


@dataclass(frozen=True)
class PagePicture:
    """A page as a PNG of `width` times `height` pixels, and the boxes that are marked in it.

    `page` counts from 1 to `pages`. `found_share` is the share of the text's letters that have a box here; 1.0 where no
    text was looked for.
    """

    png: bytes
    width: int
    height: int
    page: int
    pages: int
    boxes: tuple[Box, ...]
    found_share: float


def page_picture(original: bytes, page: int, text: str, spans: Sequence[Span], width: int) -> PagePicture:
    """Page `page` (from 1) of a PDF, drawn `width` pixels wide, with `text` marked on it.

    The text is found by its letters, since white space, hyphens and line breaks were made regular when it was read.
    What of it belongs to no span is marked as neither kept nor struck. A page of an extreme shape comes out narrower.
    Raises `DocumentRefused` for a file that cannot be drawn, `DocumentMissing` for a page that it lacks.
    """
    with open_sheet(original, page, width) as sheet:
        picture = sheet.draw()
        boxes, share = _find(sheet, text, spans)
    return PagePicture(mark_page(picture, boxes), *sheet.size, page, sheet.pages, tuple(boxes), share)


def _find(sheet: Sheet, text: str, spans: Sequence[Span]) -> tuple[list[Box], float]:
    wanted = letters_of(text)
    if not wanted.text:
        return [], 1.0
    characters = sheet.characters()
    there = letters_of(characters)
    owners = _owners(len(text), spans)
    boxes: list[Box] = []
    seen = 0
    for letter, at in zip(wanted.places, align(wanted.text, there.text), strict=True):
        span = owners[letter]
        kept = None if span is None else spans[span][2]
        found = () if at is None else (sheet.box(place) for place in _with_tail(characters, there, at))
        visible = [replace(box, span=span, kept=kept) for box in found if box is not None]
        boxes += visible
        seen += bool(visible)
    return join_letters(boxes), seen / len(wanted.text)


def _with_tail(characters: Sequence[str], letters: Letters, at: int) -> range:
    """The place of a letter, and those of what belongs to it and is none: accents, and the hyphen of a broken word."""
    start = letters.places[at]
    end = start + 1
    limit = letters.places[at + 1] if at + 1 < len(letters.places) else len(characters)
    while end < limit and characters[end].strip():
        end += 1
    return range(start, end)


def _owners(length: int, spans: Sequence[Span]) -> list[int | None]:
    """For each character of a text the sentence that it belongs to."""
    owners: list[int | None] = [None] * length
    for index, (start, end, _) in enumerate(spans):
        here = range(*slice(max(start, 0), max(end, 0)).indices(length))
        owners[here.start : here.stop] = [index] * len(here)
    return owners


class Places:
    """Shows where passages stand in the indexed documents; safe to share between threads. Raises `StoreUnavailable`."""

    def __init__(self, store: PassageStore) -> None:
        self._store = store
        self._pictures: OrderedDict[tuple[object, ...], PagePicture] = OrderedDict()
        self._lock = Lock()

    def has_pages(self, passage: Passage) -> bool:
        """Whether it comes from a file with printed pages, so that `picture` can be asked for."""
        return bool(passage.document_id) and PurePath(passage.source).suffix.lower() == ".pdf"

    def picture(
        self, passage: Passage, spans: Sequence[Span], page: int | None = None, width: int = 1400
    ) -> PagePicture:
        """A page of the passage's document, its own unless another is asked for; what of it stands there is marked.

        Raises `DocumentMissing` and `DocumentRefused` as well.
        """
        # Read even when the picture is known: a document that was deleted is not shown any more.
        original = self._store.read_original(passage.document_id)
        shown = page or passage.page or 1
        # Only a file read whole goes over several pages.
        text, marked = (passage.text, tuple(spans)) if passage.page in (shown, None) else ("", ())
        key = (passage.document_id, shown, text, marked, width)
        found = self._known(key)
        if found is None:
            found = page_picture(original, shown, text, marked, width)
            self._remember(key, found)
        return found

    def surroundings(self, passage: Passage) -> Surroundings | None:
        """None for a document that was deleted, or indexed again in another way."""
        return self._store.surround(passage)

    def _known(self, key: tuple[object, ...]) -> PagePicture | None:
        with self._lock:
            if key in self._pictures:
                self._pictures.move_to_end(key)
            return self._pictures.get(key)

    def _remember(self, key: tuple[object, ...], picture: PagePicture) -> None:
        with self._lock:
            self._pictures[key] = picture
            while sum(len(one.png) for one in self._pictures.values()) > _MOST_KEPT and len(self._pictures) > 1:
                self._pictures.popitem(last=False)

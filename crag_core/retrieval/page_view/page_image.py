"""Renders a PDF page with a passage marked sentence by sentence."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.page_view.highlight import Box, join_letters, mark_page
from crag_core.retrieval.page_view.pdf_page import Sheet, open_sheet

Span = tuple[int, int, bool]
"""A sentence of a text: from, to (as in a slice), and whether it is kept."""

# Far more than people print, and few enough for the header of a reply and for a browser.
_MOST_BOXES = 10_000
# A run of so many letters that occurs once in both texts is the same place.
_TELLING = 10


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


Draw = Callable[[bytes, int, str, Sequence[Span], int], PagePicture]
"""Draws a page; takes and raises what `page_picture` does."""


def page_picture(original: bytes, page: int, text: str, spans: Sequence[Span], width: int) -> PagePicture:
    """Page `page` (from 1) of a PDF, drawn `width` pixels wide, with `text` marked on it.

    The text is found by its letters, since reading normalises white space, hyphens and line breaks. Text outside of all
    spans is marked as neither kept nor dropped. A page of an extreme shape becomes narrower.
    Raises `DocumentRefused` for a file that cannot be drawn, and for a page that it does not have.
    """
    with open_sheet(original, page, width) as sheet:
        picture = sheet.draw()
        boxes, share = _find(sheet, text, spans)
    if len(boxes) > _MOST_BOXES:
        raise DocumentRefused(
            f"The page cannot be drawn (expected a text of at most {_MOST_BOXES:,} pieces, found {len(boxes):,}).",
            hint="Read the chunk as text.",
        )
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
    """The place of a letter, and of accents or a hyphen that follow it."""
    start = letters.places[at]
    end = start + 1
    limit = letters.places[at + 1] if at + 1 < len(letters.places) else len(characters)
    while end < limit and characters[end].strip():
        end += 1
    return range(start, end)


def _owners(length: int, spans: Sequence[Span]) -> list[int | None]:
    """For each character of a text the index of its sentence."""
    owners: list[int | None] = [None] * length
    for index, (start, end, _) in enumerate(spans):
        here = range(*slice(max(start, 0), max(end, 0)).indices(length))
        owners[here.start : here.stop] = [index] * len(here)
    return owners


@dataclass(frozen=True)
class Letters:
    """The letters of a text without white space, hyphens and accents; `places[i]` is where letter i came from."""

    text: str
    places: tuple[int, ...]


def letters_of(pieces: Iterable[str]) -> Letters:
    """`pieces` are the characters of a text in order."""
    folded = [_fold(piece) for piece in pieces]
    places = tuple(at for at, letters in enumerate(folded) for _ in letters)
    return Letters("".join(folded), places)


def align(wanted: str, there: str) -> list[int | None]:
    """For each letter of `wanted` its place in `there`; None where it is unknown.

    Usually one contains the other, and the first match is taken. Otherwise runs of ten letters that occur once in both,
    in the same order, are aligned, and then equal letters beside them.
    """
    found: list[int | None] = [None] * len(wanted)
    if not wanted or not there:
        return found
    if (at := there.find(wanted)) >= 0:
        return list(range(at, at + len(wanted)))
    if (at := wanted.find(there)) >= 0:
        found[at : at + len(there)] = range(len(there))
        return found
    free = 0
    for left, right in _in_order(_pins(wanted, there)):
        if found[left] is None and right >= free:
            free = _join(wanted, there, found, left, right, free)
    return found


def _pins(wanted: str, there: str) -> list[tuple[int, int]]:
    mine, theirs = _once(wanted), _once(there)
    return sorted((mine[run], theirs[run]) for run in mine.keys() & theirs.keys())


def _once(text: str) -> dict[str, int]:
    runs = [text[at : at + _TELLING] for at in range(len(text) - _TELLING + 1)]
    counts = Counter(runs)
    return {run: at for at, run in enumerate(runs) if counts[run] == 1}


def _in_order(pins: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest increasing subsequence: pins are sorted by their first places, here the second ones grow too."""
    ends: list[int] = []  # the smallest second place at the end of a subsequence of this length
    chosen: list[int] = []
    before: list[int | None] = []
    for at, (_, place) in enumerate(pins):
        length = bisect_left(ends, place)
        before.append(chosen[length - 1] if length else None)
        ends[length:] = [place] if length == len(ends) else [place, *ends[length + 1 :]]
        chosen[length : length + 1] = [at]
    kept = []
    last = chosen[-1] if chosen else None
    while last is not None:
        kept.append(pins[last])
        last = before[last]
    return kept[::-1]


def _join(wanted: str, there: str, found: list[int | None], left: int, right: int, free: int) -> int:
    """Align equal letters around a pin; places before `free` are taken. Returns the next free place."""
    while left > 0 and right > free and found[left - 1] is None and wanted[left - 1] == there[right - 1]:
        left, right = left - 1, right - 1
    while left < len(wanted) and right < len(there) and wanted[left] == there[right]:
        found[left] = right
        left, right = left + 1, right + 1
    return right


@lru_cache(maxsize=1 << 16)
def _fold(letter: str) -> str:
    """ "fi" for its ligature, "a" for "ä", "" for white space, hyphens, controls and unassigned characters."""
    parts = unicodedata.normalize("NFKD", letter)
    return "".join(part for part in parts if not unicodedata.category(part).startswith(("M", "Z", "C", "Pd")))

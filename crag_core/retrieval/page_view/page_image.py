"""Renders a PDF page with a passage marked sentence by sentence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.page_view.highlight import Box, join_letters, mark_page
from crag_core.retrieval.page_view.pdf_page import Sheet, open_sheet

Span = tuple[int, int, bool]
"""A sentence of a text: from, to (as in a slice), and whether it is kept."""

# Far more than people print, and few enough for the header of a reply and for a browser.
_MOST_BOXES = 10_000
# The headers that reading a table puts before its cells.
_HEADERS = re.compile(r"(?m)^[^:;\n]+: (?=[^;\n]*; [^:;\n]+: )|; (?:[^:;\n]+: )?")
# A run of so many letters in both texts is the same place.
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

    The text is found by its letters, since reading normalises white space, hyphens and line breaks, and puts headers
    before the cells of tables. Text outside of all spans is marked as neither kept nor dropped. A page of an extreme
    shape becomes narrower.
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
    characters = sheet.characters()
    there = letters_of(characters)
    wanted = letters_of(text)
    if wanted.text not in there.text:
        wanted = letters_of(_HEADERS.sub(lambda found: " " * len(found[0]), text))
    if not wanted.text:
        return [], 1.0
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
    folded = [_fold(piece) for piece in pieces]
    places = tuple(at for at, letters in enumerate(folded) for _ in letters)
    return Letters("".join(folded), places)


def align(wanted: str, there: str) -> list[int | None]:
    """For each letter of `wanted` its place in `there`; None where it is unknown.

    Usually one contains the other, and the first match is taken. Otherwise the same runs of ten letters are aligned, in
    the same order; those that occur often in a long text are left out.
    """
    found: list[int | None] = [None] * len(wanted)
    if not wanted or not there:
        return found
    if (at := there.find(wanted)) >= 0:
        return list(range(at, at + len(wanted)))
    if (at := wanted.find(there)) >= 0:
        found[at : at + len(there)] = range(len(there))
        return found
    mine, theirs = ([text[at : at + _TELLING] for at in range(len(text) - _TELLING + 1)] for text in (wanted, there))
    free = 0
    for left, right, runs in SequenceMatcher(None, mine, theirs).get_matching_blocks():
        for step in range(runs + _TELLING - 1 if runs else 0):
            if right + step >= free:
                found[left + step] = right + step
                free = right + step + 1
    return found


@lru_cache(maxsize=1 << 16)
def _fold(letter: str) -> str:
    """ "fi" for its ligature, "a" for "ä", "" for white space, hyphens, controls and unassigned characters."""
    parts = unicodedata.normalize("NFKD", letter)
    return "".join(part for part in parts if not unicodedata.category(part).startswith(("M", "Z", "C", "Pd")))

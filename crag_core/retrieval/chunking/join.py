"""Joins the chunks of a document back together, without their overlap: all of them, or those around one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from crag_core.base.types.passages import Passage

_MOST = 1_500
"""Characters on either side."""
_WORD = 40  # so far a cut moves to the next gap between words; a text without gaps is cut where it is


class Piece(NamedTuple):
    """The text of a chunk and where it starts in its page; -1: an earlier version did not record that."""

    page: int | None
    start: int
    text: str


def join_pieces(pieces: Sequence[Piece]) -> str:
    """The text of one document from all its chunks in reading order, with a blank line between pages.

    White space at the ends of chunks is not stored: a line break takes its place. That does little harm in a paragraph,
    while table rows must stay apart.
    """
    return "\n\n".join(text for _, text in join_pages(pieces))


def join_pages(pieces: Sequence[Piece]) -> list[tuple[int | None, str]]:
    """The number and the text of each page, likewise; (None, …) where the format has no pages."""
    return [(number, _join_page([*page])) for number, page in groupby(pieces, key=lambda piece: piece.page)]


def _join_page(pieces: Sequence[Piece]) -> str:
    joined, end = pieces[0].text, pieces[0].start + len(pieces[0].text)
    for piece in pieces[1:]:
        is_apart = piece.start < 0 or piece.start > end
        joined += f"\n{piece.text}" if is_apart else piece.text[end - piece.start :]
        end = piece.start + len(piece.text)
    return joined


@dataclass(frozen=True)
class Surroundings:
    """The text on either side of a passage. `starts`, `ends`: the document starts or ends there."""

    before: str
    after: str
    starts: bool
    ends: bool


def surround(passage: Passage, pieces: Sequence[Piece]) -> Surroundings | None:
    """About 1,500 characters on either side, in whole words; None when the passage does not stand in its document.

    `pieces` are all of the document; what neighbours repeat is shown once. Around a file that was read whole there is
    nothing.
    """
    if pieces and "read_file" in passage.found_by:
        return Surroundings("", "", starts=True, ends=True)
    at = passage.ordinal
    if at >= len(pieces) or pieces[at].text != passage.text:
        return None
    first, last = _reach(pieces[:at][::-1]), _reach(pieces[at + 1 :])
    joined = join_pieces(pieces[at - first : at + 1])
    before = joined[: len(joined) - len(passage.text)]
    after = join_pieces(pieces[at : at + 1 + last])[len(passage.text) :]
    start, end = _cut_before(before), _cut_after(after)
    return Surroundings(
        before=before[start:],
        after=after[:end],
        starts=first == at and not start,
        ends=at + 1 + last == len(pieces) and end == len(after),
    )


def _reach(neighbours: Sequence[Piece]) -> int:
    size = 0
    for count, piece in enumerate(neighbours):
        if size > _MOST + _WORD:
            return count
        size += len(piece.text) // 2
    return len(neighbours)


def _cut_before(text: str) -> int:
    start = max(len(text) - _MOST, 0)
    gap = next((at for at in range(start, min(start + _WORD, len(text))) if text[at].isspace()), start)
    return gap if start else 0


def _cut_after(text: str) -> int:
    if len(text) <= _MOST:
        return len(text)
    return next((at for at in range(_MOST, _MOST - _WORD, -1) if text[at].isspace()), _MOST)

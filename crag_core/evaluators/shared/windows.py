"""Overlapping windows of word pieces over a text longer than the model reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Pieces:
    """A text in the word pieces of a vocabulary: their numbers, and where each stands: `text[start:end]`.

    `unknown` counts the pieces that the vocabulary does not know.
    """

    text: str
    ids: Sequence[int]
    offsets: Sequence[tuple[int, int]]
    unknown: int = 0


@dataclass(frozen=True)
class Window:
    """Consecutive pieces of a text, and the text from the first to the last of them."""

    ids: tuple[int, ...]
    text: str


def cut_windows(pieces: Pieces, room: int, overlap: int) -> list[Window]:
    """The text in windows of at most `room` pieces, each beginning with the last `overlap` pieces of the one before.

    The last one reaches further back instead of being short. Without pieces: no window.
    """
    if not 0 <= overlap < room:
        raise ValueError(f"expected an overlap of 0 to {room - 1}, found {overlap}")
    count = len(pieces.ids)
    starts = range(0, max(count - overlap, 1), room - overlap) if count else ()
    return [_window(pieces, max(min(start, count - room), 0), room) for start in starts]


def _window(pieces: Pieces, start: int, room: int) -> Window:
    inside = pieces.offsets[start : start + room]
    return Window(tuple(pieces.ids[start : start + room]), pieces.text[inside[0][0] : inside[-1][1]])

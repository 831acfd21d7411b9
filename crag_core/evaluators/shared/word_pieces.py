"""A text in word pieces: cut into overlapping windows, and refused where it is in another script."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_MOST_UNREAD = 0.5  # share of a text


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


def why_unread(pieces: Pieces, what: str) -> str:
    """Why the evaluator does not judge this text (`what` names it); the empty string when it does.

    Most of Chinese and Thai is unknown to its vocabulary. Of Greek, Cyrillic, Arabic and others the vocabulary has the
    single letters and no words, so there the letters are counted.
    """
    unknown, other = pieces.unknown / max(len(pieces.ids), 1), share_of_other_scripts(pieces.text)
    if max(unknown, other) <= _MOST_UNREAD:
        return ""
    letters, signs = (
        f"{other:.0%} of the letters of this {what} are of another",
        f"{unknown:.0%} of this {what} is unknown",
    )
    return f"The trained evaluator reads Latin script, and {letters if other > _MOST_UNREAD else signs}."


def share_of_other_scripts(text: str) -> float:
    """Share of the letters that are not Latin; 0 for a text without letters."""
    letters = {sign: count for sign, count in Counter(text).items() if sign.isalpha()}
    other = sum(count for sign, count in letters.items() if "LATIN" not in unicodedata.name(sign, ""))
    return other / sum(letters.values()) if letters else 0.0

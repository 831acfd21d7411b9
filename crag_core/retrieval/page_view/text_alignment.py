"""Aligns a text with another that has the same letters but other spaces and breaks. Pure."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

# A run of so many letters that occurs once in both texts is the same place.
_TELLING = 10


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

"""The text before and after a passage, from its neighbours in the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crag_core.base.types import Passage
from crag_core.retrieval.chunking.join import join_passages
from crag_core.retrieval.chunking.split import USUAL, Cut

_MOST = 1_500
"""Characters on either side."""
_WORD = 40  # so far a cut moves to the next gap between words; a text without gaps is cut where it is


@dataclass(frozen=True)
class Surroundings:
    """The text on either side of a passage. `starts`, `ends`: the document starts or ends there."""

    before: str
    after: str
    starts: bool
    ends: bool


def surround(passage: Passage, document: Sequence[Passage], cut: Cut = USUAL) -> Surroundings | None:
    """About 1,500 characters on either side, in whole words; None when the passage does not stand in `document`.

    `document` are all passages of the passage's document in reading order; what neighbours repeat is shown once. Around
    a file that was read whole there is nothing. `cut` is how it was split.
    """
    if document and "read_file" in passage.found_by:
        return Surroundings("", "", starts=True, ends=True)
    at = next((index for index, one in enumerate(document) if (one.id, one.text) == (passage.id, passage.text)), None)
    if at is None:
        return None
    first, last = _reach(document[:at][::-1]), _reach(document[at + 1 :])
    joined = join_passages(document[at - first : at + 1], cut)
    before = joined[: len(joined) - len(passage.text)]
    after = join_passages(document[at : at + 1 + last], cut)[len(passage.text) :]
    start, end = _cut_before(before), _cut_after(after)
    return Surroundings(
        before=before[start:],
        after=after[:end],
        starts=first == at and not start,
        ends=at + 1 + last == len(document) and end == len(after),
    )


def _reach(neighbours: Sequence[Passage]) -> int:
    """How many of them it takes to have enough; half of one may be overlap."""
    size = 0
    for count, passage in enumerate(neighbours):
        if size > _MOST + _WORD:
            return count
        size += len(passage.text) // 2
    return len(neighbours)


def _cut_before(text: str) -> int:
    start = max(len(text) - _MOST, 0)
    gap = next((at for at in range(start, min(start + _WORD, len(text))) if text[at].isspace()), start)
    return gap if start else 0


def _cut_after(text: str) -> int:
    if len(text) <= _MOST:
        return len(text)
    return next((at for at in range(_MOST, _MOST - _WORD, -1) if text[at].isspace()), _MOST)

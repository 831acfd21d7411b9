"""Merges or refuses questions that occur more than once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from crag_core.experiments.labelled.questions import Expected, LabelledQuestion

Contradiction = tuple[tuple[int, Expected], ...]
"""Rows that label one question differently, in order; none of them is kept."""


@dataclass(frozen=True)
class Settled:
    """`questions` each once, by question and `without`, in the order in which they first came.

    `repeated` are the rows that say the same as one before them.
    """

    questions: tuple[LabelledQuestion, ...]
    repeated: tuple[int, ...]
    contradictions: tuple[Contradiction, ...]


def settle(rows: Iterable[tuple[int, LabelledQuestion]]) -> Settled:
    """Of questions that say the same, the first is kept, with the answers of all."""
    found: dict[tuple[str, str], list[tuple[int, LabelledQuestion]]] = {}
    for row, asked in rows:
        found.setdefault((asked.question, asked.without), []).append((row, asked))
    kept: list[LabelledQuestion] = []
    repeated: list[int] = []
    contradictions = []
    for same in found.values():
        if len({one.expected for _, one in same}) > 1:
            contradictions.append(tuple((row, one.expected) for row, one in same))
        else:
            kept.append(same[0][1] if len(same) == 1 else _joined([one for _, one in same]))
            repeated += [row for row, _ in same[1:]]
    return Settled(tuple(kept), tuple(sorted(repeated)), tuple(contradictions))


def _joined(same: list[LabelledQuestion]) -> LabelledQuestion:
    """Where the first names no document or note, that of the next one that does."""
    return replace(
        same[0],
        answers=tuple(dict.fromkeys(answer for one in same for answer in one.answers)),
        document=next((one.document for one in same if one.document), ""),
        note=next((one.note for one in same if one.note), ""),
    )

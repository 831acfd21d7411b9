"""Made-up scores: a few examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage, Scores
from crag_core.decision.signals import CLASS, CLASSES, SUFFICIENCY

Row = dict[str, Any]


def _row(score: float, answering: float, topical: float, cosine: float, found_by: str = "dense") -> Row:
    return {"score": score, "answering": answering, "topical": topical, "cosine": cosine, "found by": found_by}


EXAMPLES: dict[str, tuple[Row, ...]] = {
    "Mixed": (
        _row(0.90, 0.85, 0.95, 0.82),
        _row(0.50, 0.15, 0.85, 0.61),
        _row(0.25, 0.05, 0.45, 0.43, "keyword"),
    ),
    "Answered": (
        _row(0.95, 0.94, 0.97, 0.84),
        _row(0.88, 0.86, 0.92, 0.79),
        _row(0.75, 0.70, 0.88, 0.70, "keyword"),
    ),
    "On topic": (
        _row(0.55, 0.25, 0.85, 0.66),
        _row(0.45, 0.15, 0.80, 0.58),
        _row(0.40, 0.10, 0.75, 0.51, "keyword"),
    ),
    "Off topic": (
        _row(0.12, 0.02, 0.30, 0.31),
        _row(0.08, 0.02, 0.22, 0.24),
        _row(0.05, 0.01, 0.15, 0.18, "keyword"),
    ),
}
"""Chunks in rank order, by name."""
_SIGNALS = {
    "keyword_overlap": 0.8,
    "coherence": 0.6,
    "length_adequacy": 1.0,
    "diversity": 0.7,
    "keyword_coverage": 0.6,
    "agreement": 0.5,
}
_CLASS_OF = {"Answered": "B", "Off topic": "A"}
"""Of the question of an example; of the others it is C."""
_ENOUGH = ("Mixed", "Answered")
"""Examples of which a model would say that all chunks together are enough."""


def made_up(name: str) -> tuple[tuple[Passage, ...], tuple[Grade, ...], Scores]:
    """Chunks, grades and signals of an example."""
    return *read_rows(EXAMPLES[name]), signals_of(name)


def signals_of(name: str) -> Scores:
    together, rounds = float(name in _ENOUGH), CLASSES[_CLASS_OF.get(name, "C")]
    return (*_SIGNALS.items(), (SUFFICIENCY, together), (CLASS, rounds))


def read_rows(rows: Sequence[Row]) -> tuple[tuple[Passage, ...], tuple[Grade, ...]]:
    passages, grades = [], []
    for number, row in enumerate(rows, start=1):
        scores, found_by = (("cosine", row["cosine"]),), (row["found by"],)
        passages.append(Passage(f"p{number}", "Made up.", f"Chunk {number}", found_by=found_by, scores=scores))
        parts = tuple((name, row[name]) for name in (ANSWERING, TOPICAL))
        grades.append(Grade(f"p{number}", row["score"], parts=parts))
    return tuple(passages), tuple(grades)

"""Made-up scores: a few examples."""

from __future__ import annotations

from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage, Scores
from crag_core.decision.signals import CLASS, CLASSES, SUFFICIENCY

EXAMPLES = {
    "Mixed": ((0.90, 0.85, 0.95, 0.82), (0.50, 0.15, 0.85, 0.61), (0.25, 0.05, 0.45, 0.43)),
    "Answered": ((0.95, 0.94, 0.97, 0.84), (0.88, 0.86, 0.92, 0.79), (0.75, 0.70, 0.88, 0.70)),
    "On topic": ((0.55, 0.25, 0.85, 0.66), (0.45, 0.15, 0.80, 0.58), (0.40, 0.10, 0.75, 0.51)),
    "Off topic": ((0.12, 0.02, 0.30, 0.31), (0.08, 0.02, 0.22, 0.24), (0.05, 0.01, 0.15, 0.18)),
}
"""By name, chunks in rank order: score, answering, topical, cosine. The last one was found by keywords."""
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
    passages, grades = [], []
    for number, (score, answering, topical, cosine) in enumerate(EXAMPLES[name], start=1):
        found_by = "keyword" if number == len(EXAMPLES[name]) else "dense"
        scores = (("cosine", cosine),)
        passages.append(Passage(f"p{number}", "Made up.", f"Chunk {number}", found_by=(found_by,), scores=scores))
        grades.append(Grade(f"p{number}", score, parts=((ANSWERING, answering), (TOPICAL, topical))))
    together, rounds = float(name in _ENOUGH), CLASSES[_CLASS_OF.get(name, "C")]
    signals = (*_SIGNALS.items(), (SUFFICIENCY, together), (CLASS, rounds))
    return tuple(passages), tuple(grades), signals

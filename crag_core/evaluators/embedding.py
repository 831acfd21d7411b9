"""Cosine similarity as a grade: the baseline."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Self

from crag_core.base.protocols import Cancel, Embedder
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage
from crag_core.evaluators.shared.parts import MINILM, EvaluatorParts, less_sure


class EmbeddingEvaluator:
    """Grades by the cosine of question and passage; a cosine below 0 counts as 0."""

    card = EvaluatorCard(
        name="embedding",
        title="Embedding similarity",
        scale="cosine of question and chunk, 0 to 1; sees the topic, not whether the answer is there",
        lower=0.40,
        upper=0.55,
        strip_cutoff=0.30,
        calls_model=False,
        cost="no model call, about 30 ms a chunk",
    )

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @classmethod
    def build(cls, parts: EvaluatorParts) -> Self:
        return cls(parts.embedder)

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        started = time.perf_counter()
        cosines = {p.id: cosine for p in passages if (cosine := p.score("cosine")) is not None}
        unknown = [passage for passage in passages if passage.id not in cosines]
        if unknown:
            asked = self._embedder.embed_question(question)
            vectors = self._embedder.embed_texts([passage.text for passage in unknown])
            cosines |= {p.id: measure_cosine(asked, vector) for p, vector in zip(unknown, vectors, strict=True)}
        each = (time.perf_counter() - started) / max(len(passages), 1)
        is_english = self._embedder.name == MINILM
        return tuple(
            Grade(
                passage.id,
                min(max(cosines[passage.id], 0.0), 1.0),
                reason=f"cosine {cosines[passage.id]:.2f} between question and text",
                parts=(("cosine", cosines[passage.id]),),
                seconds=each,
                caution=less_sure(question, passage.text) if is_english else "",
            )
            for passage in passages
        )


def measure_cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """In -1..1, up to rounding; 0 when either vector is all zeros."""
    norms = math.hypot(*a) * math.hypot(*b)
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / norms if norms else 0.0

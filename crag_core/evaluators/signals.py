"""The signals of description 003, for each passage alone. No model call."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Self

from crag_core.base.errors import EmbeddingUnavailable
from crag_core.base.protocols import Cancel, Embedder
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage, Scores
from crag_core.decision.crag import mean
from crag_core.decision.signals import SignalMeter
from crag_core.evaluators.embedding import measure_cosine
from crag_core.evaluators.shared.parts import EvaluatorParts

WEIGHTS: Scores = (("relevance", 0.4), ("keyword_coverage", 0.3), ("agreement", 0.3))

Vectors = Sequence[Sequence[float]]


class SignalsEvaluator:
    """Weighs a passage's cosine, its share of the question's words, and its mean cosine with the other passages.

    Cosines below 0 count as 0. What cannot be had (agreement of a passage that stands alone, any cosine without an
    embedding model) is left out and its weight shared out. The policy `signals` itself decides by the whole set.
    """

    card = EvaluatorCard(
        name="signals",
        title="Signals",
        scale="weighted sum of cosine, keyword coverage and agreement with the other chunks, 0 to 1",
        lower=0.30,
        upper=0.70,
        strip_cutoff=0.50,
        calls_model=False,
        cost="no model call, about 30 ms a chunk",
    )

    def __init__(self, meter: SignalMeter, embedder: Embedder) -> None:
        self._meter = meter
        self._embedder = embedder

    @classmethod
    def build(cls, parts: EvaluatorParts) -> Self:
        return cls(parts.meter, parts.embedder)

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        started = time.perf_counter()
        recorded = [passage.score("cosine") for passage in passages]
        vectors = self._embed(passages) if len(passages) > 1 or None in recorded else None
        asked = self._embedder.embed_question(question) if vectors is not None and None in recorded else ()
        measured = []
        for place, (passage, relevance) in enumerate(zip(passages, recorded, strict=True)):
            if relevance is None and vectors is not None:
                relevance = measure_cosine(asked, vectors[place])
            covered = dict(self._meter.measure(question, (passage,)))["keyword_coverage"]
            signals = (relevance, covered, _agreement(place, () if vectors is None else vectors))
            measured.append(tuple((name, value) for (name, _), value in zip(WEIGHTS, signals, strict=True)))
        each = (time.perf_counter() - started) / max(len(passages), 1)
        return tuple(_grade(passage, signals, each) for passage, signals in zip(passages, measured, strict=True))

    def _embed(self, passages: Sequence[Passage]) -> Vectors | None:
        try:
            return self._embedder.embed_texts([passage.text for passage in passages])
        except EmbeddingUnavailable:
            return None


def _agreement(place: int, vectors: Vectors) -> float | None:
    others = [measure_cosine(vectors[place], vector) for other, vector in enumerate(vectors) if other != place]
    return math.fsum(others) / len(others) if others else None


def _grade(passage: Passage, signals: tuple[tuple[str, float | None], ...], seconds: float) -> Grade:
    parts = tuple((name, min(max(value, 0.0), 1.0)) for name, value in signals if value is not None)
    reason = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in parts)
    return Grade(passage.id, mean(dict(parts), dict(WEIGHTS)), reason, parts, seconds=seconds)

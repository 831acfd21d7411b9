"""The signals of description 003 for each passage alone, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Event

import pytest

from crag_core.base.errors import EmbeddingUnavailable
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.decision.signals import SignalMeter
from crag_core.evaluators.signals import SignalsEvaluator
from tests.fakes import passage

QUESTION = "ferry fare"  # two words: a passage holds 0, half or all of them


class PlaneEmbedder:
    """A text lies at the angle (degrees) that it ends with; the question lies at 0."""

    name = "plane"

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.texts: list[str] = []

    def embed_question(self, text: str) -> Sequence[float]:
        self.questions.append(text)
        return (3.0, 0.0)

    def embed_texts(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.texts += texts
        angles = [math.radians(float(text.split()[-1])) for text in texts]
        return [(math.cos(angle), math.sin(angle)) for angle in angles]


class NoEmbedder(PlaneEmbedder):
    def embed_texts(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        raise EmbeddingUnavailable("The embedding model cannot be loaded.")


def grade(*found: Passage, embedder: PlaneEmbedder | None = None) -> tuple[Grade, ...]:
    return SignalsEvaluator(SignalMeter(), embedder or PlaneEmbedder()).grade(QUESTION, found, Event())


def test_three_signals_are_weighed_for_each_passage() -> None:
    first, second, third = grade(passage(1, "The ferry fare 0"), passage(2, "A ferry 60"), passage(3, "Cats 90"))
    assert dict(first.parts) == pytest.approx({"relevance": 1.0, "keyword_coverage": 1.0, "agreement": 0.25})
    assert first.score == pytest.approx(0.4 * 1.0 + 0.3 * 1.0 + 0.3 * 0.25)
    agreement = (0.5 + math.cos(math.radians(30))) / 2
    assert dict(second.parts) == pytest.approx({"relevance": 0.5, "keyword_coverage": 0.5, "agreement": agreement})
    assert second.score == pytest.approx(0.4 * 0.5 + 0.3 * 0.5 + 0.3 * agreement)
    assert third.score == pytest.approx(0.3 * math.cos(math.radians(30)) / 2)
    assert first.reason == "relevance 1.00, keyword coverage 1.00, agreement 0.25"
    assert [one.passage_id for one in (first, second, third)] == ["p1", "p2", "p3"]


def test_a_passage_alone_has_no_agreement_and_its_weight_is_shared_out() -> None:
    only = grade(passage(1, "A ferry 60"))[0]
    assert dict(only.parts) == pytest.approx({"relevance": 0.5, "keyword_coverage": 0.5})
    assert only.score == pytest.approx(0.5)


def test_the_cosine_of_the_retriever_is_reused() -> None:
    embedder = PlaneEmbedder()
    found = [passage(n, "A ferry 60", scores=(("cosine", 0.9), ("rrf", 0.03))) for n in (1, 2)]
    for one in grade(*found, embedder=embedder):
        assert dict(one.parts) == pytest.approx({"relevance": 0.9, "keyword_coverage": 0.5, "agreement": 1.0})
    assert embedder.questions == [], "the vectors are needed for the agreement, the question's is not"


def test_without_an_embedding_model_what_can_be_had_is_weighed() -> None:
    found = (passage(1, "The ferry fare 0"), passage(2, "A ferry 60", scores=(("cosine", 0.9),)))
    bare, known = grade(*found, embedder=NoEmbedder())
    assert (dict(bare.parts), bare.score) == ({"keyword_coverage": 1.0}, 1.0)
    assert dict(known.parts) == {"relevance": 0.9, "keyword_coverage": 0.5}
    assert known.score == pytest.approx((0.4 * 0.9 + 0.3 * 0.5) / 0.7)

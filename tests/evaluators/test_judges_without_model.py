"""The evaluators that ask no language model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Event

import pytest

from crag_core.decision.signals import SignalMeter
from crag_core.evaluators import EVALUATORS, cards
from crag_core.evaluators.embedding import EmbeddingEvaluator
from crag_core.evaluators.heuristic import HeuristicEvaluator
from tests.fakes import QUESTION, passage


class PlaneEmbedder:
    """A text is an angle in degrees; the question lies at 0."""

    name = "plane"

    def __init__(self, **angles: float) -> None:
        self.angles = angles
        self.questions: list[str] = []
        self.texts: list[str] = []

    def embed_question(self, text: str) -> Sequence[float]:
        self.questions.append(text)
        return (2.0, 0.0)

    def embed_texts(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.texts += texts
        return [
            (math.cos(math.radians(self.angles[text])), math.sin(math.radians(self.angles[text]))) for text in texts
        ]


def test_embedding_grades_by_cosine_and_never_below_zero() -> None:
    embedder = PlaneEmbedder(near=0, slanted=60, across=90, opposite=180)
    found = [passage(n, text) for n, text in enumerate(embedder.angles, start=1)]
    grades = EmbeddingEvaluator(embedder).grade(QUESTION, found, Event())
    assert [grade.passage_id for grade in grades] == ["p1", "p2", "p3", "p4"]
    assert [grade.score for grade in grades] == pytest.approx([1.0, 0.5, 0.0, 0.0])
    assert dict(grades[3].parts)["cosine"] == pytest.approx(-1.0), "the part keeps what was measured"
    assert "0.50" in grades[1].reason
    assert embedder.questions == [QUESTION]


def test_embedding_reuses_the_cosine_of_the_retriever() -> None:
    embedder = PlaneEmbedder(new=60)
    found = [passage(1, "known", scores=(("cosine", 0.75), ("rrf", 0.03))), passage(2, "new")]
    grades = EmbeddingEvaluator(embedder).grade(QUESTION, found, Event())
    assert [grade.score for grade in grades] == pytest.approx([0.75, 0.5])
    assert embedder.texts == ["new"]


def test_heuristic_weighs_the_criteria_of_one_passage() -> None:
    text = " ".join(["ferry Vennick leave"] + ["word"] * 74)  # 77 words: 100 tokens
    found = [passage(1, text, scores=(("cosine", 0.5),))]
    grade = HeuristicEvaluator(SignalMeter(frozenset({"when", "does", "the"}))).grade(QUESTION, found, Event())[0]
    assert dict(grade.parts) == pytest.approx(
        {"keyword_overlap": 1.0, "coherence": 0.5, "length_adequacy": 1.0, "diversity": 1.0}
    )
    assert grade.score == pytest.approx(0.30 + 0.40 * 0.5 + 0.15 + 0.15)
    assert "keyword overlap 1.00" in grade.reason and "coherence 0.50" in grade.reason


def test_heuristic_shares_out_the_weight_of_a_cosine_that_is_missing() -> None:
    text = " ".join(["ferry Vennick leave"] + ["word"] * 74)
    grade = HeuristicEvaluator(SignalMeter(frozenset({"when", "does", "the"}))).grade(
        QUESTION, [passage(1, text)], Event()
    )[0]
    assert "coherence" not in dict(grade.parts)
    assert grade.score == pytest.approx(1.0)


def test_cards_are_registered_under_their_names_with_sound_thresholds() -> None:
    without = {"cross-encoder", "embedding", "heuristic", "signals"}
    assert set(EVALUATORS) == without | {"llm", "llm-logprob", "llm-batch", "llm-list"}
    for name, card in cards().items():
        assert card.name == name and card.title and card.scale and card.cost
        assert 0.0 <= card.lower < card.upper <= 1.0
        assert 0.0 < card.strip_cutoff < 1.0
    asking = {name: card.batch for name, card in cards().items() if card.calls_model}
    assert asking == {"llm": 1, "llm-logprob": 1, "llm-batch": 5, "llm-list": 20}, "chunks a call"

"""The evaluators that ask no language model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Event

import pytest

from crag_core.base.errors import EmbeddingUnavailable
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.decision.signals import SignalMeter
from crag_core.evaluators import EVALUATORS, cards
from crag_core.evaluators.embedding import EmbeddingEvaluator
from crag_core.evaluators.heuristic import HeuristicEvaluator
from crag_core.evaluators.shared.parts import less_sure
from crag_core.evaluators.signals import SignalsEvaluator
from tests.fakes import QUESTION, passage


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


def test_embedding_grades_by_cosine_and_never_below_zero() -> None:
    embedder = PlaneEmbedder()
    found = [passage(n, f"at {angle}") for n, angle in enumerate((0, 60, 90, 180), start=1)]
    grades = EmbeddingEvaluator(embedder).grade(QUESTION, found, Event())
    assert [grade.passage_id for grade in grades] == ["p1", "p2", "p3", "p4"]
    assert [grade.score for grade in grades] == pytest.approx([1.0, 0.5, 0.0, 0.0])
    assert dict(grades[3].parts)["cosine"] == pytest.approx(-1.0), "the part keeps what was measured"
    assert "0.50" in grades[1].reason
    assert embedder.questions == [QUESTION]


def test_whose_language_makes_a_grade_less_sure_is_said() -> None:
    german, english = "Wann ist das Haus für die Gäste geöffnet?", "When is the house open for the guests?"
    assert less_sure(english, german).startswith("less sure of a chunk in German")
    assert less_sure(german, english).startswith("less sure of a question in German") and not less_sure(
        english, english
    )


def test_embedding_reuses_the_cosine_of_the_retriever() -> None:
    embedder = PlaneEmbedder()
    found = [passage(1, "known", scores=(("cosine", 0.75), ("rrf", 0.03))), passage(2, "at 60")]
    grades = EmbeddingEvaluator(embedder).grade(QUESTION, found, Event())
    assert [grade.score for grade in grades] == pytest.approx([0.75, 0.5])
    assert embedder.texts == ["at 60"]


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


# --- signals ---------------------------------------------------------------------------------------------------------


def grade(*found: Passage, embedder: PlaneEmbedder | None = None) -> tuple[Grade, ...]:
    return SignalsEvaluator(SignalMeter(), embedder or PlaneEmbedder()).grade("ferry fare", found, Event())


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


# --- cards ------------------------------------------------------------------------------------------------------------


def test_cards_are_registered_under_their_names_with_sound_thresholds() -> None:
    without = {"cross-encoder", "embedding", "heuristic", "signals"}
    assert set(EVALUATORS) == without | {"llm", "llm-logprob", "llm-batch", "llm-list"}
    for name, card in cards().items():
        assert card.name == name and card.title and card.scale and card.cost
        assert 0.0 <= card.lower < card.upper <= 1.0
        assert 0.0 < card.strip_cutoff < 1.0
    asking = {name: card.batch for name, card in cards().items() if card.calls_model}
    assert asking == {"llm": 1, "llm-logprob": 1, "llm-batch": 5, "llm-list": 20}, "chunks a call"

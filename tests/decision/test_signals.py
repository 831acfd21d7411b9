"""The measures of descriptions 000 and 003, worked out by hand."""

import pytest

from crag_core.decision.crag import mean
from crag_core.decision.signals import CRITERIA, SignalMeter
from tests.builders import passage

STOP_WORDS = frozenset(["what", "does", "the", "is", "for", "der", "die", "was"])
METER = SignalMeter(STOP_WORDS)


def measure(question: str, *texts: str, agreement: float | None = None) -> dict[str, float]:
    found = tuple(passage(f"p{number}", text) for number, text in enumerate(texts))
    return dict(METER.measure(question, found, agreement))


@pytest.mark.parametrize(
    ("question", "text", "overlap", "coverage"),
    [
        # keywords ferry, cost; words what, does, the, ferry, cost
        ("What does the ferry cost?", "The ferry is slow.", 1 / 2, 2 / 5),
        ("What does the ferry cost?", "The FERRY does cost what it takes.", 1.0, 1.0),
        ("What does the ferry cost?", "Cats sleep.", 0.0, 0.0),
        # part of a word counts, as described
        ("ferry ticket", "Ferryboats need no tickets", 1.0, 1.0),
        # words of one or two letters are no keywords
        ("is it on?", "on", 0.0, 1 / 3),
        # a question without any keyword
        ("???", "Text", 0.0, 0.0),
        # a repeated keyword counts twice in the overlap, once in the coverage
        ("ferry ferry cost", "A ferry.", 2 / 3, 1 / 2),
    ],
)
def test_words_of_the_question_found_in_the_text(question: str, text: str, overlap: float, coverage: float) -> None:
    found = measure(question, text)
    assert found["keyword_overlap"] == pytest.approx(overlap)
    assert found["keyword_coverage"] == pytest.approx(coverage)


def test_words_are_looked_for_in_all_passages_together() -> None:
    assert measure("ferry cost", "A ferry.", "The cost.")["keyword_overlap"] == 1.0


def test_german_keywords() -> None:
    found = measure("Was kostet die Fähre?", "DIE FÄHRE FÄHRT UM ACHT.")
    assert found["keyword_overlap"] == pytest.approx(1 / 2)
    assert METER.keywords("Was ist Öl?") == ["ist", "öl"]


def test_keywords_of_a_script_without_spaces_are_character_pairs() -> None:
    assert METER.keywords("東京都の人口") == ["東京", "京都", "都の", "の人", "人口"]
    assert measure("東京都の人口", "東京都は大きい。")["keyword_overlap"] == pytest.approx(2 / 5)


@pytest.mark.parametrize(
    ("cosines", "coherence"),
    [
        ((0.8,), 0.8),
        ((0.9, 0.7), 0.8 * (1 - 0.01)),
        ((1.0, 0.0), 0.5 * (1 - 0.25)),
        ((0.92, 0.92, 0.92), 0.92),
        ((1.0, -1.0), 0.0),
        ((1.0, 1.0, -1.0), 1 / 3 * (1 - 0.3)),  # variance 8/9, capped at 0.3
        ((-0.5,), 0.0),
    ],
)
def test_coherence_is_the_mean_less_the_capped_variance(cosines: tuple[float, ...], coherence: float) -> None:
    found = tuple(passage(f"p{i}", scores=(("cosine", cosine),)) for i, cosine in enumerate(cosines))
    assert dict(METER.measure("ferry", found))["coherence"] == pytest.approx(coherence)


def test_coherence_is_left_out_where_no_cosine_was_recorded() -> None:
    found = (passage("p1", scores=(("bm25", 7.0),)),)
    assert "coherence" not in dict(METER.measure("ferry", found))


@pytest.mark.parametrize(
    ("words", "adequacy"),
    [
        ((10,), 0.13),
        ((100,), 1.0),
        ((7,), 0.09),  # 9.1 tokens, rounded down
        ((50, 50), 0.65),
        ((200, 0), 1.0),
        ((0,), 0.0),
    ],
)
def test_length_is_measured_against_a_hundred_tokens_a_passage(words: tuple[int, ...], adequacy: float) -> None:
    texts = ["word " * count for count in words]
    assert measure("ferry", *texts)["length_adequacy"] == pytest.approx(adequacy)


@pytest.mark.parametrize(("sources", "diversity"), [("aaaa", 0.25), ("aabb", 0.5), ("abcd", 1.0), ("a", 1.0)])
def test_diversity_is_the_share_of_different_sources(sources: str, diversity: float) -> None:
    found = tuple(passage(f"p{i}", source=name) for i, name in enumerate(sources))
    assert dict(METER.measure("ferry", found))["diversity"] == diversity


@pytest.mark.parametrize(("measured", "agreement"), [(0.6, 0.6), (1.2, 1.0), (-0.2, 0.0)])
def test_agreement_is_the_retrievers_within_bounds(measured: float, agreement: float) -> None:
    assert measure("ferry", "Text", agreement=measured)["agreement"] == agreement


def test_agreement_is_left_out_where_there_are_no_vectors() -> None:
    assert "agreement" not in measure("ferry", "Text")


def test_the_criteria_are_those_of_description_000() -> None:
    assert dict(CRITERIA) == {"keyword_overlap": 0.30, "coherence": 0.40, "length_adequacy": 0.15, "diversity": 0.15}


def test_the_two_examples_of_description_000() -> None:
    good = "Async patterns in Python use asyncio library for concurrent execution"  # 10 words, 13 tokens
    found = METER.measure("Python async patterns", (passage("p", good, scores=(("cosine", 0.92),)),))
    assert mean(dict(found), dict(CRITERIA)) == pytest.approx(0.30 + 0.368 + 0.0195 + 0.15)
    poor = "React components use hooks for state management"  # 7 words, 9 tokens
    found = METER.measure("Kubernetes deployment strategies", (passage("p", poor, scores=(("cosine", 0.35),)),))
    assert mean(dict(found), dict(CRITERIA)) == pytest.approx(0.0 + 0.14 + 0.0135 + 0.15)


def test_weights_of_missing_signals_are_shared_out() -> None:
    weights = {"a": 0.5, "b": 0.3, "c": 0.2}
    assert mean({"a": 1.0, "b": 0.5, "c": 0.0}, weights) == pytest.approx(0.65)
    assert mean({"a": 1.0, "c": 0.0}, weights) == pytest.approx(0.5 / 0.7)
    assert mean({"b": 0.4, "other": 1.0}, weights) == pytest.approx(0.4)

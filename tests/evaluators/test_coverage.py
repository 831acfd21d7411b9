"""How much of a question stands in a text, worked out by hand."""

from __future__ import annotations

import math

import pytest

from crag_core.evaluators.shared.model_files import Rarity, coverage

RARITY = Rarity(99, {"ferry": 49, "leaves": 9, "the": 99})
STOP_WORDS = frozenset({"when", "does"})


def share(question: str, text: str, rarity: Rarity = RARITY) -> float:
    return coverage(rarity.weigh(question, STOP_WORDS), text)


def test_rare_words_weigh_more() -> None:
    assert RARITY.idf("ferry") == pytest.approx(math.log(100 / 50))
    assert RARITY.idf("leaves") == pytest.approx(math.log(100 / 10))
    assert RARITY.idf("vennick") == pytest.approx(math.log(100)), "never seen"
    assert RARITY.idf("the") == 0.0


def test_coverage_is_a_share_of_the_weight_not_of_the_words() -> None:
    whole = math.log(2) + math.log(10) + math.log(100)
    question = "When does the ferry to Vennick leaves"  # "to" is no stop word here: never seen, log(100)
    assert share(question, "The ferry.") == pytest.approx(math.log(2) / (whole + math.log(100)))
    assert share("ferry Vennick leaves", "VENNICK, a village") == pytest.approx(math.log(100) / whole)
    assert share("ferry Vennick leaves", "Leaves of Vennick's ferry, Vennick") == pytest.approx(1.0)


def test_a_word_counts_once_however_often_it_is_asked_or_told() -> None:
    assert share("ferry ferry ferry Vennick", "ferry ferry") == share("Vennick ferry", "ferry")


def test_only_whole_words_count() -> None:
    assert share("ferry", "ferryman") == 0.0


@pytest.mark.parametrize("question", ["", "???", "When does", "the", "😀"])
def test_question_without_weight_is_covered_by_nothing(question: str) -> None:
    assert share(question, "When does the ferry leave?") == 0.0


def test_nothing_known_of_any_word_is_no_weight_at_all() -> None:
    assert share("ferry", "ferry", Rarity(0, {})) == 0.0

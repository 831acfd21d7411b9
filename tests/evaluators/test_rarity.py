"""How rare a word is, and what rarity.json must not be."""

from __future__ import annotations

import math

import pytest

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.evaluators.shared.model_files import Rarity, parse_rarity

RARITY = Rarity(99, {"ferry": 49, "leaves": 9, "the": 99})


def test_rare_words_weigh_more() -> None:
    assert RARITY.idf("ferry") == pytest.approx(math.log(100 / 50))
    assert RARITY.idf("leaves") == pytest.approx(math.log(100 / 10))
    assert RARITY.idf("vennick") == pytest.approx(math.log(100)), "never seen"
    assert RARITY.idf("the") == 0.0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", r"rarity\.json: "),
        ('{"documents": 3, "words": ["a"]}', r"rarity\.json: expected a number of"),
        ('{"documents": 3, "words": {"a": 4}}', r"number from 0 to 3"),
        ('{"documents": 3, "words": {"a": true}}', r"number from 0 to 3"),
    ],
)
def test_what_is_no_list_of_words_is_told(text: str, told: str) -> None:
    with pytest.raises(EvaluatorUnavailable, match=told):
        parse_rarity(text.encode())

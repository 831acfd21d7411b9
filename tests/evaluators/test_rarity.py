"""How rare a word is, and what rarity.json must not be."""

from __future__ import annotations

import pytest

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.evaluators.shared.model_files import parse_rarity


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", r"rarity\.json: expected a number of documents"),
        ('{"documents": 3, "words": ["a"]}', r"rarity\.json: expected a number of documents"),
        ('{"documents": 3, "words": {"a": 4}}', r"rarity\.json: expected a number of documents"),
        ('{"documents": 3, "words": {"a": true}}', r"rarity\.json: expected a number of documents"),
    ],
)
def test_what_is_no_list_of_words_is_told(text: str, told: str) -> None:
    with pytest.raises(EvaluatorUnavailable, match=told):
        parse_rarity(text.encode())

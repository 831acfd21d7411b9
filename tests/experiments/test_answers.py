"""Tokens as SQuAD defines them, and containment; the expected numbers are worked out by hand."""

from __future__ import annotations

import pytest

from crag_core.experiments.comparison.outcome import contains, tokens

# --- tokens ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Eiffel Tower!", ["eiffel", "tower"]),
        ("an apple a day", ["apple", "day"]),
        ("Theory, analysis and anthems", ["theory", "analysis", "and", "anthems"]),
        ("don't", ["dont"]),
        ("“Quoted” — 20 °C…", ["quoted", "20", "c"]),
        ("It leaves at nine [1].", ["it", "leaves", "at", "nine"]),
        ("[not] one [a1] [1234]", ["not", "one", "a1", "1234"]),
        ("A", ["a"]),
        ("", []),
        ("?! — […]", []),
    ],
)
def test_tokens_are_plain_words(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京です。", ["東", "京", "で", "す"]),
        ("the 東京 Tower", ["東", "京", "tower"]),
        ("2020年のラーメン", ["2020", "年", "の", "ラ", "ー", "メ", "ン"]),
        ("서울 특별시", ["서울", "특별시"]),
        ("กรุงเทพฯ", ["กรุงเทพฯ"]),
    ],
)
def test_other_scripts_keep_their_signs(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_a_letter_and_its_accent_may_come_apart() -> None:
    assert tokens("Zu\u0308rich") == tokens("Zürich") == ["zürich"]
    assert tokens("zero\u200bwidth soft\u00adhyphen") == ["zerowidth", "softhyphen"]


# --- containment ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answers", "expected"),
    [
        ("It leaves at nine in the morning [1].", ["nine in morning"], 1.0),
        ("It leaves at nine in the morning [1].", ["nine morning"], 0.0),
        ("It leaves at nine in the morning [1].", ["ten", "Nine"], 1.0),
        ("ninety", ["nine"], 0.0),
        ("It leaves at nine [1] thirty.", ["nine thirty"], 1.0),
        ("See [1] and [9].", ["9"], 0.0),
        ("This is 東京都です。", ["東京"], 1.0),
        ("This is 東北京都です。", ["東京"], 0.0),
        ("nine", ["nine in the morning"], 0.0),
        ("", ["nine"], 0.0),
        ("nine", ["", "?"], 0.0),
    ],
)
def test_containment_by_hand(text: str, answers: list[str], expected: float) -> None:
    assert contains(text, answers) == expected

"""Exact match and token F1 as SQuAD defines them, and containment; the expected numbers are worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.experiments.comparison.outcome import contains, exact, token_f1, tokens

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


# --- exact match ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answers", "expected"),
    [
        ("The cat.", ["cat"], 1.0),
        ("cat", ["a cat", "the dog"], 1.0),
        ("cat dog", ["dog cat"], 0.0),
        ("the cat sat", ["cat"], 0.0),
        ("Nine euros [1].", ["nine Euros"], 1.0),
        ("東京。", ["東京"], 1.0),
        ("किताब", ["कताब"], 0.0),
        ("A", ["A"], 1.0),
        ("The", ["A"], 0.0),
        ("", [""], 1.0),
    ],
)
def test_exact_match_by_hand(text: str, answers: list[str], expected: float) -> None:
    assert exact(text, answers) == expected


# --- F1 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answers", "expected"),
    [
        ("cat sat", ["the cat"], 2 / 3),  # precision 1/2, recall 1
        ("nine", ["nine in the morning"], 1 / 2),  # precision 1, recall 1/3
        ("the cat sat on the mat", ["a cat on a mat"], 6 / 7),  # 3 of 4 and 3 of 3
        ("cat cat cat", ["cat"], 1 / 2),  # a token counts as often as both have it: 1 of 3 and 1 of 1
        ("It leaves at nine [1].", ["nine"], 2 / 5),  # 1 of 4 and 1 of 1
        ("nine", ["ten", "nine o'clock", "nine thirty five"], 2 / 3),  # the best: 1 of 1 and 1 of 2
        ("東京", ["東京都"], 4 / 5),  # sign by sign: 2 of 2 and 2 of 3
        ("東京タワー", ["京都"], 2 / 7),  # 1 of 5 and 1 of 2
        ("", ["nine"], 0.0),
        ("nine", [""], 0.0),
        ("?", ["!"], 1.0),  # both without any token, as SQuAD has it
    ],
)
def test_f1_by_hand(text: str, answers: list[str], expected: float) -> None:
    assert token_f1(text, answers) == pytest.approx(expected)


WORDS = st.text(alphabet="ab cd.東京[1]", max_size=12)


@given(WORDS, WORDS)
def test_f1_lies_between_containment_of_nothing_and_exact_match(one: str, other: str) -> None:
    found = token_f1(one, [other])
    assert 0.0 <= found <= 1.0 and found == token_f1(other, [one])
    assert exact(one, [other]) <= found
    assert exact(one, [one]) == token_f1(one, [one]) == 1.0


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

"""Which texts the trained evaluator reads, in which windows, and what its list of rare words must not be."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.evaluators.shared.model_files import parse_rarity
from crag_core.evaluators.shared.pair_encoder import WordPieces, cut_windows, why_unread


def letters(count: int) -> WordPieces:
    """One piece a letter, a space between two."""
    signs = [chr(ord("a") + number % 26) for number in range(count)]
    return WordPieces(" ".join(signs), range(count), [(2 * number, 2 * number + 1) for number in range(count)])


def test_windows_overlap_and_the_last_one_is_not_short() -> None:
    found = cut_windows(letters(9), 6, 2)
    assert [window.text for window in found] == ["a b c d e f", "d e f g h i"]
    assert [window.ids for window in found] == [(0, 1, 2, 3, 4, 5), (3, 4, 5, 6, 7, 8)]
    assert [window.start for window in found] == [0, 3]


@given(count=st.integers(1, 200), room=st.integers(1, 40), overlap=st.integers(0, 39))
def test_every_piece_is_read_in_order_with_its_neighbours(count: int, room: int, overlap: int) -> None:
    overlap = min(overlap, room - 1)
    found = cut_windows(letters(count), room, overlap)
    assert {piece for window in found for piece in window.ids} == set(range(count))
    assert all(len(window.ids) == min(room, count) for window in found)
    for one, following in pairwise(found):
        assert one.ids[0] < following.ids[0], "each goes on"
        assert len(set(one.ids) & set(following.ids)) >= overlap


def seen(text: str) -> WordPieces:
    return WordPieces(text, [1] * 10, [(0, 1)] * 10, 0)


@pytest.mark.parametrize(
    "text",
    [
        "The ferry leaves at nine.",
        "Die Fähre fährt um neun ab; größere Übel.",
        "Vapur dokuzda kalkıyor, ığüşöç İ.",
        "Phà rời bến lúc chín giờ.",
        "ＦＵＬＬ ｗｉｄｔｈ",
        "12:45, 3 + 4 = 7",
        "",
        "α is the angle of the bow",
    ],
)
def test_latin_script_and_texts_without_letters_are_judged(text: str) -> None:
    assert why_unread(seen(text), "text") == ""


@pytest.mark.parametrize(
    "text",
    [
        "Паром уходит в девять.",
        "Το πλοίο φεύγει στις εννέα.",
        "تغادر العبارة في التاسعة",
        "המעבורת",
        "नौका नौ बजे",
        "フェリーは九時",
    ],
)
def test_other_scripts_are_refused_though_their_letters_are_in_the_vocabulary(text: str) -> None:
    told = why_unread(seen(text), "question")
    assert "100% of the letters of this question are of another" in told
    assert "Latin script" in told


@pytest.mark.parametrize(
    "text", ["{", *(f'{{"documents": 3, "words": {words}}}' for words in ('["a"]', '{"a": 4}', '{"a": true}'))]
)
def test_what_is_no_list_of_words_is_told(text: str) -> None:
    with pytest.raises(EvaluatorUnavailable, match=r"rarity\.json: expected a number of documents"):
        parse_rarity(text.encode())

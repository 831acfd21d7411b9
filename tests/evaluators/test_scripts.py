"""Which texts the trained evaluator judges, and what it says of the others."""

from __future__ import annotations

import pytest

from crag_core.evaluators.shared.pair_encoder import Pieces, why_unread


def seen(text: str, pieces: int = 10, unknown: int = 0) -> Pieces:
    return Pieces(text, [1] * pieces, [(0, 1)] * pieces, unknown)


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

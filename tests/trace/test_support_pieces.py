"""What of the evidence stands behind a sentence: the pieces, the match, and what is said of it."""

import pytest

from crag_core.base.protocols import Piece
from crag_core.base.types.answers import Support
from crag_core.base.types.knowledge import Excerpt
from crag_core.trace.grounding.citation_check import (
    WORDS,
    PieceSet,
    lacking,
    match,
    pieces_of,
    short_sum,
    summed_up,
    supported_elsewhere,
)
from crag_core.trace.grounding.claims import content_of, names_in
from tests.builders import passage, strips_of

FERRY = Piece("p1#0", "The ferry to Vennick leaves at nine from pier 3.", 1)
DOGS = Piece("p1#1", "Dogs travel free of charge on a leash.", 1)
YACHT = Piece("p2#0", "A yacht of ten metres pays 14 pounds a night.", 2)
SAME = Piece("p3#0", "Dogs travel free, on a leash.", 3)
HELD = PieceSet((FERRY, DOGS, YACHT, SAME))


def look_up(claim: str, cited: tuple[int, ...] = ()):  # type: ignore[no-untyped-def]
    weights = dict.fromkeys(content_of(claim, {"the", "a", "of", "at"}), 1.0)
    return match(weights, names_in(claim, {"the"}), HELD, range(len(HELD.pieces)), cited)


# --- pieces -----------------------------------------------------------------------------------------------------------


def test_pieces_are_the_strips_of_an_excerpt_under_its_number() -> None:
    fares, times = passage("p1", "Adults pay nine. Dogs pay half."), passage("p2", "It leaves at eight.")
    strips = (*strips_of(fares, ("Adults pay nine.", 0.5), ("Dogs pay half.", 0.1)), *strips_of(times, (times.text, 1)))
    excerpts = (Excerpt(times, times.text, ("p2#0",)), Excerpt(fares, "Dogs pay half.", ("p1#1",)))
    assert pieces_of(excerpts, strips) == (Piece("p2#0", times.text, 1), Piece("p1#1", "Dogs pay half.", 2))


def test_pieces_of_a_whole_passage_are_its_recorded_strips_else_its_sentences_under_its_own_id() -> None:
    known, unknown = passage("p1", "Adults pay nine. Dogs pay half."), passage("p2", "It leaves at eight. It is white.")
    strips = strips_of(known, ("Adults pay nine.", None), ("Dogs pay half.", 0.4))
    found = pieces_of((Excerpt(known, known.text), Excerpt(unknown, unknown.text)), strips)
    assert [(piece.id, piece.text, piece.excerpt) for piece in found] == [
        ("p1#0", "Adults pay nine.", 1),
        ("p1#1", "Dogs pay half.", 1),
        ("p2", "It leaves at eight.", 2),
        ("p2", "It is white.", 2),
    ]


# --- matching ---------------------------------------------------------------------------------------------------------


def test_cited_excerpts_come_first_where_they_hold_about_as_much() -> None:
    claim = "dogs travel free on a leash"
    assert [HELD.pieces[at].excerpt for at in look_up(claim).places] == [1]
    assert [HELD.pieces[at].excerpt for at in look_up(claim, cited=(3,)).places] == [3]
    assert [HELD.pieces[at].excerpt for at in look_up(claim, cited=(2, 9)).places] == [1], "[2] does not hold it"


@pytest.mark.parametrize(
    ("claim", "missing"),
    [
        ("a ride to Vennick", ()),
        ("a ride with Vennickers", ("vennickers",)),
        ("a ride to Bergen on Vennick's ferry", ("bergen",)),
    ],
)
def test_names_that_stand_nowhere_are_told(claim: str, missing: tuple[str, ...]) -> None:
    assert look_up(claim).lacking == missing


def test_a_name_may_have_another_ending() -> None:
    held = PieceSet((Piece("p", "Die Berliner Fähre der Johnsons", 1),))
    assert held.has("berlin") and held.has("johnson") and held.has("fahren")
    assert not held.has("ber") and not held.has("johnstone") and not held.has("vennick")


# --- what is said of it -----------------------------------------------------------------------------------------------


def scored(*scores: float | None) -> tuple[Support, ...]:
    return tuple(Support(at, at + 1, score) for at, score in enumerate(scores))


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ((0.9, 0.6, 0.55, 0.1), "3 of 4 sentences are found in the evidence, of 1 not."),
        ((0.9, 0.4, 0.1, None), "1 of 3 sentences are found in the evidence, of 1 in part, of 1 not; 1 could not be "
         "checked."),
        ((1.0,), "the sentence are found in the evidence."),
        ((1.0, 0.7), "both sentences are found in the evidence."),
        ((1.0, 0.7, 0.7), "all 3 sentences are found in the evidence."),
        ((0.9, None), "1 of 1 sentence are found in the evidence; 1 could not be checked."),
        ((0.2,), "0 of 1 sentence are found in the evidence, of 1 not."),
    ],
)  # fmt: skip
def test_an_answer_that_was_checked_by_words_is_summed_up_by_them(scores: tuple[float | None, ...], told: str) -> None:
    assert summed_up(scored(*scores)) == f"The words of {told}"


def test_a_model_is_named_and_says_supported() -> None:
    assert summed_up(scored(0.9, 0.4, 0.1, None), "m") == (
        "Judged by m: 1 of 3 sentences are supported by the evidence, 1 weakly, 1 by nothing in it; 1 could not be "
        "checked."
    )
    assert summed_up(scored(1.0), "m") == "Judged by m: the sentence is supported by the evidence."
    assert summed_up(scored(None), "m") == "Judged by m: no sentence could be checked against the evidence."
    assert summed_up(()) == summed_up(scored(None)) == "No sentence could be checked against the evidence."


@pytest.mark.parametrize(
    ("pieces", "cited", "elsewhere"),
    [
        (("p1#1",), (1,), ()),
        (("p1#1",), (2,), (1,)),
        (("p1#1", "p2#0"), (2,), ()),
        (("p2#0", "p1#1"), (3, 9), (2, 1)),
        (("p2#0",), (9,), (2,)),
        (("p2#0",), (), ()),
        ((), (1,), ()),
        (("unknown",), (1,), ()),
    ],
)
def test_support_that_stands_elsewhere_than_cited_is_told(
    pieces: tuple[str, ...], cited: tuple[int, ...], elsewhere: tuple[int, ...]
) -> None:
    assert supported_elsewhere(Support(0, 1, 0.9, pieces, cited), HELD.pieces) == elsewhere


def test_what_keeps_a_sentence_weak_is_told() -> None:
    assert lacking("The ferry to Bergen leaves at 77 [1].", HELD, ("p1#0",)) == ("bergen", "77")
    assert lacking("The ferry leaves at ten from pier 4.", HELD, ("p1#0",)) == ("ten", "4")
    assert lacking("Yachts of 10-metre length pay £14.00.", HELD, ("p2#0",)) == ()
    assert lacking("Dogs do not travel free [1].", HELD, ("p1#1",)) == ("not",)
    assert lacking("Dogs travel free [7].", HELD, ("p1#1",)) == (), "the number of a citation is no fact"
    assert lacking("Yachts pay 14 pounds.", PieceSet((Piece("p", "— ⚓ …", 1),)), ("p",)) == ("14",), "no word at all"


def test_script_and_language_of_a_piece_are_its_own_or_those_of_all() -> None:
    row, german = Piece("r", "| Vennick | 3 |", 3), Piece("d", "Die Fähre ist weiß und fährt um neun ab.", 2)
    assert PieceSet((FERRY, row)).written_in == (("LATIN", "en"), ("LATIN", "en"))
    assert PieceSet((german, row)).written_in == (("LATIN", "de"), ("LATIN", "de"))
    assert PieceSet((row, row)).written_in[0] == ("LATIN", ""), "rows of names tell no language"


def test_the_short_sum_says_found_of_words_and_supported_of_a_model() -> None:
    assert short_sum(scored(0.9, 0.1), WORDS) == "words of 1 of 2 sentences found"
    assert short_sum(scored(0.9, 0.1), "m") == "1 of 2 sentences supported"

"""What each of several runs gave its answer to read: every sentence once, with who was given it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.types.knowledge import Excerpt, Knowledge
from crag_core.base.types.passages import Passage
from crag_core.decision.refine import decompose
from crag_core.view.evidence import Line, side_by_side
from tests.builders import passage
from tests.made_up_runs import SOURCES

FARES = passage("p1", "Adults pay nine euros. Dogs pay half. The sea is blue.", document_id="fares", ordinal=0)
TIMES = passage("p2", "The ferry leaves at eight. It is painted white.", document_id="times", ordinal=0)
OVERLAP = passage("p3", "The  sea is blue. Children pay nothing.", document_id="fares", ordinal=1)


def whole(*passages: Passage) -> Knowledge:
    return Knowledge(tuple(Excerpt(one, one.text) for one in passages), (), ())


def some(of: Passage, *places: int) -> Knowledge:
    chosen = [decompose(of)[place] for place in places]
    text = " ".join(strip.text for strip in chosen)
    return Knowledge((Excerpt(of, text, tuple(strip.id for strip in chosen)),), (), ())


def both(one: Knowledge, other: Knowledge) -> Knowledge:
    return Knowledge(one.internal + other.internal, one.external + other.external, ())


def marks(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """Each sentence with "x" for every run that was given it."""
    return [(line.text, "".join("x" if held else "-" for held in line.held)) for line in lines]


def test_a_sentence_is_told_once_with_every_run_that_was_given_it() -> None:
    lines = side_by_side([whole(FARES), some(FARES, 0), some(FARES, 0, 2)])
    assert marks(lines) == [
        ("Adults pay nine euros.", "xxx"),
        ("Dogs pay half.", "x--"),
        ("The sea is blue.", "x-x"),
    ]
    assert [line.differs for line in lines] == [False, True, True]
    assert [line.index for line in lines] == [0, 1, 2] and all(line.passage is FARES for line in lines)


def test_passages_stand_as_the_first_run_names_them_and_sentences_as_in_the_text() -> None:
    lines = side_by_side([whole(TIMES), both(some(FARES, 2, 0), whole(TIMES))])
    assert [line.passage.id for line in lines] == ["p2", "p2", "p1", "p1"]
    assert [line.text for line in lines[2:]] == ["Adults pay nine euros.", "The sea is blue."]


def test_a_passage_that_was_cut_holds_the_sentences_that_are_left_of_it() -> None:
    cut = Knowledge((Excerpt(FARES, "Adults pay nine euros. Dogs pay half. The se"),), (), ())
    assert marks(side_by_side([cut, whole(FARES)])) == [
        ("Adults pay nine euros.", "xx"),
        ("Dogs pay half.", "xx"),
        ("The sea is blue.", "-x"),
    ]


def test_a_sentence_in_two_passages_of_one_document_is_one_sentence() -> None:
    """Passages overlap; refinement keeps the better copy only, which is no loss to the answer."""
    plain = whole(FARES, OVERLAP)
    refined = both(some(FARES, 0), some(OVERLAP, 0))
    assert marks(side_by_side([plain, refined])) == [
        ("Adults pay nine euros.", "xx"),
        ("Dogs pay half.", "x-"),
        ("The sea is blue.", "xx"),
        ("Children pay nothing.", "x-"),
    ]
    assert len(side_by_side([some(OVERLAP, 0), plain])) == 4, "whichever chunk comes first"


@given(st.lists(st.lists(st.sampled_from(sorted(SOURCES)), unique=True, max_size=4), min_size=1, max_size=4))
def test_every_run_is_told_to_hold_exactly_what_it_was_given(given_ids: list[list[str]]) -> None:
    knowledge = [whole(*(SOURCES[id_] for id_ in ids)) for ids in given_ids]
    lines = side_by_side(knowledge)
    for place, ids in enumerate(given_ids):
        told = {(line.passage.document_id or line.passage.id, line.text) for line in lines if line.held[place]}
        owned = {(SOURCES[id_].document_id or id_, strip.text) for id_ in ids for strip in decompose(SOURCES[id_])}
        assert told == owned
    assert all(any(line.held) for line in lines)
    assert len({(line.passage.id, line.index) for line in lines}) == len(lines)

"""Long texts in windows: nothing is lost, nothing is too long."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from crag_core.evaluators.shared.pair_encoder import Pieces, cut_windows


def letters(count: int) -> Pieces:
    """One piece a letter, a space between two."""
    signs = [chr(ord("a") + number % 26) for number in range(count)]
    return Pieces(" ".join(signs), range(count), [(2 * number, 2 * number + 1) for number in range(count)])


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

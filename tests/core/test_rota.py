"""Whoever waits gets his turn: parties in turn, each in the order of what it brought, and the place told is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.concurrency.fair_queue import FairQueue

Item = tuple[str, int]


def filled(**counts: int) -> FairQueue[str, Item]:
    rota: FairQueue[str, Item] = FairQueue()
    for party, count in counts.items():
        for number in range(count):
            rota.join(party, (party, number))
    return rota


def is_of(parties: set[str]) -> Callable[[Item], bool]:
    return lambda item: item[0] in parties


def drained(rota: FairQueue[str, Item]) -> list[Item]:
    return [item for _ in range(len(rota)) if (item := rota.next()) is not None]


def test_single_call_waits_for_one_of_the_twenty_of_another() -> None:
    rota = filled(a=20, b=1, c=2)
    assert drained(rota)[:6] == [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("c", 1), ("a", 2)]
    assert len(rota) == 0 and rota.next() is None


def test_who_comes_later_goes_to_the_end_of_the_round() -> None:
    rota = filled(a=3, b=3)
    assert rota.next() == ("a", 0)
    rota.join("c", ("c", 0))
    assert drained(rota) == [("b", 0), ("a", 1), ("c", 0), ("b", 1), ("a", 2), ("b", 2)]


def test_who_cannot_have_a_turn_now_is_passed_over_and_keeps_its_place() -> None:
    rota = filled(a=1, b=2, c=1)
    assert rota.next(lambda item: item[0] != "a") == ("b", 0)
    assert rota.next(lambda item: False) is None and len(rota) == 3
    assert drained(rota) == [("a", 0), ("c", 0), ("b", 1)]


def test_a_later_item_goes_first_where_the_first_cannot() -> None:
    rota = filled(a=2, b=1)
    assert rota.next(lambda item: item != ("a", 0)) == ("a", 1)
    assert drained(rota) == [("b", 0), ("a", 0)]


def test_who_leaves_is_out_and_the_others_move_up() -> None:
    rota = filled(a=1, b=2, c=1)
    assert rota.leave("a", ("a", 0)) and not rota.leave("a", ("a", 0)) and not rota.leave("x", ("x", 0))
    assert rota.ahead("c") == 1
    assert drained(rota) == [("b", 0), ("c", 0), ("b", 1)]


def test_place_is_told_and_none_for_who_does_not_wait() -> None:
    rota = filled(a=3, b=1, c=2)
    assert [rota.ahead(party) for party in "abc"] == [0, 1, 2]
    assert [rota.ahead("a", ("a", number)) for number in range(3)] == [0, 3, 5]
    assert rota.ahead("c", ("c", 1)) == 4
    assert rota.ahead("x") is None and rota.ahead("a", ("a", 9)) is None


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from("abcd"), st.integers(1, 5)),
        st.tuples(st.just("leave"), st.sampled_from("abcd"), st.integers(0, 4)),
        st.tuples(st.just("turn"), st.sets(st.sampled_from("abcd")), st.just(0)),
    ),
    max_size=60,
)


@pytest.mark.slow
@given(EVENTS)
def test_between_two_turns_of_one_every_other_that_could_have_one_gets_one(
    events: list[tuple[str, object, int]],
) -> None:
    """Fairness as somebody sees it who knows nothing of the order that is kept."""
    rota: FairQueue[str, Item] = FairQueue()
    waiting: dict[str, list[Item]] = {party: [] for party in "abcd"}
    passed: dict[str, Counter[str]] = {party: Counter() for party in "abcd"}
    """By party, how many turns each other one has had while this one waited and could have had one."""
    count = 0
    for what, whom, number in events:
        if what == "join":
            for _ in range(number):
                count += 1
                rota.join(str(whom), (str(whom), count))
                waiting[str(whom)].append((str(whom), count))
        elif what == "leave" and len(waiting[str(whom)]) > number:
            item = waiting[str(whom)].pop(number)
            assert rota.leave(str(whom), item)
        elif what == "turn":
            assert isinstance(whom, set)
            can = {party for party in "abcd" if waiting[party]} - whom
            got = rota.next(is_of(can))
            assert (got is None) == (not can)
            if got is None:
                continue
            assert got == waiting[got[0]].pop(0), "its own in order"
            passed[got[0]].clear()
            for party in can - {got[0]}:
                passed[party][got[0]] += 1
                assert passed[party][got[0]] <= 1, f"{got[0]} had two turns while {party} waited"
        for party in "abcd":
            if not waiting[party]:
                passed[party].clear()
        assert len(rota) == sum(map(len, waiting.values()))


@given(st.dictionaries(st.sampled_from("abcde"), st.integers(1, 6), min_size=1), st.integers(0, 8))
def test_place_that_is_told_is_the_one_that_comes(counts: dict[str, int], turns: int) -> None:
    rota = filled(**counts)
    for _ in range(min(turns, len(rota) - 1)):
        rota.next()
    told = {
        (party, number): rota.ahead(party, (party, number))
        for party, count in counts.items()
        for number in range(count)
    }
    come = {item: place for place, item in enumerate(drained(rota))}
    assert {item: place for item, place in told.items() if place is not None} == come


@given(EVENTS)
def test_place_of_the_first_never_gets_worse(events: list[tuple[str, object, int]]) -> None:
    """Nobody who comes later is let in before; a turn that somebody cannot take costs its owner nothing."""
    rota: FairQueue[str, Item] = FairQueue()
    places: dict[str, int] = {}
    count = 0
    for what, whom, number in events:
        had = None
        if what == "join":
            for _ in range(number):
                count += 1
                rota.join(str(whom), (str(whom), count))
        elif what == "turn":
            assert isinstance(whom, set)
            got = rota.next(is_of(set("abcd") - whom))
            had = got and got[0]
        now = {party: place for party in "abcd" if (place := rota.ahead(party)) is not None}
        assert all(place <= places[party] for party, place in now.items() if party in places and party != had)
        places = now

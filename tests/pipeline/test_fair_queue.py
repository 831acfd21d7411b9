"""Whoever waits gets a turn: askers in turn, the tickets of each in order, and the place told is true."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.pipeline.run_queue import FairQueue, RunQueue, Ticket

_QUEUE = RunQueue(1, 1)
"""Of the tickets, which do not use it here."""


def filled(**counts: int) -> tuple[FairQueue, dict[str, list[Ticket]]]:
    queue, tickets = FairQueue(), {who: [ticket_of(who) for _ in range(count)] for who, count in counts.items()}
    for own in tickets.values():
        for ticket in own:
            queue.join(ticket)
    return queue, tickets


def ticket_of(who: str) -> Ticket:
    return Ticket(_QUEUE, who, is_patient=False)


def drained(queue: FairQueue) -> list[Ticket]:
    return [ticket for _ in range(len(queue)) if (ticket := queue.next()) is not None]


def askers(tickets: list[Ticket]) -> str:
    return "".join(str(ticket.who) for ticket in tickets)


def test_one_who_asks_once_waits_for_one_of_the_twenty_of_another() -> None:
    queue, tickets = filled(a=20, b=1, c=2)
    found = drained(queue)
    assert askers(found[:6]) == "abcaca" and [one for one in found if one.who == "a"] == tickets["a"]
    assert len(queue) == 0 and queue.next() is None


def test_who_comes_later_goes_to_the_end_of_the_round() -> None:
    queue, tickets = filled(a=3, b=3)
    assert queue.next() is tickets["a"][0]
    queue.join(ticket_of("c"))
    assert askers(drained(queue)) == "bacbab"


def test_who_leaves_is_out_and_the_others_move_up() -> None:
    queue, tickets = filled(a=1, b=2, c=1)
    for ticket in (tickets["a"][0], tickets["a"][0], ticket_of("x")):
        queue.leave(ticket)
    assert queue.before(tickets["c"][0]) == 1 and set(queue) == {*tickets["b"], *tickets["c"]}
    assert askers(drained(queue)) == "bcb"


def test_place_is_told_and_none_for_who_does_not_wait() -> None:
    queue, tickets = filled(a=3, b=1, c=2)
    assert {who: [queue.before(one) for one in own] for who, own in tickets.items()} == {
        "a": [0, 3, 5],
        "b": [1],
        "c": [2, 4],
    }
    assert queue.before(ticket_of("x")) is None and queue.before(ticket_of("a")) is None


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from("abcd"), st.integers(1, 5)),
        st.tuples(st.just("leave"), st.sampled_from("abcd"), st.integers(0, 4)),
        st.tuples(st.just("turn"), st.just(""), st.just(0)),
    ),
    max_size=60,
)


@settings(max_examples=400, deadline=None)
@given(EVENTS)
def test_between_two_turns_of_one_every_other_gets_one_and_no_place_gets_worse(
    events: list[tuple[str, str, int]],
) -> None:
    """Fairness as somebody sees it who knows nothing of the order that is kept."""
    queue = FairQueue()
    waiting: dict[str, list[Ticket]] = {who: [] for who in "abcd"}
    passed: dict[str, Counter[str]] = {who: Counter() for who in "abcd"}
    """By asker, how many turns each other one has had while this one waited."""
    places: dict[Ticket, int] = {}
    for what, whom, number in events:
        if what == "join":
            for _ in range(number):
                waiting[whom].append(ticket_of(whom))
                queue.join(waiting[whom][-1])
        elif what == "leave" and len(waiting[whom]) > number:
            queue.leave(waiting[whom].pop(number))
        elif what == "turn":
            got = queue.next()
            assert (got is None) == (not any(waiting.values()))
            if got is None:
                continue
            asker = str(got.who)
            assert got is waiting[asker].pop(0), "its own in order"
            passed[asker].clear()
            for who in set("abcd") - {asker}:
                if waiting[who]:
                    passed[who][asker] += 1
                    assert passed[who][asker] <= 1, f"{asker} had two turns while {who} waited"
        for who in "abcd":
            if not waiting[who]:
                passed[who].clear()
        assert len(queue) == sum(map(len, waiting.values()))
        now = {own[0]: place for own in waiting.values() if own and (place := queue.before(own[0])) is not None}
        assert all(place <= places.get(ticket, place) for ticket, place in now.items()), "nobody later comes first"
        places = now


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from("abcde"), st.integers(1, 6), min_size=1), st.integers(0, 8))
def test_place_that_is_told_is_the_one_that_comes(counts: dict[str, int], turns: int) -> None:
    queue, _ = filled(**counts)
    for _ in range(min(turns, len(queue) - 1)):
        queue.next()
    told = {ticket: queue.before(ticket) for ticket in queue}
    assert {ticket: place for place, ticket in enumerate(drained(queue))} == told

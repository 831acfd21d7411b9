"""The pool decides who is asked next: in turn, never one that is left out, every one again in time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.llms.server_pool import LONGEST, Pool, Turn
from tests.fakes import Hand

A, B, C = "http://a", "http://b", "http://c"


@pytest.fixture
def clock() -> Hand:
    return Hand()


def take(pool: Pool, model: str = "x", but: tuple[str, ...] = ()) -> Turn:
    turn = pool.take(model, but)
    assert turn is not None
    return turn


def fail(pool: Pool, server: str, model: str = "x") -> None:
    """A call to that very server, which fails."""
    turn = take(pool, model, tuple(one for one in pool.servers if one != server))
    assert turn.server == server
    pool.failed(turn, f"{server} is broken.")


def seconds(pool: Pool) -> list[float]:
    return [round(one.seconds, 3) for one in pool.standings(pool.servers)]


# --- in turn --------------------------------------------------------------------------------------------------------


def test_calls_one_after_the_other_go_round(clock: Hand) -> None:
    pool = Pool([A, B, C], 2, clock)
    asked = []
    for _ in range(6):
        turn = take(pool)
        asked.append(turn.server)
        pool.served(turn)
    assert asked == [A, B, C, A, B, C]
    assert [one.served for one in pool.standings("abc")] == [2, 2, 2]


def test_least_busy_is_next_and_nobody_has_more_than_the_cap(clock: Hand) -> None:
    pool = Pool([A, B], 2, clock)
    turns = [take(pool) for _ in range(4)]
    assert [turn.server for turn in turns] == [A, B, A, B]
    assert pool.take("x") is None and pool.take("y", [A]) is None, "the cap is a server's, whatever the model"
    pool.served(turns[1])
    assert take(pool).server == B
    pool.served(turns[0])
    pool.served(turns[2])
    assert [take(pool).server for _ in range(2)] == [A, A], "A has two places, B none"


def test_who_was_asked_longest_ago_and_is_busier_is_not_next(clock: Hand) -> None:
    pool = Pool([A, B], 2, clock)
    _, second = take(pool), take(pool)
    pool.served(second)
    assert take(pool).server == B


def test_call_is_not_given_twice_to_one_server(clock: Hand) -> None:
    pool = Pool([A, B], 1, clock)
    assert take(pool, but=(A,)).server == B
    assert pool.take("x", [A]) is None, "it waits for B"
    with pytest.raises(ValueError, match="not asked yet"):
        pool.take("x", [A, B])


@pytest.mark.parametrize(("servers", "at_once"), [([], 1), ([A], 0)])
def test_pool_without_servers_or_places_is_a_bug(servers: list[str], at_once: int) -> None:
    with pytest.raises(ValueError, match="expected servers"):
        Pool(servers, at_once)


# --- left out -------------------------------------------------------------------------------------------------------


def test_who_fails_is_left_out_longer_each_time_and_in_again_after_a_success(clock: Hand) -> None:
    pool = Pool([A, B], 1, clock)
    lengths = []
    for _ in range(9):
        fail(pool, A)
        lengths.append(seconds(pool)[0])
        other = take(pool)
        assert other.server == B and pool.take("x") is None, "the next waits for B, and not for A"
        pool.served(other)
        clock.now += lengths[-1]
    assert lengths == [5, 10, 20, 40, 80, 160, 300, 300, 300] and lengths[-1] == LONGEST
    assert pool.wait() is None, "its time is over"
    trial = take(pool, but=(B,))
    pool.served(trial)
    fail(pool, A)
    assert seconds(pool) == [5, 0]


def test_when_its_time_is_over_one_call_tries_it(clock: Hand) -> None:
    pool = Pool([A, B], 2, clock)
    fail(pool, A)
    assert pool.wait() == 5.0
    clock.now += 5.0
    servers = [take(pool).server for _ in range(3)]
    assert sorted(servers) == [A, B, B]
    assert pool.take("x") is None, "A has a place left, and is on trial"
    assert pool.take("x", [B]) is None


def test_trial_that_fails_keeps_it_out_and_one_that_is_given_up_tells_nothing(clock: Hand) -> None:
    pool = Pool([A, B], 2, clock)
    fail(pool, A)
    clock.now += 5.0
    pool.dropped(take(pool, but=(B,)))
    trial = take(pool, but=(B,))
    assert pool.take("x", [B]) is None
    pool.failed(trial, "still broken")
    assert seconds(pool) == [10, 0]
    assert pool.standings("ab")[0].reason == "still broken"


def test_one_server_alone_has_no_trial_which_would_only_make_calls_wait(clock: Hand) -> None:
    pool = Pool([A], 2, clock)
    fail(pool, A)
    clock.now += 5.0
    assert [take(pool).server, take(pool).server] == [A, A]
    assert pool.take("x") is None


def test_calls_that_fail_together_are_one_failure(clock: Hand) -> None:
    pool = Pool([A, B], 3, clock)
    together = [take(pool, but=(B,)) for _ in range(3)]
    for turn in together:
        pool.failed(turn, "gone")
    assert seconds(pool) == [5, 0]


def test_call_of_before_does_not_end_a_trial(clock: Hand) -> None:
    pool = Pool([A, B], 3, clock)
    old, broken = take(pool, but=(B,)), take(pool, but=(B,))
    pool.failed(broken, "gone")
    clock.now += 5.0
    trial = take(pool, but=(B,))
    pool.dropped(old)
    assert pool.take("x", [B]) is None, "the trial is still under way"
    pool.served(trial)
    assert take(pool, but=(B,)).server == A


def test_where_all_are_left_out_they_are_asked_all_the_same(clock: Hand) -> None:
    pool = Pool([A, B], 1, clock)
    fail(pool, A)
    fail(pool, B)
    first = take(pool)
    assert first.is_last_resort
    pool.failed(first, "gone")
    assert seconds(pool) == [5, 5], "what is left out is not left out for longer by that"
    second = take(pool)
    assert {first.server, second.server} == {A, B}
    pool.served(second)
    assert sum(one.failures == 0 for one in pool.standings("ab")) == 1, "who serves is in again"


def test_standing_tells_what_there_is_to_tell(clock: Hand) -> None:
    pool = Pool([A, B], 2, clock)
    pool.served(take(pool, but=(B,)))
    fail(pool, B)
    take(pool)
    clock.now += 2.0
    a, b = pool.standings(["first", "second"])
    assert (a.name, a.busy, a.served, a.failures, a.seconds, a.reason) == ("first", 1, 1, 0, 0.0, "")
    assert (b.name, b.busy, b.served, b.failures, b.seconds, b.reason) == ("second", 0, 0, 1, 3.0, f"{B} is broken.")


# --- without the model ----------------------------------------------------------------------------------------------


def test_server_without_the_model_is_left_out_for_that_model_only(clock: Hand) -> None:
    pool = Pool([A, B], 1, clock)
    pool.lacks(take(pool, "x", (B,)))
    turn = take(pool, "x")
    assert turn.server == B and pool.take("x") is None, "it waits for the one that has it"
    assert take(pool, "y").server == A
    assert [one.failures for one in pool.standings("ab")] == [0, 0]


def test_one_that_is_left_out_is_asked_before_one_that_lacks_the_model(clock: Hand) -> None:
    pool = Pool([A, B], 1, clock)
    pool.lacks(take(pool, "x", (B,)))
    fail(pool, B)
    turn = take(pool, "x")
    assert turn.server == B
    assert take(pool, "x", (B,)).server == A, "and this one before the call fails unasked"


def test_model_that_was_fetched_meanwhile_is_found_in_time(clock: Hand) -> None:
    pool = Pool([A, B], 1, clock)
    pool.lacks(take(pool, "x", (B,)))
    clock.now += LONGEST
    assert {take(pool, "x").server, take(pool, "x").server} == {A, B}


# --- whatever happens -----------------------------------------------------------------------------------------------

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.sampled_from("xxy")),
        st.tuples(st.sampled_from(["served", "answered", "failed", "lacks", "dropped"]), st.integers(0, 9)),
        st.tuples(st.just("pass"), st.floats(0.1, 400.0)),
    ),
    min_size=15,
    max_size=60,
)


class Told:
    """A pool, and what somebody who watches it knows: nothing of how it decides."""

    def __init__(self, servers: int, at_once: int) -> None:
        self.clock = Hand()
        self.pool = Pool([f"s{number}" for number in range(servers)], at_once, self.clock)
        self.under_way: list[Turn] = []
        self.lacks: dict[tuple[str, str], float] = {}

    def usable(self, model: str) -> set[str]:
        """Neither left out now nor without the model."""
        standings = self.pool.standings(self.pool.servers)
        return {
            one.name for one in standings if not one.seconds and self.clock.now >= self.lacks.get((one.name, model), 0)
        }

    def take(self, model: str) -> None:
        usable, at_once = self.usable(model), self.pool._at_once
        standings = {one.name: one for one in self.pool.standings(self.pool.servers)}
        turn = self.pool.take(model)
        if turn is None:
            assert any(one.busy for one in standings.values()), "somebody can be asked when nobody is"
            for name in usable:
                one = standings[name]
                assert one.busy == at_once or (one.failures and one.busy), "only for lack of a place, or of a trial"
            return
        assert standings[turn.server].busy < at_once
        assert turn.server in usable or not usable, "never one that is left out while another is in"
        free = [standings[name].busy for name in usable if not standings[name].failures]
        assert not usable or not free or standings[turn.server].busy <= min(free), "the least busy"
        self.under_way.append(turn)

    def end(self, how: str, number: int) -> None:
        if not self.under_way:
            return
        turn = self.under_way.pop(number % len(self.under_way))
        if how == "failed":
            self.pool.failed(turn, "broken")
        else:
            getattr(self.pool, how)(turn)
        if how == "lacks":
            self.lacks[turn.server, turn.model] = self.clock.now + LONGEST
        elif how in ("served", "answered"):
            self.lacks.pop((turn.server, turn.model), None)


@given(EVENTS, st.integers(2, 4), st.integers(1, 3))
def test_whatever_happens_the_rules_hold(events: list[tuple[str, object]], servers: int, at_once: int) -> None:
    told = Told(servers, at_once)
    for what, which in events:
        if what == "take":
            told.take(str(which))
        elif what == "pass":
            told.clock.now += float(str(which))
        else:
            told.end(what, int(str(which)))
        busy = [one.busy for one in told.pool.standings(told.pool.servers)]
        assert sum(busy) == len(told.under_way) and max(busy) <= at_once
    for turn in told.under_way:
        told.pool.dropped(turn)
    # However it came to stand: after the longest time everyone is asked again, and then nobody more than the others.
    told.clock.now += LONGEST
    asked = []
    for _ in range(3 * servers):
        turn = take(told.pool)
        asked.append(turn.server)
        told.pool.served(turn)
    assert all(sorted(asked[start : start + servers]) == sorted(told.pool.servers) for start in (0, servers))

"""So many runs at a time, the others in line as they came, out at once when stopped, refused when full."""

import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.errors import Busy
from crag_core.pipeline.run_queue import RunQueue, Ticket
from tests.stand_ins.local_server import wait_until


def is_inside(ticket: Ticket) -> bool:
    return ticket.called.is_set()


def test_so_many_are_under_way_and_the_others_wait_in_order() -> None:
    run_queue = RunQueue(2, 10)
    tickets = [run_queue.join() for _ in range(4)]
    assert [ticket.before for ticket in tickets] == [None, None, 0, 1]
    assert (run_queue.active, run_queue.waiting) == (2, 2)
    tickets[1].leave()
    assert is_inside(tickets[2]) and tickets[3].before == 0
    for ticket in tickets:
        ticket.leave()
        ticket.leave()
    assert (run_queue.active, run_queue.waiting) == (0, 0)


def test_line_that_is_full_refuses_with_what_to_do_and_loses_nothing() -> None:
    run_queue = RunQueue(1, 2)
    tickets = [run_queue.join() for _ in range(3)]
    with pytest.raises(Busy, match="expected at most 2 in line behind 1 under way, found 2") as refused:
        run_queue.join()
    assert refused.value.hint and refused.value.retryable
    patient = run_queue.join(is_patient=True)
    assert patient.before == 2 and run_queue.waiting == 3
    tickets[0].leave()
    last = run_queue.join()
    assert last.before == 2, "who is patient takes no room from others"
    last.leave()
    for ticket in tickets:
        ticket.leave()
    assert is_inside(patient)


def in_thread(ticket: Ticket, cancel: threading.Event, within: Callable[[bool], None]) -> threading.Thread:
    def work() -> None:
        with ticket.turn(cancel) as is_mine:
            within(is_mine)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_stop_takes_a_run_out_of_the_line_at_once() -> None:
    run_queue = RunQueue(1, 5)
    first, second, third = (run_queue.join() for _ in range(3))
    stop, done = threading.Event(), threading.Event()
    had: list[bool] = []

    def within(is_mine: bool) -> None:
        had.append(is_mine)
        done.wait(5.0)

    thread = in_thread(second, stop, within)
    assert third.before == 1
    stop.set()
    assert wait_until(lambda: had == [False] and third.before == 0, 60), "it is out while its run still ends"
    first.leave()
    assert is_inside(third)
    done.set()
    thread.join()
    assert is_inside(third) and run_queue.active == 1


def test_turn_is_given_back_whatever_happens_within() -> None:
    run_queue = RunQueue(1, 5)
    with pytest.raises(RuntimeError), run_queue.join().turn(threading.Event()) as is_mine:
        assert is_mine
        raise RuntimeError
    assert run_queue.active == 0


@given(st.integers(1, 3), st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=40))
def test_whatever_happens_the_first_have_their_turn_and_the_place_told_is_true(
    at_once: int, events: list[int | None]
) -> None:
    """None: one more asks; a number: one of those who are there leaves, from the line or from within."""
    run_queue = RunQueue(at_once, 4)
    there: list[Ticket] = []
    for event in events:
        if event is None:
            try:
                there.append(run_queue.join())
            except Busy:
                assert run_queue.waiting == 4 and run_queue.active == at_once
        elif there:
            there.pop(event % len(there)).leave()
        assert [one.before for one in there] == [None] * len(there[:at_once]) + list(range(len(there[at_once:])))
        assert [is_inside(one) for one in there] == [place < at_once for place in range(len(there))]
        assert (run_queue.active, run_queue.waiting) == (len(there[:at_once]), len(there[at_once:]))


@pytest.mark.parametrize(("at_once", "room"), [(0, 1), (1, -1)])
def test_turnstile_that_lets_nobody_in_is_a_bug(at_once: int, room: int) -> None:
    with pytest.raises(ValueError, match="expected at least one turn"):
        RunQueue(at_once, room)

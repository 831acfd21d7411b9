"""The time between two web searches, by a clock that only tests move."""

from __future__ import annotations

import threading
import time

import pytest

from crag_core.pipeline.run import Cooldown


class HandClock:
    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("start", [0.0, 1e9, -5.0])
def test_first_search_is_allowed_at_once(start: float) -> None:
    assert Cooldown(HandClock(start)).left(60.0) == 0.0


def test_time_runs_down_after_a_search() -> None:
    clock = HandClock(1000.0)
    cooldown = Cooldown(clock)
    cooldown.note()
    assert cooldown.left(60.0) == 60.0
    clock.now += 45.0
    assert cooldown.left(60.0) == 15.0
    clock.now += 15.0
    assert cooldown.left(60.0) == 0.0
    clock.now += 1000.0
    assert cooldown.left(60.0) == 0.0


def test_each_policy_brings_its_own_seconds() -> None:
    clock = HandClock()
    cooldown = Cooldown(clock)
    cooldown.note()
    clock.now += 10.0
    assert [cooldown.left(seconds) for seconds in (0.0, 5.0, 10.0, 30.0)] == [0.0, 0.0, 0.0, 20.0]


def test_asking_for_the_time_is_no_search() -> None:
    clock = HandClock()
    cooldown = Cooldown(clock)
    cooldown.note()
    clock.now += 30.0
    cooldown.left(60.0)
    assert cooldown.left(60.0) == 30.0


def test_last_search_counts() -> None:
    clock = HandClock()
    cooldown = Cooldown(clock)
    cooldown.note()
    clock.now += 50.0
    cooldown.note()
    assert cooldown.left(60.0) == 60.0


def test_forgetting_allows_a_search_at_once() -> None:
    cooldown = Cooldown(HandClock())
    cooldown.note()
    cooldown.forget()
    assert cooldown.left(60.0) == 0.0


def test_real_clock_goes_on_by_itself() -> None:
    cooldown = Cooldown()
    cooldown.note()
    before = cooldown.left(60.0)
    time.sleep(0.01)
    assert 59.0 < cooldown.left(60.0) < before <= 60.0


def test_many_threads_may_share_it() -> None:
    cooldown = Cooldown()
    seen: list[float] = []

    def work() -> None:
        for _ in range(300):
            cooldown.note()
            seen.append(cooldown.left(60.0))
            cooldown.forget()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 1200 and all(0.0 <= left <= 60.0 for left in seen)

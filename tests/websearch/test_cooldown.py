"""The time between two web searches, by a clock that only tests move."""

from __future__ import annotations

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

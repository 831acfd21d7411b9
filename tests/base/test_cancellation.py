"""The one event loop of all model calls and searches."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest

from crag_core.base.concurrency import cancellation


def test_threads_that_call_first_at_the_same_time_share_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    @cache
    def slow() -> object:
        time.sleep(0.02)
        return object()

    monkeypatch.setattr(cancellation, "_running_loop", slow)
    with ThreadPoolExecutor(8) as pool:
        made = [pool.submit(cancellation._loop) for _ in range(8)]
    assert len({future.result() for future in made}) == 1

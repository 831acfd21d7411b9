"""A clock that is set a year ahead or back in mid-use: no duration is negative, and nobody waits for a year."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from crag_core.base.types.web import WebOutcome
from crag_core.pipeline.run import Cooldown
from tests.faults.conftest import Open
from tests.faults.parts import QUESTION, at, broken_at, no_time_runs_backwards, searching
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.searxng_server import SearXNGServer

HOUR, DAY, YEAR = 3600.0, 86400.0, 365 * 86400.0
JUMPS = pytest.mark.parametrize("jump", [YEAR, -YEAR], ids=["ahead", "back"])
FOUND = [WebResult(f"Dues {n}", f"https://example.org/{n}", "A yacht pays 14 pounds a night.") for n in range(10)]


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock of this process by so many seconds; what only grows goes on as it did."""
    real_time, real_now = time.time, datetime.now

    def jump(seconds: float) -> None:
        class Moved(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return real_now(tz) + timedelta(seconds=seconds)

        monkeypatch.setattr(time, "time", lambda: real_time() + seconds)
        for module in ("crag_core.pipeline.run", "crag_core.retrieval.index.index_writer"):
            monkeypatch.setattr(f"{module}.datetime", Moved)

    return jump


@JUMPS
@pytest.mark.parametrize("name", ["retrieve", "grade", "search", "answer"])
def test_a_run_in_which_the_clock_jumps(
    open_bench: Open, set_clock: Callable[[float], None], jump: float, name: str
) -> None:
    with SearXNGServer(FOUND) as web:
        workbench = open_bench(web_providers="searxng", searxng_url=web.url)
        trace = workbench.engine(searching(workbench)).run(QUESTION, at(name, lambda: set_clock(jump)))
        assert broken_at(trace) == "" and trace.answer is not None and trace.web is not None
        assert trace.web.outcome is WebOutcome.USED and len(web.heard) == 1
        assert no_time_runs_backwards(trace) and trace.seconds < HOUR
        workbench.history.save(trace)
        assert workbench.history.load(trace.id) == trace
        assert workbench.audit is not None and workbench.audit.problem == ""


@JUMPS
def test_nobody_waits_for_a_year(set_clock: Callable[[float], None], jump: float) -> None:
    """The pause between web searches is counted by a clock that only grows."""
    pause = Cooldown()
    pause.note()
    set_clock(jump)
    assert 0 < pause.left(10.0) <= 10.0

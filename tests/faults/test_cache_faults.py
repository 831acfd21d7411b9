"""A grade cache that dies: it costs the grades again, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crag_core.app.workbench import Workbench
from crag_core.storage.cache import redis as redis_cache
from crag_core.trace.trace import Trace
from tests.faults.conftest import Open
from tests.faults.parts import QUESTION, at, broken_at, judged
from tests.judge import ANSWER, heard
from tests.stand_ins.ollama_server import OllamaServer
from tests.stand_ins.valkey_server import ValkeyServer


def run(workbench: Workbench, **options: Callable[[], object]) -> Trace:
    """A whole run; `grade=…` does something at the beginning of that step."""
    going = [at(name, what) for name, what in options.items()]
    trace = workbench.engine(judged(workbench)).run(QUESTION, *going)
    assert broken_at(trace) == "" and trace.answer is not None and trace.answer.text == ANSWER
    assert [grade.score for grade in trace.grades or ()] == [0.9] * 3
    return trace


def from_cache(trace: Trace) -> int:
    return sum(grade.from_cache for grade in trace.grades or ())


def problem(workbench: Workbench) -> str:
    assert workbench.cache is not None
    return workbench.cache.problem


def test_redis_killed_in_mid_run_and_back(
    open_bench: Open, server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_cache, "AWAY_S", 0.0)
    with ValkeyServer() as redis:
        workbench = open_bench(ollama_host=server.url, cache=redis.url)
        run(workbench)
        assert from_cache(run(workbench)) == 3
        died = run(workbench, grade=redis.stop)
        assert from_cache(died) == 0
        assert f"{redis.url} cannot be reached" in problem(workbench) and "so chunks are graded again" in problem(
            workbench
        )
        redis.start()
        assert from_cache(run(workbench)) == 0, "it comes back empty"
        assert from_cache(run(workbench)) == 3 and problem(workbench) == ""
        assert heard(server)["judge"] == 9

"""One cache, several processes at once: nothing lost, nothing torn, nothing paid for twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crag_core.storage.cache import GradeCache, RedisCache, open_cache
from tests.stand_ins.valkey_server import ValkeyServer
from tests.storage.cache_parts import key
from tests.storage.cache_worker import GRADES, HOUR, is_whole, own_key

REPOSITORY = Path(__file__).parents[2]
MARKS = ("a", "b")


class Worker:
    """A process of its own that waits to be let go before it touches the cache."""

    def __init__(self, setting: str, folder: Path, task: str, mark: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.storage.cache_worker", setting, str(folder), task, mark],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise AssertionError(self._process.communicate(timeout=60)[1])

    def let_go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def finish(self) -> dict[str, Any]:
        output, errors = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, errors
        said: dict[str, Any] = json.loads(output)
        return said


def run_together(setting: str, folder: Path, task: str) -> list[dict[str, Any]]:
    workers = [Worker(setting, folder, task, mark) for mark in MARKS]
    for step in (Worker.wait_until_ready, Worker.let_go):
        for worker in workers:
            step(worker)
    return [worker.finish() for worker in workers]


@pytest.fixture(params=["disk", "redis", "unix socket"])
def setting(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "disk":
        yield "disk"
        return
        return
    server: ValkeyServer = request.getfixturevalue("valkey")
    yield server.url if request.param == "redis" else server.socket_url


@pytest.fixture
def cache(setting: str, tmp_path: Path) -> GradeCache:
    """Of this process; the keys that the tests use are cleared where other tests use the same server."""
    found = open_cache(setting, tmp_path, HOUR)
    assert found is not None
    if isinstance(found, RedisCache):
        found._client.flushall()
    return found


def test_two_processes_lose_and_tear_nothing(setting: str, tmp_path: Path, cache: GradeCache) -> None:
    said = run_together(setting, tmp_path, "hammer")
    assert said == [{"lost": 0, "torn": 0, "problem": ""}] * 2
    shared = [key(number) for number in range(GRADES)]
    own = [own_key(mark, number) for mark in MARKS for number in range(GRADES)]
    kept = cache.get_many([*shared, *own])
    assert len(kept) == 3 * GRADES and all(is_whole(one) for one in kept.values())
    assert {kept[own_key(mark, 7)].reason[0] for mark in MARKS} == set(MARKS)


def test_question_that_another_process_asked_costs_no_call(setting: str, tmp_path: Path, cache: GradeCache) -> None:
    said = []
    for mark in MARKS:
        worker = Worker(setting, tmp_path, "repeat", mark)
        worker.wait_until_ready()
        worker.let_go()
        said.append(worker.finish())
    assert [one["asked"] for one in said] == [[["p1", "p2", "p3"]], []]
    assert said[0]["scores"] == said[1]["scores"] == [0.8] * 3
    assert [one["problem"] for one in said] == ["", ""]

"""Grades in a table, of a file and of a real PostgreSQL: expiry, size, faults of disks and servers, passwords."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.errors import BadRecord
from crag_core.evaluators.cached import CachedEvaluator
from crag_core.storage.cache import TableCache
from crag_core.storage.cache import tables as cache_tables
from crag_core.storage.cache.grade_cache import AWAY_S
from crag_core.storage.cache.tables import SWEEP_S
from tests.stand_ins.local_server import HOST
from tests.stand_ins.postgres_server import PASSWORD, PostgresServer
from tests.storage.cache_parts import IDENTITY, CountingEvaluator, HandClock, ask, grade, key, passages

HOUR = 3600.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "crag.db"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, path: Path) -> Path | str:
    url: str = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    return url or path


@pytest.fixture
def cache(place: Path | str, clock: HandClock) -> Iterator[TableCache]:
    cache = TableCache(place, HOUR, 10, clock)
    yield cache
    cache.close()


@pytest.fixture
def on_disk(path: Path, clock: HandClock) -> TableCache:
    return TableCache(path, HOUR, clock=clock)


@pytest.fixture
def execute(place: Path | str, request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Behind the cache's back."""
    if isinstance(place, str):
        server = request.getfixturevalue("postgres")
        return lambda statement, *values: server.execute(statement, *values, url=place)

    def change(statement: str, *values: object) -> list[Any]:
        with closing(sqlite3.connect(place)) as database, database:
            return database.execute(statement.replace("%s", "?"), values).fetchall()

    return change


def test_what_was_put_comes_back_whole(cache: TableCache) -> None:
    assert cache.get_many([key(1)]) == {}, "nothing was ever kept"
    kept = {key(1): grade(0.0, "早上九點 \U0001f600 \ufffd 'quoted' % \x00"), key(2): grade(1.0)}
    cache.put_many(kept)
    assert cache.get_many([key(2), key(3), key(1), key(1)]) == kept
    assert cache.problem == ""


def test_constructing_touches_no_disk_and_nothing_asked_touches_none_either(path: Path) -> None:
    for place in (path, f"postgresql://{HOST}:9/grades"):
        cache = TableCache(place, HOUR)
        assert cache.get_many([]) == {}
        cache.put_many({})
        cache.close()
        assert cache.problem == ""
    assert not path.parent.exists()


# --- time and size --------------------------------------------------------------------------------------------------


def test_grades_expire_and_leave_the_table_after_a_while(
    cache: TableCache, clock: HandClock, execute: Callable[..., Any]
) -> None:
    cache.put_many({key(1): grade()})
    clock.now += HOUR - 1
    assert cache.get_many([key(1)]), "however often it was read in between"
    clock.now += 1
    assert cache.get_many([key(1)]) == {}
    clock.now += SWEEP_S
    cache.put_many({key(2): grade()})
    assert execute("SELECT key FROM crag_kept_grades") == [(key(2),)]


def test_clock_set_back_makes_nothing_immortal_and_by_a_second_loses_nothing(
    cache: TableCache, clock: HandClock, execute: Callable[..., Any]
) -> None:
    cache.put_many({key(1): grade()})
    clock.now -= 1
    cache.put_many({key(2): grade()})
    assert set(cache.get_many([key(1), key(2)])) == {key(1), key(2)}
    clock.now -= 24 * HOUR
    assert cache.get_many([key(1)]) == {}
    cache.put_many({key(3): grade()})
    assert execute("SELECT key FROM crag_kept_grades") == [(key(3),)]
    assert cache.get_many([key(3)])


def test_number_of_grades_is_bounded_and_the_oldest_go(
    cache: TableCache, clock: HandClock, execute: Callable[..., Any]
) -> None:
    for number in range(25):
        cache.put_many({key(number): grade()})
        clock.now += 1
    clock.now += SWEEP_S
    cache.put_many({key(16): grade()})
    kept = cache.get_many([key(number) for number in range(25)])
    assert set(kept) == {key(number) for number in range(15, 25)}, "16 was kept again"


# --- what others wrote ----------------------------------------------------------------------------------------------

POISON = {
    "score out of range": json.dumps({"passage_id": "p1", "score": 7}),
    "score is text": json.dumps({"passage_id": "p1", "score": "0.7"}),
    "score is true": json.dumps({"passage_id": "p1", "score": True}),
    "not a number": '{"passage_id": "p1", "score": NaN}',
    "beyond all numbers": '{"passage_id": "p1", "score": 1e999}',
    "no score": json.dumps({"passage_id": "p1", "score": None, "cause": "unreadable"}),
    "unknown field": json.dumps({"passage_id": "p1", "score": 0.7, "admin": True}),
    "field missing": json.dumps({"score": 0.7}),
    "list": "[]",
    "null": "null",
    "torn": '{"passage_id": "p1", "sco',
    "empty": "",
    "nested without end": "[" * 100_000,
    "number without end": '{"passage_id": "p1", "score": ' + "9" * 10_000 + "}",
}


@pytest.mark.parametrize("value", POISON.values(), ids=POISON)
def test_poisoned_value_is_absent_and_spoils_no_other(
    cache: TableCache, execute: Callable[..., Any], value: str
) -> None:
    cache.put_many({key(1): grade(), key(2): grade()})
    execute("UPDATE crag_kept_grades SET value = %s WHERE key = %s", value, key(1))
    assert cache.get_many([key(1), key(2)]) == {key(2): grade()}
    cache.put_many({key(1): grade(0.7)})
    assert cache.get_many([key(1)])[key(1)].score == 0.7
    assert cache.problem == ""


def test_grade_of_the_version_before_is_still_read(on_disk: TableCache, path: Path) -> None:
    on_disk.put_many({key(1): grade()})
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE crag_kept_grades SET value = json_set(value, '$.second', NULL)")
    assert on_disk.get_many([key(1)]) == {key(1): grade()}


# --- files that cannot be used --------------------------------------------------------------------------------------


def test_each_change_is_logged_once(on_disk: TableCache, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "crag.cache")
    path.mkdir(parents=True)
    for _ in range(3):
        on_disk.put_many({key(1): grade()})
        on_disk.get_many([key(1)])
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"], "writing and reading, once each"
    caplog.clear()
    path.rmdir()
    for _ in range(3):
        on_disk.put_many({key(1): grade()})
        on_disk.get_many([key(1)])
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]
    assert {record.name for record in caplog.records} == {"crag.cache"}


# --- servers that do not answer, and those that say no -------------------------------------------------------------


def test_server_killed_in_mid_use_costs_only_the_work_and_is_used_again_when_back(postgres: PostgresServer) -> None:
    clock, inner = HandClock(), CountingEvaluator()
    with PostgresServer() as server:
        cache = TableCache(server.url, HOUR, clock=clock)
        evaluator = CachedEvaluator(inner, cache, IDENTITY)

        def calls_for(*ids: str) -> int:
            before = len(inner.asked)
            assert [one.score for one in ask(evaluator, *passages(*ids))] == [0.8] * len(ids)
            return len(inner.asked) - before

        assert (calls_for("p1", "p2"), calls_for("p1", "p2")) == (1, 0)
        server.stop()
        assert (calls_for("p1", "p2"), calls_for("p1", "p2")) == (1, 1)
        assert f"{cache.name} cannot be reached" in cache.problem and "server runs" in cache.problem

        server.start()
        assert calls_for("p1") == 1, "left alone for a while"
        clock.now += AWAY_S
        assert calls_for("p1") == 0, "nothing was lost"
        assert cache.problem == ""

        server.stop()
        server.start()
        assert calls_for("p2") == 0, "nobody saw that it was away"
        assert cache.problem == ""
        cache.close()


@pytest.mark.exhaustive
def test_server_that_freezes_costs_one_wait_in_half_a_minute(
    postgres_url: str, postgres: PostgresServer, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_tables, "PART", replace(cache_tables.PART, reply_s=0.2))
    on_server = TableCache(postgres_url, HOUR, clock=clock)
    on_server.put_many({key(1): grade()})
    with postgres.frozen():
        started = time.monotonic()
        for _ in range(5):
            assert on_server.get_many([key(1)]) == {}
            on_server.put_many({key(2): grade()})
        assert 0.2 <= time.monotonic() - started < 4, "pinged once, and connected to once"
        assert "cannot be reached" in on_server.problem
        started = time.monotonic()
        clock.now += AWAY_S
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda number: on_server.get_many([key(number)]), range(4)))
        assert time.monotonic() - started < 3.5, "it takes two seconds to see that nobody opens"
        assert "cannot be reached" in on_server.problem
    clock.now += AWAY_S
    assert on_server.get_many([key(1), key(2)]) == {key(1): grade()}
    assert on_server.problem == ""
    on_server.close()


# --- passwords and addresses ----------------------------------------------------------------------------------------


def test_password_may_be_an_option(postgres: PostgresServer, postgres_url: str) -> None:
    bare, _, quoted = postgres_url.partition("@")[0].rpartition(":")
    cache = TableCache(f"{bare}@{postgres_url.partition('@')[2]}?password={quoted}", HOUR)
    cache.put_many({key(1): grade()})
    assert cache.get_many([key(1)]) and cache.problem == ""
    fault = cache._fault(OSError(f"no {PASSWORD} here"))
    assert fault is not None and fault.detail == "no … here"
    cache.close()


NAMES = {
    "postgresql://": "postgresql:///",
    "postgres://box": "postgresql://box/",
    "postgresql://me:pw@box/crag": "postgresql://box/crag",
    "postgresql://me:p%40w@box:5433/crag?sslmode=require": "postgresql://box:5433/crag",
    "postgresql://me@[::1]:5433/crag": "postgresql://[::1]:5433/crag",
    "postgresql:///crag?host=/run/postgresql&password=pw": "postgresql:///crag",
}


@pytest.mark.parametrize(("url", "name"), NAMES.items(), ids=NAMES)
def test_name_is_the_address_alone(url: str, name: str) -> None:
    assert TableCache(url, HOUR).name == name


BAD = [
    *("postgresql://me:secret@box:port/crag", "postgresql://me:sec@ret@box/crag", "postgresql://me:12@sec/ret@box"),
    *("postgresql://me:secret@box/crag?colour=red", "postgresql://me:secret\udc80@box/crag", "postgresql:secret"),
    *("postgresql://me:secret@box/crag/extra", "http://me:secret@box"),
]


@pytest.mark.parametrize("url", BAD, ids=ascii)
def test_url_that_cannot_be_read_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(BadRecord, match="expected postgresql://") as refused:
        TableCache(url, HOUR)
    shown = "".join(traceback.format_exception_only(refused.value))
    assert "sec" not in shown and refused.value.__suppress_context__


# --- threads --------------------------------------------------------------------------------------------------------

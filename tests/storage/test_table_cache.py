"""Grades in the file of a home: expiry, size, what others wrote, faults."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crag_core.storage.cache import TableCache
from crag_core.storage.cache.tables import SWEEP_S
from tests.storage.cache_parts import HandClock, grade, key

HOUR = 3600.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "crag.db"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def cache(path: Path, clock: HandClock) -> TableCache:
    return TableCache(path, HOUR, 10, clock)


def execute(path: Path, statement: str, *values: object) -> list[Any]:
    """Behind the cache's back."""
    with closing(sqlite3.connect(path)) as database, database:
        return database.execute(statement, values).fetchall()


def test_what_was_put_comes_back_whole(cache: TableCache) -> None:
    assert cache.get_many([key(1)]) == {}, "nothing was ever kept"
    kept = {key(1): grade(0.0, "早上九點 \U0001f600 \ufffd 'quoted' % \x00"), key(2): grade(1.0)}
    cache.put_many(kept)
    assert cache.get_many([key(2), key(3), key(1), key(1)]) == kept
    assert cache.problem == ""


def test_nothing_asked_touches_no_disk(cache: TableCache, path: Path) -> None:
    assert cache.get_many([]) == {}
    cache.put_many({})
    assert cache.problem == "" and not path.parent.exists()


def test_another_cache_on_the_same_table_reads_it_and_replaces(cache: TableCache, path: Path, clock: HandClock) -> None:
    cache.put_many({key(1): grade(0.1)})
    other = TableCache(path, HOUR, clock=clock)
    assert other.get_many([key(1)]) == {key(1): grade(0.1)}
    other.put_many({key(1): grade(0.9)})
    assert cache.get_many([key(1)])[key(1)].score == 0.9


# --- time and size --------------------------------------------------------------------------------------------------


def test_grades_expire_and_leave_the_table_after_a_while(cache: TableCache, clock: HandClock, path: Path) -> None:
    cache.put_many({key(1): grade()})
    clock.now += HOUR - 1
    assert cache.get_many([key(1)]), "however often it was read in between"
    clock.now += 1
    assert cache.get_many([key(1)]) == {}
    clock.now += SWEEP_S
    cache.put_many({key(2): grade()})
    assert execute(path, "SELECT key FROM crag_kept_grades") == [(key(2),)]


def test_clock_set_back_makes_nothing_immortal_and_by_a_second_loses_nothing(
    cache: TableCache, clock: HandClock, path: Path
) -> None:
    cache.put_many({key(1): grade()})
    clock.now -= 1
    cache.put_many({key(2): grade()})
    assert set(cache.get_many([key(1), key(2)])) == {key(1), key(2)}
    clock.now -= 24 * HOUR
    assert cache.get_many([key(1)]) == {}
    cache.put_many({key(3): grade()})
    assert execute(path, "SELECT key FROM crag_kept_grades") == [(key(3),)]
    assert cache.get_many([key(3)])


def test_number_of_grades_is_bounded_and_the_oldest_go(cache: TableCache, clock: HandClock, path: Path) -> None:
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
    "not a number": '{"passage_id": "p1", "score": NaN}',
    "no score": json.dumps({"passage_id": "p1", "score": None, "cause": "unreadable"}),
    "unknown field": json.dumps({"passage_id": "p1", "score": 0.7, "admin": True}),
    "null": "null",
    "torn": '{"passage_id": "p1", "sco',
    "nested without end": "[" * 100_000,
}


@pytest.mark.parametrize("value", POISON.values(), ids=POISON)
def test_poisoned_value_is_absent_and_spoils_no_other(cache: TableCache, path: Path, value: str) -> None:
    cache.put_many({key(1): grade(), key(2): grade()})
    execute(path, "UPDATE crag_kept_grades SET value = ? WHERE key = ?", value, key(1))
    assert cache.get_many([key(1), key(2)]) == {key(2): grade()}
    cache.put_many({key(1): grade(0.7)})
    assert cache.get_many([key(1)])[key(1)].score == 0.7
    assert cache.problem == ""


# --- files that cannot be used --------------------------------------------------------------------------------------


def test_each_change_is_logged_once(cache: TableCache, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "crag.cache")
    path.mkdir(parents=True)
    for _ in range(3):
        cache.put_many({key(1): grade()})
        cache.get_many([key(1)])
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"], "writing and reading, once each"
    caplog.clear()
    path.rmdir()
    for _ in range(3):
        cache.put_many({key(1): grade()})
        cache.get_many([key(1)])
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]
    assert {record.name for record in caplog.records} == {"crag.cache"}

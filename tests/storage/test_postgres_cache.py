"""The cache in a PostgreSQL, against a real server: expiry, servers that die, freeze or say no, passwords."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event

from crag_core.base.errors import BadRecord
from crag_core.evaluators.cached import CachedEvaluator
from crag_core.storage.cache import PostgresCache
from crag_core.storage.cache import postgres as postgres_server
from crag_core.storage.cache.grade_cache import AWAY_S
from crag_core.storage.cache.postgres import SWEEP_S
from tests.stand_ins.local_server import HOST
from tests.stand_ins.postgres_server import PASSWORD, PostgresServer
from tests.storage.cache_parts import IDENTITY, CountingEvaluator, HandClock, ask, grade, key, passages
from tests.storage.test_disk_cache import POISON

HOUR = 3600.0
TEXTS = {name: value for name, value in POISON.items() if isinstance(value, str) and value.isprintable()}


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def cache(postgres_url: str, clock: HandClock) -> Iterator[PostgresCache]:
    cache = PostgresCache(postgres_url, HOUR, clock)
    yield cache
    cache.close()


def keys_in(postgres: PostgresServer, url: str) -> list[str]:
    return [name for (name,) in postgres.execute("SELECT key FROM crag_grades ORDER BY key", url=url)]


def pass_time(postgres: PostgresServer, url: str, seconds: float) -> None:
    """For what is kept."""
    change = "UPDATE crag_grades SET expires_at = expires_at - make_interval(secs => %s)"
    postgres.execute(change, seconds, url=url)


def test_what_was_put_comes_back_whole(cache: PostgresCache) -> None:
    kept = {key(1): grade(0.0, "早上九點 \U0001f600 \ufffd 'quoted' % \x00"), key(2): grade(1.0)}
    cache.put_many(kept)
    assert cache.get_many([key(2), key(3), key(1), key(1)]) == kept
    assert cache.problem == ""


def test_nothing_asked_reaches_no_server() -> None:
    cache = PostgresCache(f"postgresql://{HOST}:9/grades", HOUR)
    assert cache.get_many([]) == {}
    cache.put_many({})
    cache.close()
    assert cache.problem == ""


def test_a_database_without_grades_is_no_problem(cache: PostgresCache) -> None:
    assert cache.get_many([key(1)]) == {}
    assert cache.problem == ""


def test_another_cache_on_the_same_database_reads_it(cache: PostgresCache, postgres_url: str) -> None:
    cache.put_many({key(1): grade(0.1)})
    other = PostgresCache(postgres_url.replace("postgresql://", "postgres://"), HOUR)
    assert other.get_many([key(1)]) == {key(1): grade(0.1)}
    other.put_many({key(1): grade(0.9)})
    assert cache.get_many([key(1)])[key(1)].score == 0.9
    other.close()


def test_one_statement_reads_and_one_writes_however_many_grades(cache: PostgresCache) -> None:
    cache.put_many({key(0): grade()})  # connects, makes the table and sweeps
    statements: list[str] = []
    event.listen(cache._engine, "before_cursor_execute", lambda *told: statements.append(told[2].split()[0]))
    cache.put_many({key(number): grade() for number in range(20)})
    assert len(cache.get_many([key(number) for number in range(20)])) == 20
    assert statements == ["INSERT", "SELECT"]


@pytest.mark.parametrize("value", TEXTS.values(), ids=TEXTS)
def test_poisoned_value_is_absent_and_spoils_no_other(
    cache: PostgresCache, postgres: PostgresServer, postgres_url: str, value: str
) -> None:
    cache.put_many({key(1): grade(), key(2): grade()})
    postgres.execute("UPDATE crag_grades SET value = %s WHERE key = %s", value, key(1), url=postgres_url)
    assert cache.get_many([key(1), key(2)]) == {key(2): grade()}
    assert cache.problem == ""


def test_some_of_the_poison_is_text() -> None:
    assert len(TEXTS) >= 5


# --- time -----------------------------------------------------------------------------------------------------------


def test_grades_expire(cache: PostgresCache, postgres: PostgresServer, postgres_url: str) -> None:
    cache.put_many({key(1): grade()})
    pass_time(postgres, postgres_url, HOUR - 60)
    assert cache.get_many([key(1)])
    pass_time(postgres, postgres_url, 60)
    assert cache.get_many([key(1)]) == {}
    cache.put_many({key(1): grade()})
    assert cache.get_many([key(1)]), "kept anew"


def test_each_grade_holds_as_long_as_who_kept_it_said(
    cache: PostgresCache, postgres: PostgresServer, postgres_url: str
) -> None:
    short = PostgresCache(postgres_url, 60)
    short.put_many({key(1): grade()})
    cache.put_many({key(2): grade()})
    pass_time(postgres, postgres_url, 61)
    assert set(short.get_many([key(1), key(2)])) == {key(2)}
    short.close()


def test_what_expired_is_deleted_now_and_then(
    cache: PostgresCache, postgres: PostgresServer, postgres_url: str, clock: HandClock
) -> None:
    cache.put_many({key(1): grade()})
    pass_time(postgres, postgres_url, HOUR)
    clock.now += SWEEP_S - 1
    cache.put_many({key(2): grade()})
    assert keys_in(postgres, postgres_url) == [key(1), key(2)]
    clock.now += 1
    cache.put_many({key(3): grade()})
    assert keys_in(postgres, postgres_url) == [key(2), key(3)]


# --- servers that do not answer -------------------------------------------------------------------------------------


def test_server_killed_in_mid_use_costs_only_the_work_and_is_used_again_when_back(postgres: PostgresServer) -> None:
    clock, inner = HandClock(), CountingEvaluator()
    with PostgresServer() as server:
        cache = PostgresCache(server.url, HOUR, clock)
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
    cache: PostgresCache, postgres: PostgresServer, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_server, "REPLY_S", 0.2)
    cache.put_many({key(1): grade()})
    with postgres.frozen():
        started = time.monotonic()
        for _ in range(5):
            assert cache.get_many([key(1)]) == {}
            cache.put_many({key(2): grade()})
        assert 0.2 <= time.monotonic() - started < 1.0
        assert "no reply within 0.2 s" in cache.problem
        started = time.monotonic()
        clock.now += AWAY_S
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda number: cache.get_many([key(number)]), range(4)))
        assert time.monotonic() - started < 3.5, "it takes two seconds to see that nobody opens"
        assert "cannot be reached" in cache.problem
    clock.now += AWAY_S
    assert cache.get_many([key(1), key(2)]) == {key(1): grade()}
    assert cache.problem == ""


def test_connections_that_the_server_breaks_off_are_made_anew(cache: PostgresCache, postgres: PostgresServer) -> None:
    cache.put_many({key(1): grade()})
    postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'test%%'")
    assert cache.get_many([key(1)]) and cache.problem == ""


def test_many_threads_share_a_cache(cache: PostgresCache) -> None:
    def work(mark: int) -> bool:
        cache.put_many({key(number): grade() for number in range(mark, mark + 20)})
        return len(cache.get_many([key(number) for number in range(mark, mark + 20)])) == 20

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(40)))
    assert cache.problem == ""


# --- servers that say no --------------------------------------------------------------------------------------------


def test_a_user_who_may_only_read_reads_and_is_told(postgres: PostgresServer, postgres_url: str) -> None:
    full = PostgresCache(postgres_url, HOUR)
    full.put_many({key(1): grade()})
    full.close()
    name = postgres_url.rpartition("/")[2]
    postgres.execute("CREATE ROLE reader LOGIN PASSWORD 'words'")
    postgres.execute("GRANT SELECT ON crag_grades TO reader", url=postgres_url)
    cache = PostgresCache(postgres.url_of(name, "reader", "words"), HOUR)
    try:
        for _ in range(2):
            cache.put_many({key(2): grade()})
            assert cache.get_many([key(1), key(2)]) == {key(1): grade()}
            assert "cannot be written" in cache.problem and "permission denied" in cache.problem
        postgres.execute("GRANT ALL ON crag_grades TO reader", url=postgres_url)
        cache.put_many({key(2): grade()})
        assert cache.get_many([key(2)]) and cache.problem == ""
    finally:
        cache.close()
        postgres.execute("DROP OWNED BY reader", url=postgres_url)
        postgres.execute("DROP ROLE reader")


def test_a_user_who_may_not_make_the_table_is_told(postgres: PostgresServer, postgres_url: str) -> None:
    postgres.execute("CREATE ROLE guest LOGIN PASSWORD 'words'")
    cache = PostgresCache(postgres.url_of(postgres_url.rpartition("/")[2], "guest", "words"), HOUR)
    try:
        assert cache.get_many([key(1)]) == {}
        cache.put_many({key(1): grade()})
        assert "cannot be written" in cache.problem and "may make a table" in cache.problem
    finally:
        cache.close()
        postgres.execute("DROP ROLE guest")


def test_a_table_of_that_name_that_is_another_is_told(
    cache: PostgresCache, postgres: PostgresServer, postgres_url: str
) -> None:
    postgres.execute("CREATE TABLE crag_grades (name text)", url=postgres_url)
    cache.put_many({key(1): grade()})
    assert cache.get_many([key(1)]) == {}
    assert "cannot be written" in cache.problem and "cannot be read" in cache.problem


def test_a_table_that_was_dropped_is_made_again(
    cache: PostgresCache, postgres: PostgresServer, postgres_url: str
) -> None:
    cache.put_many({key(1): grade()})
    postgres.execute("DROP TABLE crag_grades", url=postgres_url)
    assert cache.get_many([key(1)]) == {}
    cache.put_many({key(1): grade()})
    assert cache.get_many([key(1)]) and cache.problem == ""


# --- passwords and addresses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["", "crag:wrong-word@", "admin:wrong-word@"])
def test_wrong_password_is_a_problem_that_does_not_show_it(
    postgres: PostgresServer, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    cache = PostgresCache(f"postgresql://{user}{HOST}:{postgres.port}/postgres", HOUR)
    cache.put_many({key(1): grade()})
    assert cache.get_many([key(1)]) == {}
    assert "cannot be reached" in cache.problem and "lets you in" in cache.problem
    assert "wrong-word" not in "\n".join([cache.problem, cache.name, repr(cache), caplog.text])
    assert len([record for record in caplog.records if record.name == "crag.cache"]) == 1
    cache.close()


def test_password_may_be_an_option(postgres: PostgresServer, postgres_url: str) -> None:
    bare, _, quoted = postgres_url.partition("@")[0].rpartition(":")
    cache = PostgresCache(f"{bare}@{postgres_url.partition('@')[2]}?password={quoted}", HOUR)
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
    assert PostgresCache(url, HOUR).name == name


BAD = [
    *("postgresql://me:secret@box:port/crag", "postgresql://me:sec@ret@box/crag", "postgresql://me:12@sec/ret@box"),
    *("postgresql://me:secret@box/crag?colour=red", "postgresql://me:secret\udc80@box/crag", "postgresql:secret"),
    *("postgresql://me:secret@box/crag/extra", "http://me:secret@box"),
]


@pytest.mark.parametrize("url", BAD, ids=ascii)
def test_url_that_cannot_be_read_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(BadRecord, match="expected postgresql://") as refused:
        PostgresCache(url, HOUR)
    shown = "".join(traceback.format_exception_only(refused.value))
    assert "sec" not in shown and refused.value.__suppress_context__

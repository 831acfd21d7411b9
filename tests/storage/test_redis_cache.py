"""The cache in a Redis, against a real server: time to live, servers that die and come back, passwords."""

from __future__ import annotations

import logging
import socket
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Self

import pytest
import redis

from crag_core.base.errors import BadRecord
from crag_core.storage.cache import RedisCache
from crag_core.storage.cache.redis import AWAY_S, PREFIX
from tests.stand_ins.local_server import HOST
from tests.stand_ins.valkey_server import ValkeyServer
from tests.storage.cache_parts import HandClock, grade, key

HOUR = 3600.0


@pytest.fixture
def cache(valkey: ValkeyServer) -> Iterator[RedisCache]:
    cache = RedisCache(valkey.url, HOUR)
    yield cache
    cache.close()


@pytest.fixture
def raw(valkey: ValkeyServer) -> Iterator[redis.Redis]:
    """The server behind the cache's back, emptied."""
    client = redis.Redis.from_url(valkey.url)
    client.flushall()
    yield client
    client.close()


def test_what_was_put_comes_back_whole(cache: RedisCache, raw: redis.Redis) -> None:
    kept = {key(1): grade(0.0, "早上九點 \U0001f600 \ufffd 'quoted' \x00"), key(2): grade(1.0)}
    cache.put_many(kept)
    assert cache.get_many([key(2), key(3), key(1), key(1)]) == kept
    assert cache.problem == ""


def test_server_itself_lets_grades_expire(cache: RedisCache, raw: redis.Redis, valkey: ValkeyServer) -> None:
    cache.put_many({key(1): grade()})
    RedisCache(valkey.url, 0.2).put_many({key(2): grade()})
    assert HOUR - 5 <= raw.ttl(PREFIX + key(1)) <= HOUR
    assert raw.ttl(PREFIX + key(2)) == 1, "never without end"


def test_one_request_reads_and_one_writes_however_many_grades(cache: RedisCache, raw: redis.Redis) -> None:
    cache.get_many([key(1)])  # connects
    before = raw.info("stats")["total_reads_processed"]
    cache.put_many({key(number): grade() for number in range(20)})
    assert len(cache.get_many([key(number) for number in range(20)])) == 20
    assert cache.get_many([]) == {}
    cache.put_many({})
    reads = raw.info("stats")["total_reads_processed"] - before
    assert reads <= 8, "a long request may arrive in pieces, but forty would not do"


# --- servers that do not answer -------------------------------------------------------------------------------------


class Impostor:
    """Accepts connections, counts them and says the same to each, or nothing at all."""

    def __init__(self, says: bytes = b"") -> None:
        self.accepted: list[socket.socket] = []
        self._says = says
        self._listener = socket.create_server((HOST, 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self._listener.getsockname()[1]}/0?socket_timeout=0.05"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.accepted.append(connection)
                connection.sendall(self._says)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        # A thread that waits in accept() holds the port open: shutting down wakes it.
        self._listener.shutdown(socket.SHUT_RDWR)
        for each in (self._listener, *self.accepted):
            each.close()


def test_silent_server_costs_one_wait_in_half_a_minute() -> None:
    clock = HandClock()
    with Impostor() as silent:
        cache = RedisCache(silent.url, HOUR, clock)
        for _ in range(5):
            assert cache.get_many([key(1)]) == {}
            cache.put_many({key(1): grade()})
        assert len(silent.accepted) == 1
        assert "Timeout" in cache.problem
        clock.now += AWAY_S - 0.1
        cache.get_many([key(1)])
        assert len(silent.accepted) == 1
        clock.now += 0.1
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda number: cache.get_many([key(number)]), range(8)))
        assert len(silent.accepted) == 2, "one asks whether it is back, the others do not wait for it"
        cache.close()


def test_full_server_takes_nothing_more_but_is_read(cache: RedisCache, raw: redis.Redis) -> None:
    cache.put_many({key(1): grade()})
    raw.config_set("maxmemory", 1)
    try:
        for _ in range(2):
            cache.put_many({key(2): grade()})
            assert cache.get_many([key(1), key(2)]) == {key(1): grade()}
            assert "cannot be written" in cache.problem and "memory" in cache.problem
    finally:
        raw.config_set("maxmemory", 0)
    cache.put_many({key(2): grade()})
    assert cache.get_many([key(2)]) and cache.problem == ""


# --- passwords and addresses ----------------------------------------------------------------------------------------

PASSWORD = "s3cr/t#p?ss@w:rd%"


@pytest.fixture(scope="module")
def guarded() -> Iterator[int]:
    """The port of a server that wants a password."""
    with ValkeyServer(PASSWORD) as server:
        yield server.port


@pytest.mark.parametrize("user", ["", ":wrong-word@", "admin:wrong-word@"])
def test_wrong_password_is_a_problem_that_does_not_show_it(
    guarded: int, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    cache = RedisCache(f"redis://{user}{HOST}:{guarded}/0", HOUR)
    cache.put_many({key(1): grade()})
    assert cache.get_many([key(1)]) == {}
    assert "lets you in" in cache.problem
    assert "wrong-word" not in "\n".join([cache.problem, cache.name, repr(cache), caplog.text])
    assert len(caplog.records) == 1


NAMES = {
    "redis://": "redis://localhost:6379/0",
    "redis://cache": "redis://cache:6379/0",
    "redis://cache:6380/2": "redis://cache:6380/2",
    "redis://cache?db=3": "redis://cache:6379/3",
    "redis://user:pw@cache": "redis://cache:6379/0",
    "redis://cache?password=pw": "redis://cache:6379/0",
    "redis://[::1]:6380": "redis://[::1]:6380/0",
    "rediss://:pw@cache:6380": "rediss://cache:6380/0",
    "unix:///run/redis.sock": "unix:///run/redis.sock",
    "unix://user:pw@/run/redis.sock?db=2&password=pw": "unix:///run/redis.sock?db=2",
}


@pytest.mark.parametrize(("url", "name"), NAMES.items(), ids=NAMES)
def test_name_is_the_address_alone(url: str, name: str) -> None:
    assert RedisCache(url, HOUR).name == name


BAD = [
    *("redis://:secret@cache:port", "redis://:secret@cache:99999", "redis://:secret@[::1", "redis://:secret@a..b"),
    *("redis://:sec/ret@cache", "redis://:secret#@cache", "redis://:secret?@cache", "redis://:12/secret@cache/0"),
    *("redis://:12#secret@cache/0", "redis://:12?secret@cache/0", "redis://:secret@cache/first"),
    *("redis://:secret@cache?colour=red", "redis://:secret@cache?db=x", "redis://:secret@cache?protocol=9"),
    *("rediss://:secret@cache?ssl_cert_reqs=perhaps", "unix://", "unix:///", "unix://run/secret.sock"),
    *("redis://:secret\udc80@cache", "http://:secret@cache"),
]


@pytest.mark.parametrize("url", BAD, ids=ascii)
def test_url_that_cannot_be_read_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(BadRecord, match="expected redis://") as refused:
        RedisCache(url, HOUR)
    shown = "".join(traceback.format_exception_only(refused.value))
    assert "sec" not in shown and refused.value.__suppress_context__

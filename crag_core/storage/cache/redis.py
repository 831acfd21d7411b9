"""Grades in a Redis or Valkey, for any number of processes and machines."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from crag_core.base.errors import BadRecord
from crag_core.base.network.drivers import check_installed
from crag_core.base.protocols import Clock
from crag_core.storage.cache.grade_cache import GradeCache

if TYPE_CHECKING:
    from redis import Redis

Found = TypeVar("Found")

PREFIX = "crag:grade:1:"
TIMEOUT_S = 1.0
AWAY_S = 30.0
"""So long a server that did not answer is left alone, so that it does not cost each run a wait."""


class RedisCache(GradeCache):
    """Keeps a grade for `seconds`. Raises `BadRecord` for a URL that cannot be read; connects at the first use."""

    def __init__(self, url: str, seconds: float, clock: Clock = time.monotonic) -> None:
        self._client, name, self._password = _read_url(url)
        super().__init__(name, name)
        self._seconds = max(1, round(seconds))
        self._clock = clock
        self._away_until = -math.inf

    def close(self) -> None:
        self._client.close()

    def _read(self, keys: Sequence[str]) -> dict[str, object]:
        values: object = self._client.mget([PREFIX + key for key in keys])
        return dict(zip(keys, values, strict=False)) if isinstance(values, list) else {}

    def _write(self, values: Mapping[str, str]) -> None:
        pipeline = self._client.pipeline(transaction=False)
        for key, value in values.items():
            pipeline.set(PREFIX + key, value, ex=self._seconds)
        pipeline.execute()

    def _attempt(self, purpose: str, work: Callable[[], Found]) -> Found | None:
        import redis

        if self._is_away():
            return None
        try:
            done = work()
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            self._away_until = self._clock() + AWAY_S
            hint = f"Check that the server runs and lets you in; it is tried again every {AWAY_S:.0f} s."
            self._report("reached", self._hide_password(error), hint)
            return None
        except redis.RedisError as error:  # it answers, and says no: asking it costs no waiting
            self._back()
            self._report(purpose, self._hide_password(error), "Check its settings and its memory.")
            return None
        self._back()
        self._report(purpose)
        return done

    def _is_away(self) -> bool:
        """False for one thread after a while, which then asks; the others go on without waiting."""
        with self._lock:
            now = self._clock()
            if now < self._away_until:
                return True
            if math.isfinite(self._away_until):
                self._away_until = now + AWAY_S
            return False

    def _back(self) -> None:
        self._away_until = -math.inf
        self._report("reached")

    def _hide_password(self, error: Exception) -> str:
        return str(error).replace(self._password, "…") if self._password else str(error)


def _read_url(url: str) -> tuple[Redis, str, str]:
    """A client that is not connected yet, the URL as it may be shown, and the password."""
    check_installed("CRAG_CACHE", "redis", "redis")
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    try:
        _check(url)
        client = redis.Redis.from_url(
            url, socket_connect_timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S, retry=Retry(NoBackoff(), 0), protocol=2
        )
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)  # complains of options that it does not know
        options = pool.connection_kwargs
        str(options.get("host", "")).encode("idna")
    except (ValueError, TypeError, redis.RedisError):
        # The client's own words may quote a piece of the password.
        raise BadRecord(
            "The URL of the Redis cache: expected redis://[user:password@]host[:port][/database], the same with "
            "rediss://, or unix:///path/to/socket; found one that cannot be read, not shown because of its password.",
            hint="Write the signs / # ? @ : % of a password as %2F %23 %3F %40 %3A %25.",
        ) from None
    return client, _name(url.partition("://")[0], options), str(options.get("password") or "")


def _check(url: str) -> None:
    """Raises ValueError for what the client silently misreads.

    A bare "/" in a password, for example, makes the rest of the URL the name of a database, which it then ignores.
    """
    url.encode("utf-8")
    parts = urlsplit(url)
    parse_qsl(parts.query, strict_parsing=bool(parts.query))
    is_socket = parts.scheme == "unix"
    is_complete = re.fullmatch("/.+" if is_socket else "/?[0-9]*", parts.path)
    if not is_complete or parts.fragment or (is_socket and parts.hostname):
        raise ValueError("expected a host and the number of a database, or the path of a socket")


def _name(scheme: str, options: dict[str, Any]) -> str:
    database = options.get("db") or 0
    if scheme == "unix":
        return f"unix://{options['path']}" + (f"?db={database}" if database else "")
    host = str(options.get("host", "localhost"))
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{options.get('port', 6379)}/{database}"

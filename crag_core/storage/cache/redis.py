"""Grades in a Redis or Valkey, for any number of processes and machines."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from crag_core.base.errors import BadRecord
from crag_core.base.protocols import Clock
from crag_core.base.types import Grade
from crag_core.storage.cache.backoff import AWAY_S, Absence
from crag_core.storage.cache.health import Health
from crag_core.storage.cache.values import decode, encode

if TYPE_CHECKING:
    from redis import Redis

PREFIX = "crag:grade:1:"
TIMEOUT_S = 1.0


class RedisCache:
    """Keeps a grade for `seconds`. Raises `BadRecord` for a URL that cannot be read; connects at the first use.

    `name` is the URL without user, password and options. `problem` says what is wrong, "" when nothing is.
    """

    def __init__(self, url: str, seconds: float, clock: Clock = time.monotonic) -> None:
        self._client, self.name, self._password = _read_url(url)
        self._seconds = max(1, round(seconds))
        self._health = Health(self.name)
        self._absence = Absence(clock)

    @property
    def problem(self) -> str:
        return self._health.problem

    def get_many(self, keys: Sequence[str]) -> dict[str, Grade]:
        def read() -> Any:
            return self._client.mget([PREFIX + key for key in keys])

        values = self._attempt("read", read) if keys else None
        if not isinstance(values, list):
            return {}
        grades = {key: decode(value) for key, value in zip(keys, values, strict=False)}
        return {key: grade for key, grade in grades.items() if grade is not None}

    def put_many(self, grades: dict[str, Grade]) -> None:
        def write() -> Any:
            pipeline = self._client.pipeline(transaction=False)
            for key, grade in grades.items():
                pipeline.set(PREFIX + key, encode(grade), ex=self._seconds)
            return pipeline.execute()

        if grades:
            self._attempt("written", write)

    def close(self) -> None:
        self._client.close()

    def _attempt(self, purpose: str, request: Callable[[], Any]) -> Any:
        """The reply, or None and a problem."""
        import redis

        if self._absence.is_now():
            return None
        try:
            reply = request()
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            self._absence.begin()
            hint = f"Check that the server runs and lets you in; it is tried again every {AWAY_S:.0f} s."
            self._health.report("reached", self._explain("reached", error, hint))
            return None
        except redis.RedisError as error:  # it answers, and says no: asking it costs no waiting
            self._back()
            self._health.report(purpose, self._explain(purpose, error, "Check its settings and its memory."))
            return None
        self._back()
        self._health.report(purpose, "")
        return reply

    def _back(self) -> None:
        self._absence.end()
        self._health.report("reached", "")

    def _explain(self, purpose: str, error: Exception, hint: str) -> str:
        detail = str(error)
        if self._password:
            detail = detail.replace(self._password, "…")
        return f"The grade cache {self.name} cannot be {purpose} ({detail[:200]}), so grades are made anew. {hint}"


def _read_url(url: str) -> tuple[Redis, str, str]:
    """A client that is not connected yet, the URL as it may be shown, and the password."""
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
    """Raises ValueError for what the client silently takes for something else.

    A bare "/" in a password, say, makes the rest of the URL the name of a database, which it then ignores.
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

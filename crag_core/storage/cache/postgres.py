"""Grades in a PostgreSQL, for any number of processes and machines."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from crag_core.base.network.database import driver_options, hide_password, limited, name_of, read_postgres_url
from crag_core.base.protocols import Clock
from crag_core.storage.cache.grade_cache import Fault, GradeCache

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError

Found = TypeVar("Found")

CONNECT_S = 2
REPLY_S = 2.0
RECYCLE_S = 60
"""An older connection is not reused: a firewall between may have dropped it silently."""
SWEEP_S = 600.0

# `value` is JSON in ASCII: no text of a question or document can be one that a database refuses.
_TABLE = """
CREATE TABLE IF NOT EXISTS crag_grades (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires_at TIMESTAMPTZ NOT NULL);
CREATE INDEX IF NOT EXISTS ix_crag_grades_expires_at ON crag_grades (expires_at);
"""
_READ = "SELECT key, value FROM crag_grades WHERE key = ANY(%s) AND expires_at > now()"
_WRITE = """
INSERT INTO crag_grades (key, value, expires_at)
SELECT key, value, now() + make_interval(secs => %s) FROM unnest(%s::text[], %s::text[]) AS kept (key, value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
"""
# Except what another process is about to delete or to write.
_SWEEP = """
DELETE FROM crag_grades WHERE key IN
(SELECT key FROM crag_grades WHERE expires_at <= now() LIMIT 10000 FOR UPDATE SKIP LOCKED)
"""
_MISSING_TABLE = "42P01"
_HINT = "Check that this user may make a table and write to it, and that the disk is not full."
_LOST = ("08", "57P")  # SQLSTATE prefixes: the server closed the connection


class PostgresCache(GradeCache):
    """Keeps a grade for `seconds`. Raises `BadRecord` for a URL that cannot be read; connects at the first use.

    The time is the server's, for the clocks of its clients differ.
    """

    def __init__(self, url: str, seconds: float, clock: Clock = time.monotonic) -> None:
        self._url, _ = read_postgres_url(url, "CRAG_CACHE")
        super().__init__(name_of(self._url), name_of(self._url), clock)
        self._seconds = seconds
        self._swept_at = -math.inf

    def _read(self, keys: Sequence[str]) -> dict[str, str]:
        found = self._run(lambda connection: connection.exec_driver_sql(_READ, (list(keys),)).all())
        return {key: value for key, value in found}

    def _write(self, values: Mapping[str, bytes]) -> None:
        # In one order everywhere: two writers that lock the same rows crosswise would wait for each other.
        keys = sorted(values)
        kept = (self._seconds, keys, [values[key].decode("ascii") for key in keys])
        self._run(lambda connection: connection.exec_driver_sql(_WRITE, kept))
        if self._clock() >= self._swept_at + SWEEP_S:
            self._swept_at = self._clock()
            self._run(lambda connection: connection.exec_driver_sql(_SWEEP))

    def close(self) -> None:
        self._engine.dispose()

    @cached_property
    def _engine(self) -> Engine:
        from sqlalchemy import create_engine

        options = driver_options(self._url, CONNECT_S)
        return create_engine(self._url, pool_timeout=REPLY_S, pool_recycle=RECYCLE_S, connect_args=options)

    def _run(self, work: Callable[[Connection], Found]) -> Found:
        """Once more where the server was restarted since the last time, or has no table yet."""
        from sqlalchemy.exc import DBAPIError

        try:
            return self._transact(work)
        except DBAPIError as error:
            if _code(error) == _MISSING_TABLE:
                with suppress(DBAPIError):  # another process may be quicker; other faults come up below
                    self._transact(lambda connection: connection.exec_driver_sql(_TABLE))
            elif not error.connection_invalidated:
                raise
        return self._transact(work)

    def _transact(self, work: Callable[[Connection], Found]) -> Found:
        from sqlalchemy.exc import DBAPIError

        with (
            self._engine.connect() as connection,
            limited(_number_of(connection), REPLY_S, DBAPIError),
            connection.begin(),
        ):
            return work(connection)

    def _fault(self, error: Exception) -> Fault | None:
        from sqlalchemy.exc import DBAPIError, TimeoutError

        if not isinstance(error, DBAPIError | TimeoutError | OSError):
            return None
        detail = hide_password(" ".join(str(getattr(error, "orig", None) or error).split()), self._url)
        return Fault(detail, _HINT, _is_lost(error))


def _number_of(connection: Connection) -> int:
    """The file number of its socket."""
    raw = connection.connection.driver_connection
    assert raw is not None
    return int(raw.fileno())


def _is_lost(error: Exception) -> bool:
    """Whether the server did not answer, or closed the connection."""
    from sqlalchemy.exc import DBAPIError, OperationalError

    if not isinstance(error, DBAPIError):
        return True
    code = _code(error)
    return error.connection_invalidated or (isinstance(error, OperationalError) and not code) or code.startswith(_LOST)


def _code(error: DBAPIError) -> str:
    """PostgreSQL's own; empty for an error of the driver."""
    return getattr(error.orig, "sqlstate", None) or ""

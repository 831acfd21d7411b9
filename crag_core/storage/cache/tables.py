"""Grades in the file of a home, or in a PostgreSQL by URL, for any number of processes and machines."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import CragError
from crag_core.base.protocols import Clock
from crag_core.storage.cache.grade_cache import Fault, GradeCache
from crag_core.storage.database import Database, Part

if TYPE_CHECKING:
    from sqlalchemy import Connection

SKEW_S = 60.0
"""How far in the future a grade may seem to be kept: clocks are set back by a little now and then, and differ."""
SWEEP_S = 600.0
_LOST = ("08", "57P")  # SQLSTATE prefixes
# `value` is JSON in ASCII: no text of a question or document can be one that a database refuses.
_TABLES = (
    "CREATE TABLE crag_kept_grades (key TEXT PRIMARY KEY, value TEXT NOT NULL, kept_at DOUBLE PRECISION NOT NULL)",
    "CREATE INDEX ix_crag_kept_grades_kept_at ON crag_kept_grades (kept_at)",
)
_READ = "SELECT key, value FROM crag_kept_grades WHERE key IN :keys AND kept_at > :since AND kept_at <= :until"
_PUT = "INSERT INTO crag_kept_grades VALUES (:key, :value, :kept_at) ON CONFLICT (key) DO"
_REPLACE = f"{_PUT} UPDATE SET value = excluded.value, kept_at = excluded.kept_at"
_SWEEP = """
DELETE FROM crag_kept_grades WHERE kept_at <= :since OR kept_at > :until
OR kept_at <= (SELECT kept_at FROM crag_kept_grades ORDER BY kept_at DESC LIMIT 1 OFFSET :most)
"""


class _Unavailable(CragError):
    pass


def _create(connection: Connection) -> None:
    for statement in _TABLES:
        connection.exec_driver_sql(statement)


# A run waits for its grades, but not long for a slow server, nor for who writes a large document.
PART = Part("The grade cache", "CRAG_CACHE", "crag_kept_grades", _create, _Unavailable, reply_s=2.0, busy_s=5.0)


class TableCache(GradeCache):
    """Keeps a grade for `seconds`, and the last `most`. `clock` counts from the epoch: others read the same table.

    Raises `BadRecord` for a URL that cannot be read; connects at the first use.
    """

    def __init__(self, place: Path | str, seconds: float, most: int = 200_000, clock: Clock = time.time) -> None:
        self._database = Database(place, PART)
        super().__init__("disk" if isinstance(place, Path) else self._database.name, self._database.name, clock)
        self._seconds = seconds
        self._most = most
        self._swept_at = -math.inf

    def _read(self, keys: Sequence[str]) -> dict[str, object]:
        from sqlalchemy import bindparam, text

        query = text(_READ).bindparams(bindparam("keys", expanding=True))
        values = {"keys": list(keys), **self._times()}
        return {key: value for key, value in self._database.read(lambda one: one.execute(query, values).all(), [])}

    def _write(self, values: Mapping[str, bytes]) -> None:
        self._put([(key, value.decode("ascii"), self._clock()) for key, value in values.items()])
        if not 0 <= self._clock() - self._swept_at < SWEEP_S:
            from sqlalchemy import text

            self._swept_at = self._clock()
            with self._database.writing() as connection:
                connection.execute(text(_SWEEP), {"most": self._most, **self._times()})

    def take_over(self, file: Path) -> None:
        """Add the grades of `file`, a cache of its own by an earlier version, but those that are there."""
        with sqlite_file.earlier(file) as source:
            kept = source.execute("SELECT key, CAST(value AS TEXT), kept_at FROM grades").fetchall()
        self._put(kept, f"{_PUT} NOTHING")

    def close(self) -> None:
        self._database.close()

    def _put(self, rows: Sequence[tuple[str, str, float]], statement: str = _REPLACE) -> None:
        from sqlalchemy import text

        # In one order everywhere: two writers that lock the same rows crosswise would wait for each other.
        values = [{"key": key, "value": value, "kept_at": at} for key, value, at in sorted(rows)]
        with self._database.writing() as connection:
            if values:
                connection.execute(text(statement), values)

    def _times(self) -> dict[str, float]:
        """Between which a grade that holds was kept."""
        now = self._clock()
        return {"since": now - self._seconds, "until": now + SKEW_S}

    def _fault(self, error: Exception) -> Fault | None:
        if not isinstance(error, _Unavailable | OSError):
            return None
        cause = error.__cause__ or error
        return Fault(*self._database.explain(cause), is_away=self._database.file is None and _is_lost(cause))


def _is_lost(cause: BaseException) -> bool:
    """Whether a server did not answer, or closed the connection."""
    from sqlalchemy.exc import DBAPIError, OperationalError

    if not isinstance(cause, DBAPIError):
        return True
    code = getattr(cause.orig, "sqlstate", None) or ""
    return cause.connection_invalidated or (isinstance(cause, OperationalError) and not code) or code.startswith(_LOST)

"""Grades in the file of a home, for any number of processes of one machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import CragError
from crag_core.base.protocols import Clock
from crag_core.storage.cache.grade_cache import GradeCache

Found = TypeVar("Found")

SKEW_S = 60.0
"""How far in the future a grade may seem to be kept: clocks are set back by a little now and then."""
SWEEP_S = 600.0
# A run waits for its grades, but not long for who writes a large document.
BUSY_S = 5.0
_LAYOUT = """
CREATE TABLE crag_kept_grades (key TEXT PRIMARY KEY, value TEXT NOT NULL, kept_at DOUBLE PRECISION NOT NULL);
CREATE INDEX ix_crag_kept_grades_kept_at ON crag_kept_grades (kept_at)
"""
_SWEEP = """
DELETE FROM crag_kept_grades WHERE kept_at <= :since OR kept_at > :until
OR kept_at <= (SELECT kept_at FROM crag_kept_grades ORDER BY kept_at DESC LIMIT 1 OFFSET :most)
"""


class _Unavailable(CragError):
    pass


class TableCache(GradeCache):
    """Keeps a grade for `seconds`, and the last `most`. `clock` counts from the epoch: others read the same table."""

    def __init__(self, path: Path, seconds: float, most: int = 200_000, clock: Clock = time.time) -> None:
        super().__init__("disk", str(path))
        self._path = path
        self._tables = sqlite_file.Tables(path, "", _LAYOUT, _Unavailable, BUSY_S)
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._swept_at = -math.inf

    def _read(self, keys: Sequence[str]) -> dict[str, object]:
        now, signs = self._clock(), ", ".join("?" * len(keys))
        query = f"SELECT key, value FROM crag_kept_grades WHERE key IN ({signs}) AND kept_at > ? AND kept_at <= ?"
        return dict(self._tables.rows(query, *keys, now - self._seconds, now + SKEW_S))

    def _write(self, values: Mapping[str, str]) -> None:
        now = self._clock()
        with self._tables.writing() as database:
            rows = [(key, value, now) for key, value in values.items()]
            database.executemany("REPLACE INTO crag_kept_grades VALUES (?, ?, ?)", rows)
            if not 0 <= now - self._swept_at < SWEEP_S:
                self._swept_at = now
                bounds = {"most": self._most, "since": now - self._seconds, "until": now + SKEW_S}
                database.execute(_SWEEP, bounds)

    def _attempt(self, purpose: str, work: Callable[[], Found]) -> Found | None:
        try:
            done = work()
        except (_Unavailable, OSError) as error:
            self._report(purpose, *sqlite_file.explain(error.__cause__ or error, self._path))
            return None
        self._report(purpose)
        return done

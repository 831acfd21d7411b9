"""Grades in one SQLite file, for any number of threads and processes of this machine."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from crag_core.base.protocols import Clock
from crag_core.storage import sqlite_file
from crag_core.storage.cache.grade_cache import Fault, GradeCache

Found = TypeVar("Found")

BUSY_S = 5.0
SKEW_S = 60.0
"""How far in the future an entry may lie: clocks are set back by a little now and then."""

# `number` grows with every write, so that the oldest is known.
_LAYOUT = """
CREATE TABLE grades (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value BLOB NOT NULL, kept_at REAL NOT NULL
);
CREATE INDEX grades_by_age ON grades (kept_at);
"""
# As bytes, because one value that is not text must not spoil the others.
_READ = "SELECT CAST(value AS BLOB) FROM grades WHERE key = ? AND kept_at > ? AND kept_at <= ?"
_WRITE = "INSERT OR REPLACE INTO grades (key, value, kept_at) VALUES (?, ?, ?)"
_DROP_EXPIRED = "DELETE FROM grades WHERE kept_at <= ? OR kept_at > ?"
_DROP_OLDEST = "DELETE FROM grades WHERE number <= (SELECT max(number) FROM grades) - ?"

_HINTS = {
    sqlite3.SQLITE_FULL: "Free some disk space.",
    # Not even reading goes on a full disk: readers share a piece of memory in a file, for which there is no room.
    sqlite3.SQLITE_IOERR: "Free some disk space; if there is enough, look whether the disk is sound.",
    sqlite3.SQLITE_BUSY: "Stop the other process that keeps it locked.",
}


class DiskCache(GradeCache):
    """Keeps a grade for `seconds`, and no more than the last `limit`.

    `clock` counts from the epoch, for other processes read the same file.
    """

    def __init__(self, path: Path, seconds: float, limit: int = 200_000, clock: Clock = time.time) -> None:
        super().__init__("disk", str(path), clock)
        self._path = path
        self._seconds = seconds
        self._limit = limit

    def _read(self, keys: Sequence[str]) -> dict[str, bytes]:
        def read(database: sqlite3.Connection) -> dict[str, bytes]:
            times = self._valid_times(self._clock())
            rows = {key: database.execute(_READ, (key, *times)).fetchone() for key in keys}
            return {key: row[0] for key, row in rows.items() if row is not None}

        return self._run(read)

    def _write(self, values: Mapping[str, bytes]) -> None:
        def write(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")
            # Now, not before: what another process wrote while this one waited for its turn is not from the future.
            now = self._clock()
            database.execute(_DROP_EXPIRED, self._valid_times(now))
            database.executemany(_WRITE, [(key, value, now) for key, value in values.items()])
            database.execute(_DROP_OLDEST, (self._limit,))
            database.execute("COMMIT")

        self._run(write)

    def _valid_times(self, now: float) -> tuple[float, float]:
        return now - self._seconds, now + SKEW_S

    def _run(self, work: Callable[[sqlite3.Connection], Found]) -> Found:
        """Once more where the file was damaged, and is replaced, or moved away."""
        seen = _inode(self._path)
        try:
            with self._open() as database:
                return work(database)
        except sqlite3.DatabaseError as error:
            if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                self._replace_damaged(seen)
            elif _inode(self._path) == seen:  # else another process replaced it in the middle of the work
                raise
        with self._open() as database:
            return work(database)

    def _fault(self, error: Exception) -> Fault | None:
        if not isinstance(error, OSError | sqlite3.DatabaseError):
            return None
        hint = _HINTS.get(_code(error), f"Check that {self._path.parent} is a folder that can be written to.")
        return Fault(str(error), hint)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection for one call: it costs little, and none is left pointing to a file that was moved."""
        if not sqlite_file.is_there(self._path):
            sqlite_file.make(self._path, _LAYOUT, BUSY_S)
        with closing(sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)) as database:
            database.execute("PRAGMA synchronous = NORMAL")
            yield database  # closing undoes what was not committed

    def _replace_damaged(self, seen: int | None) -> None:
        """Move the file aside, unless another process was quicker."""
        with sqlite_file.lock(self._path, BUSY_S):
            if _inode(self._path) != seen:
                return
            aside = f"{self._path}.broken-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
            # The file itself last: a new one must not find the old one's log, and a kill between leaves it damaged.
            for ending in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    os.replace(f"{self._path}{ending}", f"{aside}{ending}")
        self._report(
            "damaged",
            f"The grade cache was damaged; it was moved to {aside} and a new one was started. Delete it when you like.",
        )


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _code(error: Exception) -> int:
    """SQLite's primary result code; 0 for an error of something else."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF

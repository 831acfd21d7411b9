"""Grades and outcomes of labelled questions in SQLite, a row for each question and setup.

A row is written at once, so that a kill loses only what was under way.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from crag_core.base.errors import BadRecord, ScoresUnavailable
from crag_core.base.serialization import from_plain, to_plain
from crag_core.experiments.labelled.graded import Conditions, ScoredQuestion
from crag_core.storage import sqlite_file
from crag_core.trace.trace import Trace

BUSY_S = 10.0
_LAYOUT = """
CREATE TABLE IF NOT EXISTS conditions (fingerprint TEXT PRIMARY KEY, told TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS scored (
    conditions TEXT NOT NULL, key TEXT NOT NULL, facts TEXT NOT NULL, record BLOB NOT NULL,
    PRIMARY KEY (conditions, key)
) WITHOUT ROWID;
"""


class Under(Protocol):
    """What a row depends on besides its question, a frozen record; equal ones have equal fingerprints."""

    @property
    def fingerprint(self) -> str: ...


class Keyed(Protocol):
    """What is kept of a run, a frozen record; `key` is that of its question."""

    @property
    def key(self) -> str: ...


Facts = TypeVar("Facts", bound=Keyed)


class OutcomeLog(Generic[Facts]):
    """The questions that were run under `conditions`, with facts of type `kind` and the whole record of each.

    Safe to use from several threads and processes; constructing it touches no disk, and only writing makes a file.
    Every method raises `ScoresUnavailable`.
    """

    def __init__(self, path: Path, conditions: Under, kind: type[Facts]) -> None:
        self._path = path
        self._kind = kind
        self.conditions = conditions
        self._fingerprint = conditions.fingerprint

    def keys(self) -> set[str]:
        """Of the questions that are there."""
        return {key for (key,) in self._rows("SELECT key FROM scored WHERE conditions = ?", self._fingerprint)}

    def load(self) -> dict[str, Facts]:
        """By key, without the texts. A row that this version cannot read counts as not there."""
        found = {}
        for key, facts in self._rows("SELECT key, facts FROM scored WHERE conditions = ?", self._fingerprint):
            try:
                found[key] = from_plain(self._kind, json.loads(facts), "facts")
            except (BadRecord, ValueError):
                continue
        return found

    def record(self, key: str) -> Trace | None:
        """The whole run behind a row; `BadRecord` for one that this version cannot read."""
        rows = self._rows("SELECT record FROM scored WHERE conditions = ? AND key = ?", self._fingerprint, key)
        try:
            return Trace.from_json(zlib.decompress(rows[0][0]).decode("ascii")) if rows else None
        except (zlib.error, UnicodeError) as error:
            raise BadRecord(f"This run cannot be read any more ({error}).", hint="Run the set again.") from error

    def add(self, facts: Facts, trace: Trace) -> None:
        """In place of an earlier row of the same question."""
        written = json.dumps(to_plain(facts))
        record = zlib.compress(json.dumps(trace.to_dict()).encode("ascii"))
        with _open(self._path, writes=True) as database, database:
            conditions = (self._fingerprint, json.dumps(to_plain(self.conditions)))
            database.execute("INSERT OR IGNORE INTO conditions VALUES (?, ?)", conditions)
            row = (self._fingerprint, facts.key, written, record)
            database.execute("INSERT OR REPLACE INTO scored VALUES (?, ?, ?, ?)", row)

    def clear(self, keys: Collection[str] | None = None) -> None:
        """Forget what was run under these conditions: the questions with these keys; None: all."""
        if not sqlite_file.is_there(self._path):
            return
        own = (self._fingerprint,)
        with _open(self._path, writes=True) as database, database:
            if keys is None:
                database.execute("DELETE FROM scored WHERE conditions = ?", own)
            else:
                rows = ((self._fingerprint, key) for key in keys)
                database.executemany("DELETE FROM scored WHERE conditions = ? AND key = ?", rows)
            # Conditions without a row would keep their first name and day for whatever is run under them next.
            left = "SELECT 1 FROM scored WHERE conditions = fingerprint"
            database.execute(f"DELETE FROM conditions WHERE fingerprint = ? AND NOT EXISTS ({left})", own)

    def _rows(self, question: str, *values: str) -> list[tuple[Any, ...]]:
        if not sqlite_file.is_there(self._path):
            return []
        with _open(self._path) as database:
            return database.execute(question, values).fetchall()


class ScoreLog(OutcomeLog[ScoredQuestion]):
    """The questions graded under `conditions`."""

    def __init__(self, path: Path, conditions: Conditions) -> None:
        super().__init__(path, conditions, ScoredQuestion)


def kept_conditions(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """By fingerprint, conditions under which something is kept, as they were written, and the keys of its questions.

    Raises `ScoresUnavailable`.
    """
    if not sqlite_file.is_there(path):
        return {}
    with _open(path) as database:
        conditions = dict(database.execute("SELECT fingerprint, told FROM conditions").fetchall())
        rows = database.execute("SELECT conditions, key FROM scored").fetchall()
    keys: dict[str, set[str]] = {}
    for fingerprint, key in rows:
        keys.setdefault(fingerprint, set()).add(key)
    return {one: (conditions[one], frozenset(own)) for one, own in keys.items() if one in conditions}


@contextmanager
def _open(path: Path, writes: bool = False) -> Iterator[sqlite3.Connection]:
    try:
        if writes and not sqlite_file.is_there(path):
            sqlite_file.make(path, _LAYOUT, BUSY_S)
        with closing(_connect(path, writes)) as database:
            yield database
    except (sqlite3.Error, OSError) as error:
        raise ScoresUnavailable(
            f"What was run cannot be {'kept' if writes else 'read'} in {os.fspath(path)} ({error}).",
            hint=_hint(error),
        ) from error


def _connect(path: Path, writes: bool) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=BUSY_S)
    try:
        database.executescript(_LAYOUT)
    except sqlite3.Error as error:
        database.close()
        if writes or not _has_no_room(error):
            raise
        # Readers share a piece of memory in a file, for which a full disk has no room; who reads alone needs none.
        database = sqlite3.connect(path, timeout=BUSY_S)
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
    return database


def _hint(error: Exception) -> str:
    if _has_no_room(error):
        return "Free some disk space; if there is enough, look whether the disk is sound."
    if isinstance(error, TimeoutError) or _code(error) == sqlite3.SQLITE_BUSY:
        return "Another process keeps it locked: try again in a moment, or stop that process."
    return "Check the disk; a damaged file can be deleted, then the sets are run again."


def _has_no_room(error: Exception) -> bool:
    """Or the disk is broken, which SQLite tells by the same code."""
    return _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def _code(error: Exception) -> int:
    """Of SQLite; 0 for another's error."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF

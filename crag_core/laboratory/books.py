"""What was graded, in one SQLite file: a row for every question under every set of conditions, written at once."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from crag_core.errors import BadRecord, ScoresUnavailable
from crag_core.records import from_plain, to_plain
from crag_core.trace import Trace
from crag_core.tuning.conditions import Conditions
from crag_core.tuning.scored import ScoredQuestion

BUSY_S = 10.0
_LAYOUT = """
CREATE TABLE IF NOT EXISTS conditions (fingerprint TEXT PRIMARY KEY, told TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS scored (
    conditions TEXT NOT NULL, key TEXT NOT NULL, facts TEXT NOT NULL, record BLOB NOT NULL,
    PRIMARY KEY (conditions, key)
) WITHOUT ROWID;
"""


class ScoreBook:
    """The questions graded under `conditions`. Safe to use from several threads and processes; constructing it touches
    no disk, and only writing makes a file. Every method raises `ScoresUnavailable`."""

    def __init__(self, path: Path, conditions: Conditions) -> None:
        self._path = path
        self.conditions = conditions
        self._fingerprint = conditions.fingerprint

    def keys(self) -> set[str]:
        """Of the questions that are graded."""
        return {key for (key,) in self._rows("SELECT key FROM scored WHERE conditions = ?", self._fingerprint)}

    def load(self) -> dict[str, ScoredQuestion]:
        """By key, without the texts. A row that this version cannot read counts as not graded."""
        found = {}
        for key, facts in self._rows("SELECT key, facts FROM scored WHERE conditions = ?", self._fingerprint):
            try:
                found[key] = from_plain(ScoredQuestion, json.loads(facts), "scored")
            except (BadRecord, ValueError):
                continue
        return found

    def record(self, key: str) -> Trace | None:
        """The whole run behind a row; `BadRecord` for one that this version cannot read."""
        rows = self._rows("SELECT record FROM scored WHERE conditions = ? AND key = ?", self._fingerprint, key)
        try:
            return Trace.from_json(zlib.decompress(rows[0][0]).decode("ascii")) if rows else None
        except (zlib.error, UnicodeError) as error:
            raise BadRecord(f"This run cannot be read any more ({error}).", hint="Grade the set again.") from error

    def add(self, scored: ScoredQuestion, trace: Trace) -> None:
        """In place of an earlier row of the same question."""
        facts = json.dumps(to_plain(scored))
        record = zlib.compress(json.dumps(trace.to_dict()).encode("ascii"))
        with self._open(writes=True) as database, database:
            told = json.dumps(to_plain(self.conditions))
            database.execute("INSERT OR IGNORE INTO conditions VALUES (?, ?)", (self._fingerprint, told))
            row = (self._fingerprint, scored.key, facts, record)
            database.execute("INSERT OR REPLACE INTO scored VALUES (?, ?, ?, ?)", row)

    def clear(self) -> None:
        """Forget what was graded under these conditions."""
        if self._path.exists():
            with self._open(writes=True) as database, database:
                database.execute("DELETE FROM scored WHERE conditions = ?", (self._fingerprint,))

    def _rows(self, question: str, *values: str) -> list[tuple[Any, ...]]:
        if not self._path.exists():
            return []
        with self._open() as database:
            return database.execute(question, values).fetchall()

    @contextmanager
    def _open(self, writes: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            if writes:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=BUSY_S)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.executescript(_LAYOUT)
                yield database
        except (sqlite3.Error, OSError) as error:
            raise ScoresUnavailable(
                f"What was graded cannot be {'kept' if writes else 'read'} in {os.fspath(self._path)} ({error}).",
                hint="Check the disk; a damaged file can be deleted, then the sets are graded again.",
            ) from error

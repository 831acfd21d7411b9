"""The tables of an index in the SQLite file of a home, and those of each version of its passages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import StoreUnavailable

_TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO state VALUES ('generation', 0);
CREATE TABLE versions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, embedding TEXT, tokens INTEGER, overlap INTEGER, stage TEXT, owner TEXT);
CREATE TABLE documents (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, name TEXT, collection TEXT, state TEXT, pages INTEGER,
  passages INTEGER, characters INTEGER, size INTEGER, version INTEGER, changed_at TEXT, owner TEXT, message TEXT,
  hint TEXT);
CREATE INDEX documents_by_name ON documents (name, collection);
CREATE TABLE originals (document INTEGER PRIMARY KEY, content BLOB NOT NULL);
"""
_PASSAGES = """
CREATE TABLE passages_{0} (
  number INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL, ordinal INTEGER NOT NULL, page INTEGER,
  section TEXT NOT NULL, start INTEGER NOT NULL, text TEXT NOT NULL, vector BLOB NOT NULL);
CREATE UNIQUE INDEX passages_{0}_of ON passages_{0} (document, ordinal);
CREATE VIRTUAL TABLE words_{0} USING fts5 (
  text, tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'");
CREATE TRIGGER passages_{0}_gone AFTER DELETE ON passages_{0}
  BEGIN DELETE FROM words_{0} WHERE rowid = old.number; END;
"""


class IndexFile(sqlite_file.Tables):
    """Those in the file of a folder. Every fault is a `StoreUnavailable`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / sqlite_file.NAME, "The index", _TABLES, StoreUnavailable)
        self.folder = folder

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Empty tables where nothing is indexed yet."""
        with super().reading() as database:
            if database is not None:
                yield database
                return
            with closing(sqlite3.connect(":memory:")) as empty:
                empty.executescript(_TABLES)
                yield empty

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        with super().writing() as database:
            yield database
            database.execute("UPDATE state SET value = value + 1 WHERE name = 'generation'")

    def upgrade(self) -> None:
        """An earlier version did not record where chunks start in their pages."""
        with self.reading() as database:
            old = [version for version in versions_in(database) if not _has_starts(database, version)]
        if old:
            with self.writing() as database:
                for version in old:
                    database.execute(f"ALTER TABLE passages_{version} ADD COLUMN start INTEGER NOT NULL DEFAULT -1")


def versions_in(database: sqlite3.Connection) -> list[int]:
    return [row[0] for row in database.execute("SELECT id FROM versions")]


def _has_starts(database: sqlite3.Connection, version: int) -> bool:
    return any(row[1] == "start" for row in database.execute(f"PRAGMA table_info(passages_{version})"))


def generation(database: sqlite3.Connection) -> int:
    found = database.execute("SELECT value FROM state WHERE name = 'generation'").fetchone()
    if found is None:
        damaged = sqlite3.DatabaseError("its state is not there")
        damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damaged
    return int(found[0])


def make_passages(database: sqlite3.Connection, version: int) -> None:
    for statement in _PASSAGES.format(version).strip().split(";\n"):
        # The body of the trigger holds a semicolon of its own, before END on the same line.
        database.execute(statement)


def drop_passages(database: sqlite3.Connection, version: int) -> None:
    # The trigger goes with its table, and is not run.
    database.execute(f"DROP TABLE passages_{version}")
    database.execute(f"DROP TABLE words_{version}")

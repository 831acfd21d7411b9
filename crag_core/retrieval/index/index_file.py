"""The SQLite file of an index: its tables, connections and transactions, and its faults in words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from uuid import uuid4

from crag_core.base.errors import StoreUnavailable

FORMAT = 1
"""Of the file; a later one is refused."""
BUSY_S = 60.0
"""So long a writer waits for another; a transaction takes seconds at most."""
_MOST_IDLE = 4
_TABLES = f"""
PRAGMA journal_mode = WAL;
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
PRAGMA user_version = {FORMAT};
"""
_PASSAGES = """
CREATE TABLE passages_{0} (
  number INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL, ordinal INTEGER NOT NULL, page INTEGER,
  section TEXT NOT NULL, text TEXT NOT NULL, vector BLOB NOT NULL);
CREATE UNIQUE INDEX passages_{0}_of ON passages_{0} (document, ordinal);
CREATE VIRTUAL TABLE words_{0} USING fts5 (
  text, tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'");
CREATE TRIGGER passages_{0}_gone AFTER DELETE ON passages_{0}
  BEGIN DELETE FROM words_{0} WHERE rowid = old.number; END;
"""
_AGAIN = "; what was indexed before is safe."
_AWAY = "put a backup back, or move it away with the -wal and -shm beside it and index the documents again."
_HINTS = {
    sqlite3.SQLITE_BUSY: "Another process is writing to it: wait for it to finish, or stop it, and try again.",
    sqlite3.SQLITE_READONLY: f"Make the file and its folder writable for this user and try again{_AGAIN}",
    sqlite3.SQLITE_CORRUPT: f"It is damaged: {_AWAY}",
    sqlite3.SQLITE_NOTADB: f"It is not a database, or a damaged one: {_AWAY}",
    sqlite3.SQLITE_FULL: f"Free some disk space and try again{_AGAIN}",
    sqlite3.SQLITE_IOERR: f"Free some disk space, if there is none; else look after the disk, and try again{_AGAIN}",
}
_UNWRITABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class IndexFile:
    """`index.db` in a folder; constructing it touches no disk. Every fault is a `StoreUnavailable`.

    Safe for any number of threads and processes of one machine.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "index.db"
        # A name beside the file that stays when it goes.
        self._made = folder / "made"
        self._idle: list[tuple[os.stat_result, sqlite3.Connection]] = []
        self._lock = Lock()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """One state of the index, whoever writes meanwhile; None where there is none yet."""
        with self._explained("read"):
            status = self._status()
            if status is None:
                yield None
                return
            with self._connected(status) as database:
                database.execute("BEGIN")
                yield database

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone: all that is done inside, or nothing. The file is made if need be."""
        with self._explained("written"):
            status = self._status()
            if status is None:
                self._make()
                status = self.path.stat()
            with self._connected(status) as database:
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("UPDATE state SET value = value + 1 WHERE name = 'generation'")
                database.execute("COMMIT")

    def copy_to(self, target: Path) -> None:
        """A file with all that is committed now, while others go on writing; nothing where there is no index."""
        with self._explained("copied"):
            if (status := self._status()) is not None:
                with self._connected(status) as database:
                    database.execute("VACUUM INTO ?", (str(target),))

    def _status(self) -> os.stat_result | None:
        """Raises `StoreUnavailable` where the file was there and is not any more."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return self.path.stat()
        if self._made.exists():
            raise StoreUnavailable(
                f"The index {self.path} was here and is not any more.",
                hint=f"Put a backup of it back; or delete {self._made} too, to begin with an empty index.",
            )
        return None

    def _make(self) -> None:
        """Under another name first: whoever opens the file finds all of its tables."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        building = self.folder / f".new-{uuid4().hex}"
        try:
            building.touch(0o600)  # nobody else may read what the documents say
            with closing(sqlite3.connect(building)) as database:
                database.executescript(_TABLES)
            try:
                os.link(building, self.path)
            except FileExistsError:  # another process was first
                return
            except OSError:  # a file system without links
                os.replace(building, self.path)
        finally:
            building.unlink(missing_ok=True)
        self._made.touch()

    @contextmanager
    def _connected(self, status: os.stat_result) -> Iterator[sqlite3.Connection]:
        """A connection to the file that is there now, without the transaction that an error leaves open."""
        with self._lock:
            there = [one for one in self._idle if os.path.samestat(one[0], status)]
            for old in [one for one in self._idle if one not in there]:
                old[1].close()
            database = there.pop()[1] if there else None
            self._idle = there
        is_shared = True
        if database is None:
            database, is_shared = self._open()
        try:
            yield database
        finally:
            with suppress(sqlite3.Error):
                if database.in_transaction:
                    database.execute("ROLLBACK")
            with self._lock:
                is_kept = is_shared and len(self._idle) < _MOST_IDLE and not database.in_transaction
                if is_kept:
                    self._idle.append((status, database))
            if not is_kept:
                database.close()

    def _open(self) -> tuple[sqlite3.Connection, bool]:
        """And whether it sees what others write from now on.

        That takes room for a file beside; where there is none, what is in the file itself is read.
        """
        try:
            return self._connect(""), True
        except sqlite3.Error as error:
            waiting = Path(f"{self.path}-wal")
            is_complete = not waiting.exists() or not waiting.stat().st_size
            if _code(error) in _UNWRITABLE and is_complete:
                return self._connect("?immutable=1"), False
            raise

    def _connect(self, options: str) -> sqlite3.Connection:
        database = sqlite3.connect(
            f"{self.path.absolute().as_uri()}{options}", uri=True, timeout=BUSY_S, isolation_level=None,
            check_same_thread=False,
        )  # fmt: skip
        try:
            (made_by,) = database.execute("PRAGMA user_version").fetchone()
            database.execute("SELECT value FROM state").fetchone()
        except sqlite3.Error:
            database.close()
            raise
        if made_by > FORMAT:
            database.close()
            raise StoreUnavailable(
                f"The index {self.path} was made by a later version of this program: it has format {made_by}, "
                f"expected at most {FORMAT}.",
                hint="Start that version, or set CRAG_HOME to another place.",
            )
        return database

    @contextmanager
    def _explained(self, purpose: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            detail = getattr(error, "strerror", None) or str(error) or type(error).__name__
            hint = _HINTS.get(_code(error), f"Check that {self.folder} is a folder that this user may write to.")
            if "no such table" in detail:
                hint = _HINTS[sqlite3.SQLITE_NOTADB]
            if getattr(error, "errno", None) == 28:
                hint = _HINTS[sqlite3.SQLITE_FULL]
            raise StoreUnavailable(
                f"The index {self.path} cannot be {purpose} ({str(detail)[:200]}).", hint=hint
            ) from error


def _code(error: Exception) -> int:
    """The primary result code; its higher bits only say where it came up."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def generation(database: sqlite3.Connection) -> int:
    """Grows with every write."""
    return int(database.execute("SELECT value FROM state WHERE name = 'generation'").fetchone()[0])


def make_passages(database: sqlite3.Connection, version: int) -> None:
    for statement in _PASSAGES.format(version).strip().split(";\n"):
        # The body of the trigger holds a semicolon of its own, before END on the same line.
        database.execute(statement)


def drop_passages(database: sqlite3.Connection, version: int) -> None:
    # The trigger goes with its table, and is not run.
    database.execute(f"DROP TABLE passages_{version}")
    database.execute(f"DROP TABLE words_{version}")

"""The one SQLite file of a home, which several threads and processes may create and use at once."""

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

from crag_core.base.errors import CragError

NAME = "crag.db"
FORMAT = 1  # of the file; a later one is refused
BUSY_S = 60.0  # so long a writer waits for another; a transaction takes seconds at most
_MOST_IDLE = 4
_AGAIN = "; what was kept before is safe."
_BACK = (
    "put a backup back; or, to begin with an empty one, move it away with the -wal, -shm and .made beside it, "
    "and start this program again."
)
_FULL = f"Free some disk space and try again{_AGAIN}"
_HINTS = {
    sqlite3.SQLITE_BUSY: "Another process is writing to it: wait for it to finish, or stop it, and try again.",
    sqlite3.SQLITE_READONLY: f"Make the file and its folder writable for this user and try again{_AGAIN}",
    sqlite3.SQLITE_CORRUPT: f"It is damaged: {_BACK}",
    sqlite3.SQLITE_NOTADB: f"It is not a database, or a damaged one: {_BACK}",
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: f"Free some disk space, if there is none; else look after the disk, and try again{_AGAIN}",
}
_UNWRITABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


SEEN: set[Path] = set()
"""Files that were there since this program was started."""


class Gone(FileNotFoundError):
    """A file was there and is not any more: an empty one is never begun in its place."""


class Later(OSError):
    """A later version of this program made it."""


class Foreign(OSError):
    """Another program made it."""


def is_there(path: Path) -> bool:
    """Raises `Gone`, also where its folder went with all that told of it while this program runs."""
    # Before the file is looked for: it is named after the file is there.
    was_made = path in SEEN or made(path).exists()
    with suppress(FileNotFoundError):
        status = path.stat()
        if status.st_size:
            if stat.S_ISREG(status.st_mode):
                SEEN.add(path)
            return True
    if was_made:
        raise Gone(errno.ENOENT, "it was here and is not any more")
    return False


def make(path: Path) -> None:
    """Make a file without tables that is read while it is written, unless it is there; for its owner only.

    Under another name first: a file that is being turned to WAL is reported as locked, whatever the time-out.
    """
    if is_there(path):
        if path.is_file() and not made(path).exists():  # it came from a backup
            made(path).touch(0o600)
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    building = path.with_name(f".new-{uuid4().hex}")
    try:
        building.touch(0o600)
        with closing(sqlite3.connect(building)) as database:
            database.executescript(f"PRAGMA journal_mode = WAL; PRAGMA user_version = {FORMAT}")
        try:
            os.link(building, path)
        except FileExistsError:
            if path.stat().st_size:  # another process was first
                return
            os.replace(building, path)
        except OSError:  # a file system without links
            os.replace(building, path)
    finally:
        building.unlink(missing_ok=True)
    made(path).touch(0o600)


def connect(path: Path, writes: bool, busy: float = BUSY_S) -> tuple[sqlite3.Connection, bool]:
    """A connection without a transaction, and whether it sees what others write from now on.

    That takes room for a file beside; who only reads, where there is none, reads what is in the file itself.
    """
    try:
        return _open(path, "?mode=rw", busy), True
    except sqlite3.Error as error:
        waiting = Path(f"{path}-wal")
        is_complete = not waiting.exists() or not waiting.stat().st_size
        if _code(error) in _UNWRITABLE and is_complete and not writes:
            return _open(path, "?immutable=1", busy), False
        raise


@contextmanager
def earlier(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(path, writes=True)[0]) as database:
        yield database


def copy(path: Path, target: Path) -> None:
    """All that is committed now, while others go on writing; nothing where there is no file."""
    if is_there(path):
        with closing(connect(path, writes=False)[0]) as database:
            database.execute("VACUUM INTO ?", (str(target),))
        with closing(sqlite3.connect(target)) as made:  # a copy is not read while it is written, by itself
            made.execute("PRAGMA journal_mode = WAL")


def explain(error: BaseException, path: Path) -> tuple[str, str]:
    detail = str(getattr(error, "strerror", None) or error or type(error).__name__)
    if isinstance(error, Gone):
        return detail, (
            "Put it or a backup of it back: its folder may have moved, or its disk be unmounted. "
            f"To begin with an empty one, delete {made(path)} too, and start this program again."
        )
    if isinstance(error, Foreign):
        return detail, f"It holds nothing of this program: {_BACK}"
    if isinstance(error, Later):
        return detail, "Start that version, or set CRAG_HOME to another place."
    if getattr(error, "errno", None) == errno.ENOSPC:
        return detail, _FULL
    if "no such table" in detail:
        return detail, _HINTS[sqlite3.SQLITE_NOTADB]
    return detail, _HINTS.get(_code(error), f"Check that {path.parent} is a folder that this user may write to.")


def _open(path: Path, options: str, busy: float) -> sqlite3.Connection:
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}{options}", uri=True, timeout=busy, isolation_level=None, check_same_thread=False
    )
    try:
        (made_by,) = database.execute("PRAGMA user_version").fetchone()
        database.execute("SELECT 1 FROM sqlite_master").fetchone()
        if made_by > FORMAT:
            raise Later(f"a later version of this program made it: format {made_by}, expected at most {FORMAT}")
    except (sqlite3.Error, OSError):
        database.close()
        raise
    return database


def _refuse_foreign(database: sqlite3.Connection) -> None:
    """Every file of ours has a format, and had one before it had tables."""
    (made_by,) = database.execute("PRAGMA user_version").fetchone()
    if not made_by and database.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise Foreign("it is the database of another program")


def made(path: Path) -> Path:
    """A name beside a file that stays when it goes."""
    return Path(f"{path}.made")


def _code(error: BaseException) -> int:
    """The primary result code; its higher bits only say where it came up."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


class Tables:
    """Tables of one part of the program in such a file; constructing it touches no disk. Every fault is an `error`.

    Safe for any number of threads and processes of one machine.
    """

    def __init__(self, path: Path, name: str, layout: str, error: type[CragError], busy: float = BUSY_S) -> None:
        """`layout`: the statements that make them, of which the first makes a table. `name` begins what an error
        says."""
        self.path = path
        self._name = name
        self._layout = layout.strip().split(";\n")
        self._first = self._layout[0].split("(")[0].split()[-1]
        self._error = error
        self._busy = busy
        self._idle: list[tuple[os.stat_result, sqlite3.Connection]] = []
        self._lock = Lock()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """One state of the tables, whoever writes meanwhile; None where there are none yet."""
        with self.explained("read"):
            if not is_there(self.path):
                yield None
                return
            with self._connected(writes=False) as database:
                database.execute("BEGIN")
                yield database if self._has_tables(database) else None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone: all that is done inside, or nothing. File and tables are made if need be."""
        with self.explained("written"):
            make(self.path)
            with self._connected(writes=True) as database:
                database.execute("BEGIN IMMEDIATE")
                if not self._has_tables(database):
                    for statement in self._layout:
                        database.execute(statement)
                yield database
                database.execute("COMMIT")

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self.reading() as database:
            return database.execute(query, values).fetchall() if database else []

    def _has_tables(self, database: sqlite3.Connection) -> bool:
        return bool(database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (self._first,)).fetchone())

    @contextmanager
    def _connected(self, writes: bool) -> Iterator[sqlite3.Connection]:
        """A connection to the file that is there now, without the transaction that an error leaves open."""
        status = self.path.stat()
        with self._lock:
            there = [one for one in self._idle if os.path.samestat(one[0], status)]
            for old in [one for one in self._idle if one not in there]:
                old[1].close()
            database = there.pop()[1] if there else None
            self._idle = there
        is_shared = True
        if database is None:
            database, is_shared = connect(self.path, writes, self._busy)
        try:
            _refuse_foreign(database)
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

    @contextmanager
    def explained(self, purpose: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            detail, hint = explain(error, self.path)
            raise self._error(f"{self._name} {self.path} cannot be {purpose} ({detail[:200]}).", hint=hint) from error

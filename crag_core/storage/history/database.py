"""The history database: SQLite by default, PostgreSQL by URL; for any number of threads and processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crag_core.base.errors import BadRecord, HistoryUnavailable
from crag_core.base.network.database import driver_options, hide_password, limited, name_of, read_postgres_url
from crag_core.storage import sqlite_file

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow
    from sqlalchemy import URL, Connection, Engine

    from crag_core.storage.history.tables import Rows

T = TypeVar("T")
Empty = TypeVar("Empty")

BUSY_S = 5.0
CONNECT_S = 5
REPLY_S = 15.0
"""So long may a PostgreSQL take for one reply."""

_LAYOUT = "PRAGMA user_version = 1;"
"""Changes nothing, but has the file written; the tables come with the first transaction."""

_AWAY = "move it away with the -wal and -shm beside it, and a new one is started."
_HINTS = {
    sqlite3.SQLITE_BUSY: "Another process keeps it locked: try again in a moment, or stop that process.",
    sqlite3.SQLITE_READONLY: "Make the file and its folder writable for the user that runs this program.",
    sqlite3.SQLITE_CORRUPT: f"It is damaged: put a copy of it back, or {_AWAY}",
    sqlite3.SQLITE_NOTADB: f"It is not a database, or a damaged one: put a copy of it back, or {_AWAY}",
    sqlite3.SQLITE_FULL: "Free some disk space.",
    sqlite3.SQLITE_IOERR: "Free some disk space, if there is none; else look after the disk.",
}
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


class Database:
    """`place` is the path of an SQLite file, or the URL of one or of a PostgreSQL; raises `BadRecord` for another.

    Every fault after that is a `HistoryUnavailable`; `problem` is the last one, "" once something works again.
    Constructing it touches neither disk nor network.
    """

    def __init__(self, place: Path | str) -> None:
        self._url = None if isinstance(place, Path) else _read_url(place)
        self._file = place if isinstance(place, Path) else None
        if self._url is not None and self._url.get_backend_name() == "sqlite" and "uri" not in self._url.query:
            self._file = Path(self._url.database or "")
        self.problem = ""

    def read(self, work: Callable[[Rows], T], empty: Empty) -> T | Empty:
        """What `work` gives; `empty` where nothing has been written yet: looking creates nothing."""
        from crag_core.storage.history import tables

        version = 0
        with self._explaining("read"):
            if self._file is None or sqlite_file.is_there(self._file):
                with self._engine.connect() as connection:
                    version = tables.version(connection)
                    if version == len(tables.STEPS):
                        return work(tables.Rows(connection))
        if not version:
            return empty
        with self.writing() as rows:  # an earlier release wrote it
            return work(rows)

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        """One transaction, on a history of the present version, which is made where there is none."""
        from crag_core.storage.history import tables

        with self._explaining("written"):
            if self._file is not None and not sqlite_file.is_there(self._file):
                sqlite_file.make(self._file, _LAYOUT, BUSY_S)
            elif self._file is None:
                self._make_tables()
            with self._engine.connect().execution_options(crag_writes=True) as connection, connection.begin():
                if not tables.is_current(connection):
                    tables.upgrade(connection)
                yield tables.Rows(connection)

    def _make_tables(self) -> None:
        """Where writers do not wait for each other, two may make them at once: then one fails, and finds them made."""
        from sqlalchemy.exc import DBAPIError

        from crag_core.storage.history import tables

        with suppress(DBAPIError):  # other faults come up at the next statement
            with self._engine.connect() as connection:
                is_current = tables.is_current(connection)
            if not is_current:
                with self._engine.begin() as connection:
                    tables.upgrade(connection)

    @cached_property
    def _engine(self) -> Engine:
        from sqlalchemy import URL

        return _engine(self._url or URL.create("sqlite", database=str(self._file)))

    @contextmanager
    def _explaining(self, purpose: str) -> Iterator[None]:
        from sqlalchemy.exc import DBAPIError, TimeoutError

        try:
            yield
        except (DBAPIError, TimeoutError, OSError) as error:
            unavailable = self._unavailable(purpose, error)
            self.problem = str(unavailable)
            raise unavailable from error
        except HistoryUnavailable as error:
            self.problem = str(error)
            raise
        self.problem = ""

    def _unavailable(self, purpose: str, error: Exception) -> HistoryUnavailable:
        cause = getattr(error, "orig", None) or error
        detail = " ".join(str(cause).split())
        if self._url is not None:
            detail = hide_password(detail, self._url)
        if self._file is not None:
            name, hint = str(self._file), f"Check that {self._file.parent} is a folder that can be written to."
        else:
            assert self._url is not None
            name, hint = name_of(self._url), "Check that the database runs and lets you in."
        # The primary result code; its higher bits only say where it came up.
        hint = _HINTS.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF, hint)
        return HistoryUnavailable(f"The history {name} cannot be {purpose} ({detail[:200]}).", hint=hint)


def _engine(url: URL) -> Engine:
    from sqlalchemy import NullPool, create_engine, event

    if url.get_backend_name() == "postgresql":
        return create_engine(url, pool_pre_ping=True, creator=partial(_connect, url))
    # A connection for each transaction costs little, and none is left pointing to a file that was moved away.
    engine = create_engine(url, poolclass=NullPool, creator=partial(_open, url))

    # The driver itself begins before the first change: too late to read and then write in one transaction, and not at
    # all for a change of tables.
    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("crag_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _connect(url: URL) -> psycopg.Connection[TupleRow]:
    """A connection whose every reply has its limit, also those that SQLAlchemy asks for by itself."""
    import psycopg
    from psycopg.rows import TupleRow

    class Bounded(psycopg.Connection[TupleRow]):
        def wait(self, *args: Any, **options: Any) -> Any:
            try:
                with limited(self.fileno(), REPLY_S, psycopg.Error):
                    return super().wait(*args, **options)
            except TimeoutError as error:  # as the driver reports a lost connection
                raise psycopg.OperationalError(str(error)) from None

    positional, options = url.get_dialect()().create_connect_args(url)
    known: dict[str, Any] = {**options, **driver_options(url, CONNECT_S)}
    return Bounded.connect(*positional, **known)


def _open(url: URL) -> sqlite3.Connection:
    """Readers and writers share memory in a file, for which a full disk has no room; who is alone needs none."""
    positional, options = url.get_dialect()().create_connect_args(url)
    open_one: partial[sqlite3.Connection] = partial(sqlite3.connect, *positional, **{**options, "timeout": BUSY_S})
    database = open_one()
    try:
        database.execute("SELECT 1 FROM sqlite_master").fetchall()
    except sqlite3.Error as error:
        database.close()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _NO_ROOM:
            raise
        database = open_one()
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
    return database


def _read_url(text: str) -> URL:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    if not text.startswith("sqlite"):
        return read_postgres_url(text, "CRAG_HISTORY")[0]
    with suppress(ArgumentError, ValueError):
        url = make_url(text)
        if url.get_driver_name() == "pysqlite" and url.database not in (None, "", ":memory:"):
            return url
    raise BadRecord("CRAG_HISTORY: expected a database that keeps what is written, such as sqlite:////folder/file.db.")

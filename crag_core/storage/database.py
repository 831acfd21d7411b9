"""Tables in the SQLite file of a home, or by URL in another file or in a PostgreSQL; from any threads and processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import BadRecord, HistoryUnavailable
from crag_core.base.network.database import driver_options, hide_password, limited, name_of, read_postgres_url

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow
    from sqlalchemy import URL, Connection, Engine

T = TypeVar("T")
Empty = TypeVar("Empty")

REPLY_S = 15.0
"""How long a server may take to be reached, and for one reply."""
BUSY_S = sqlite_file.BUSY_S
RECYCLE_S = 60
"""An older connection to a server is not reused: a firewall between may have dropped it silently."""


class Database:
    """`place` is the path of an SQLite file, or the URL of one or of a PostgreSQL; raises `BadRecord` for another.

    Every fault after that is a `HistoryUnavailable`; `problem` is the last one, "" once something works again.
    Constructing it touches neither disk nor network. `create` makes the tables where `table` is not there.
    """

    def __init__(self, place: Path | str, table: str, create: Callable[[Connection], None]) -> None:
        self._table = table
        self._create = create
        self._url = None if isinstance(place, Path) else _read_url(place)
        self.file = place if isinstance(place, Path) else None
        if self._url is not None and self._url.get_backend_name() == "sqlite":
            self.file = Path(self._url.database or "")
        self._name = str(self.file) if self.file or not self._url else name_of(self._url)
        self._engines: dict[bool, Engine] = {}
        self.problem = ""

    def read(self, work: Callable[[Connection], T], empty: Empty) -> T | Empty:
        """What `work` gives; `empty` where nothing has been written yet: looking creates nothing."""
        with self._explaining("read"):
            if self.file is None or sqlite_file.is_there(self.file):
                with self._engine(False).connect() as connection:
                    if self._has_tables(connection):
                        return work(connection)
        return empty

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction; the tables are made where there are none."""
        from sqlalchemy.exc import DBAPIError

        with self._explaining("written"):
            if self.file is not None:
                sqlite_file.make(self.file)
            else:
                # Where writers do not wait for each other, two may make them at once: then one fails, and finds them
                # made. Other faults come up at the next statement.
                with suppress(DBAPIError):
                    with self._engine(True).connect() as connection:
                        is_made = self._has_tables(connection)
                    if not is_made:
                        with self._engine(True).begin() as connection:
                            self._create(connection)
            with self._engine(True).begin() as connection:
                if self.file is not None and not self._has_tables(connection):
                    self._create(connection)
                yield connection

    def close(self) -> None:
        for engine in self._engines.values():
            engine.dispose()

    def _has_tables(self, connection: Connection) -> bool:
        from sqlalchemy import inspect

        return inspect(connection).has_table(self._table)

    def _engine(self, writes: bool) -> Engine:
        key = writes and self.file is not None
        if key not in self._engines:
            made = _sqlite(self.file, writes) if self.file else _postgres(self._url)  # type: ignore[arg-type]
            self._engines.setdefault(key, made)
        return self._engines[key]

    @contextmanager
    def _explaining(self, purpose: str) -> Iterator[None]:
        from sqlalchemy.exc import DBAPIError, TimeoutError

        try:
            yield
        except (DBAPIError, TimeoutError, OSError) as error:
            detail, hint = self._explain(error)
            unavailable = HistoryUnavailable(f"The history {self._name} cannot be {purpose} ({detail}).", hint=hint)
            self.problem = str(unavailable)
            raise unavailable from error
        except HistoryUnavailable as error:
            self.problem = str(error)
            raise
        self.problem = ""

    def _explain(self, error: Exception) -> tuple[str, str]:
        """What went wrong in a few words, without a password, and what to do."""
        cause = getattr(error, "orig", None) or error
        if self.file is not None:
            detail, hint = sqlite_file.explain(cause, self.file)
        else:
            detail = str(cause)
            hint = "Check that the database runs and lets you in. The first write makes a table."
        if self._url is not None:
            detail = hide_password(detail, self._url)
        return " ".join(detail.split())[:200], hint


def _sqlite(file: Path, writes: bool) -> Engine:
    from sqlalchemy import NullPool, create_engine, event

    def open_one() -> sqlite3.Connection:
        return sqlite_file.connect(file, writes, BUSY_S)[0]

    # A connection for each transaction costs little, and none is left pointing to a file that was moved away.
    engine = create_engine("sqlite://", poolclass=NullPool, creator=open_one)

    # The driver itself begins before the first change: too late to read and then write in one transaction, and not at
    # all for a change of tables.
    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgres(url: URL) -> Engine:
    from sqlalchemy import create_engine

    return create_engine(
        url, pool_pre_ping=True, pool_timeout=REPLY_S, pool_recycle=RECYCLE_S, creator=partial(_connect, url)
    )


def _connect(url: URL) -> psycopg.Connection[TupleRow]:
    """A connection whose every reply has its limit, also those that SQLAlchemy asks for by itself."""
    positional, options = url.get_dialect()().create_connect_args(url)
    known: dict[str, Any] = {**options, **driver_options(url, max(2, min(5, round(REPLY_S))))}
    return _bounded(REPLY_S).connect(*positional, **known)


@cache
def _bounded(seconds: float) -> type[psycopg.Connection[TupleRow]]:
    import psycopg
    from psycopg.rows import TupleRow

    class Bounded(psycopg.Connection[TupleRow]):
        def wait(self, *args: Any, **options: Any) -> Any:
            try:
                with limited(self.fileno(), seconds, psycopg.Error):
                    return super().wait(*args, **options)
            except TimeoutError as error:  # as the driver reports a lost connection
                raise psycopg.OperationalError(str(error)) from None

    return Bounded


def _read_url(text: str) -> URL:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    if not text.startswith("sqlite"):
        return read_postgres_url(text, "CRAG_HISTORY")
    with suppress(ArgumentError, ValueError):
        url = make_url(text)
        is_file = url.database not in (None, "", ":memory:") and not url.query
        if url.get_driver_name() == "pysqlite" and is_file:
            return url
    raise BadRecord("CRAG_HISTORY: expected a database that keeps what is written, such as sqlite:////folder/file.db.")

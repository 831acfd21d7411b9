"""The database of the history: the SQLite file of a home, or by URL another file or a PostgreSQL; loads SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, exc, inspect, make_url

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import BadRecord, HistoryUnavailable
from crag_core.base.network.database import driver_options, hide_password, limited, name_of, read_postgres_url
from crag_core.storage.history.tables import HISTORY, Rows, create

T = TypeVar("T")
Empty = TypeVar("Empty")

REPLY_S = 15.0
"""How long a server may take to be reached, and for one reply."""
_CONNECT_S = 5
BUSY_S = sqlite_file.BUSY_S
RECYCLE_S = 60
"""An older connection to a server is not reused: a firewall between may have dropped it silently."""


class Database:
    """`place` is the path of an SQLite file, or the URL of one or of a PostgreSQL; raises `BadRecord` for another.

    Every fault after that is a `HistoryUnavailable`. Safe to use from several threads; connects at the first use.
    """

    def __init__(self, place: Path | str) -> None:
        self._url = None if isinstance(place, Path) else _read_url(place)
        self.file = place if isinstance(place, Path) else None
        if self._url is not None and self._url.get_backend_name() == "sqlite":
            self.file = Path(self._url.database or "")
        if self.file is not None:
            self._reader, self._writer = _sqlite(self.file, False), _sqlite(self.file, True)
        elif self._url is not None:
            self._reader = self._writer = _postgres(self._url)

    def read(self, work: Callable[[Rows], T], empty: Empty) -> T | Empty:
        """What `work` gives; `empty` where nothing has been written yet: looking creates nothing."""
        with self._explaining("read"):
            if self.file is None or sqlite_file.is_there(self.file):
                with self._reader.connect() as connection:
                    if _has_tables(connection):
                        return work(Rows(connection))
        return empty

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        """One transaction; the tables are made where there are none."""
        with self._explaining("written"):
            if self.file is not None:
                sqlite_file.make(self.file)
            else:
                # Where writers do not wait for each other, two may make them at once: then one fails, and finds them
                # made. Other faults come up at the next statement.
                with suppress(exc.DBAPIError), self._writer.begin() as connection:
                    _make_tables(connection)
            with self._writer.begin() as connection:
                _make_tables(connection)
                yield Rows(connection)

    def close(self) -> None:
        self._reader.dispose()
        self._writer.dispose()

    @contextmanager
    def _explaining(self, purpose: str) -> Iterator[None]:
        """Says what went wrong in a few words, without a password, and what to do."""
        try:
            yield
        except (exc.DBAPIError, exc.TimeoutError, OSError) as error:
            cause = getattr(error, "orig", None) or error
            if self.file is not None:
                detail, hint = sqlite_file.explain(cause, self.file)
            else:
                detail = str(cause)
                hint = "Check that the database runs and lets you in. The first write makes a table."
            if self._url is not None:
                detail = hide_password(detail, self._url)
            name = str(self.file) if self.file or not self._url else name_of(self._url)
            detail = " ".join(detail.split())[:200]
            raise HistoryUnavailable(f"The history {name} cannot be {purpose} ({detail}).", hint=hint) from error


def _has_tables(connection: Connection) -> bool:
    return inspect(connection).has_table(HISTORY.name)


def _make_tables(connection: Connection) -> None:
    if not _has_tables(connection):
        create(connection)


def _sqlite(file: Path, writes: bool) -> Engine:
    # A connection for each transaction costs little, and none is left pointing to a file that was moved away.
    engine = create_engine(
        "sqlite://", poolclass=NullPool, creator=lambda: sqlite_file.connect(file, writes, BUSY_S)[0]
    )

    # The driver itself begins before the first change: too late to read and then write in one transaction, and not at
    # all for a change of tables.
    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgres(url: URL) -> Engine:
    """Each reply of a connection has its limit, also those that SQLAlchemy asks for by itself."""
    import psycopg

    class Bounded(psycopg.Connection[Any]):
        def wait(self, *args: Any, **options: Any) -> Any:
            try:
                with limited(self.fileno(), REPLY_S, psycopg.Error):
                    return super().wait(*args, **options)
            except TimeoutError as error:  # as the driver reports a lost connection
                raise psycopg.OperationalError(str(error)) from None

    positional, options = url.get_dialect()().create_connect_args(url)
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_timeout=REPLY_S,
        pool_recycle=RECYCLE_S,
        creator=partial(Bounded.connect, *positional, **{**options, **driver_options(url, _CONNECT_S)}),
    )


def _read_url(text: str) -> URL:
    if not text.startswith("sqlite"):
        return read_postgres_url(text, "CRAG_HISTORY")
    with suppress(exc.ArgumentError, ValueError):
        url = make_url(text)
        is_file = url.database not in (None, "", ":memory:") and not url.query
        if url.get_driver_name() == "pysqlite" and is_file:
            return url
    raise BadRecord("CRAG_HISTORY: expected a database that keeps what is written, such as sqlite:////folder/file.db.")

"""Connections to one PostgreSQL: a small pool, renewed when they died, and the one that holds the lock; its errors."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import psycopg

from crag_core.base.errors import StoreUnavailable
from crag_core.base.network import database
from crag_core.base.network.database import driver_options, hide_password, name_of, read_postgres_url
from crag_core.retrieval.backends.backend import lock_taken

if TYPE_CHECKING:
    from psycopg.rows import TupleRow
    from sqlalchemy import URL

    Connection = psycopg.Connection[TupleRow]

T = TypeVar("T")
Other = TypeVar("Other")

CONNECT_S = 5
READ_S = 30.0
WRITE_S = 120.0
LOCK_S = 120.0
_LOCK_AT_ONCE_S = 10.0
"""One attempt waits so long for the lock; between two the server must be seen to answer."""
_KEPT = 5
_KEPT_S = 60.0
"""An older connection is not reused: a firewall between may have dropped it silently."""
# With keepalives the lock of a machine that is gone, and cannot say so, is free within a minute.
_LIMIT = """
    SELECT set_config('lock_timeout', %s, true), set_config('tcp_keepalives_idle', '30', true),
    set_config('tcp_keepalives_interval', '10', true), set_config('tcp_keepalives_count', '3', true)"""
# Of a transaction, not of a session: so it is right behind a pooler too.
_TAKE_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('crag index ' || coalesce(current_schema(), ''), 0))"
_LOST = ("08", "57P", "28", "3D")  # SQLSTATE prefixes: the server closed the connection, or refused it
_REACHED = "Check that the server runs and has this database, and host, user and password in CRAG_STORE."
_ADVICE = {
    "53300": "It has no room for another connection: close some, or raise its max_connections.",
    "53": "Free some disk space on the server and try again; what was indexed before is safe.",
    "42501": "Give this user the right to make tables here, and to read and write those that begin with crag_.",
    "3F000": "Make the schema that this user's search_path names, with the right to make tables in it.",
    "25006": "This server is read-only: name the one that takes writes in CRAG_STORE.",
    "57014": "The server cancelled this, which took too long by its settings: try again when it has less to do.",
    "55P03": "Somebody else holds what is needed here: try again when the server has less to do.",
    "40": "Somebody else changed the same at the same time: try again.",
    "42704": "Put the schema of the extension vector into this user's search_path.",
    "22P05": "Make the database with the encoding UTF8.",
    "": "Check that the tables that begin with crag_ are those of CRAG Explorer and nobody changed them.",
}
"""What to do, by the prefix of SQLSTATE."""


class Server:
    """One for all threads of a process, and of those that fork from it. Making it reaches no network."""

    def __init__(self, url: str, prepare: Callable[[Connection, str], None]) -> None:
        """`prepare` sees to the tables; it is called by the first who holds the lock. Raises `BadRecord`."""
        self._address, options = read_postgres_url(url, "CRAG_STORE")
        self._options = {**options, **driver_options(self._address, CONNECT_S)}
        self.place = name_of(self._address)
        self._prepare = prepare
        self._is_prepared = False
        self._turn = threading.Lock()
        self._mine = threading.local()
        self._kept: list[tuple[float, Connection]] = []
        self._process = os.getpid()

    @contextmanager
    def explain(self) -> Iterator[None]:
        with explain_faults(self.place, self._address):
            yield

    def read(self, work: Callable[[Connection], T], otherwise: Other) -> T | Other:
        """What `work` gives, or `otherwise` where a table is not there. Inside the lock it sees what was written.

        Tried once more where the connection had died since it was last used.
        """
        with self.explain():
            try:
                if (held := self._held()) is None:
                    return self._retry(work)
                with limited(held, READ_S), held.transaction():
                    return work(held)
            except psycopg.errors.UndefinedTable:
                return otherwise

    def write(self, work: Callable[[Connection], T]) -> T:
        """Inside the lock: all that is written there is committed at its end at once, or none of it."""
        held = self._held()
        assert held is not None, "only who holds the lock may write"
        with self.explain(), limited(held, WRITE_S):
            return work(held)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One transaction, which holds the lock: a lost connection loses the lock and what was written."""
        assert self._held() is None, "the lock is held already"
        if not self._turn.acquire(timeout=LOCK_S):
            raise lock_taken(LOCK_S)
        try:
            with self.explain():
                connection = self._begin()
            self._mine.held = connection
            try:
                yield
                with self.explain(), limited(connection, WRITE_S):
                    self._commit(connection)
            except BaseException:
                self._is_prepared = False  # somebody may have taken the tables away
                with suppress(psycopg.Error, OSError), limited(connection, READ_S):
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._mine.held = None
                self._give_back(connection)
            self._is_prepared = True
        finally:
            self._turn.release()

    @contextmanager
    def apart(self) -> Iterator[Connection]:
        """A connection for one use, for work without a time limit; not inside the lock."""
        assert self._held() is None, "such work would wait for the end of the lock"
        with self.explain():
            connection = self._connect()
            try:
                yield connection
            finally:
                connection.close()

    def _held(self) -> Connection | None:
        return getattr(self._mine, "held", None)

    def _retry(self, work: Callable[[Connection], T]) -> T:
        while True:
            connection, is_new = self._take()
            try:
                with limited(connection, READ_S):
                    return work(connection)
            except psycopg.OperationalError:
                if is_new or not connection.closed:
                    raise
                self._forget()  # the others died with it
            finally:
                self._give_back(connection)

    def _begin(self) -> Connection:
        """A transaction that holds the lock."""
        end = time.monotonic() + LOCK_S
        while True:
            connection, is_new = self._take()
            try:
                self._try_lock(connection)
                return connection
            except psycopg.errors.LockNotAvailable:
                with limited(connection, READ_S):
                    connection.execute("ROLLBACK")
                self._give_back(connection)
                if time.monotonic() >= end:
                    raise lock_taken(LOCK_S) from None
            except psycopg.OperationalError:
                if is_new or not connection.closed:
                    raise
                self._forget()

    def _try_lock(self, connection: Connection) -> None:
        try:
            with limited(connection, READ_S):
                connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
                connection.execute(_LIMIT, (f"{min(LOCK_S, _LOCK_AT_ONCE_S):g}s",))
                connection.execute(_TAKE_LOCK)
            if not self._is_prepared:
                with limited(connection, WRITE_S):
                    self._prepare(connection, self.place)
        except psycopg.errors.LockNotAvailable:
            raise
        except BaseException:
            connection.close()
            raise

    def _commit(self, connection: Connection) -> None:
        done = connection.execute("COMMIT").statusmessage
        if done != "COMMIT":  # somebody went on after an error
            raise StoreUnavailable(f"The index in {self.place} did not take what was written.", hint="Try again.")

    def _take(self) -> tuple[Connection, bool]:
        """A connection, and whether it is a new one."""
        if self._process != os.getpid():  # those of the process that this one was forked from are not ours
            self._process, self._kept = os.getpid(), []
        while self._kept:
            with suppress(IndexError):
                since, connection = self._kept.pop()
                if time.monotonic() - since < _KEPT_S:
                    return connection, False
                connection.close()
        return self._connect(), True

    def _connect(self) -> Connection:
        connection = psycopg.connect(**self._options, autocommit=True)
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return connection

    def _give_back(self, connection: Connection) -> None:
        is_idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if is_idle and len(self._kept) < _KEPT:
            self._kept.append((time.monotonic(), connection))
        else:
            connection.close()

    def _forget(self) -> None:
        while self._kept:
            with suppress(IndexError):
                self._kept.pop()[1].close()


@contextmanager
def explain_faults(place: str, address: URL) -> Iterator[None]:
    """Turn what the driver raises into `StoreUnavailable`."""
    try:
        yield
    except (psycopg.Error, OSError) as error:
        code = getattr(error, "sqlstate", None) or ""
        is_lost = code.startswith(_LOST) or (not code and isinstance(error, psycopg.OperationalError | OSError))
        detail = hide_password(" ".join(str(error).split()), address)[:300]
        advice = _REACHED if is_lost else next(message for known, message in _ADVICE.items() if code.startswith(known))
        what = "reached" if is_lost else "used"
        raise StoreUnavailable(f"The index in {place} cannot be {what} ({detail}).", hint=advice) from error


def limited(connection: Connection, seconds: float) -> AbstractContextManager[None]:
    return database.limited(connection.fileno(), seconds, psycopg.Error)

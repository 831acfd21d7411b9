"""Grades in a PostgreSQL, for any number of processes and machines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from crag_core.base.errors import BadRecord
from crag_core.base.network.database_url import check_address, driver_options, hide_password, name_of, with_driver
from crag_core.base.network.reply_timeout import limited
from crag_core.base.protocols import Clock
from crag_core.base.types import Grade
from crag_core.storage.cache.backoff import AWAY_S, Absence
from crag_core.storage.cache.health import Health
from crag_core.storage.cache.values import decode, encode

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine
    from sqlalchemy.exc import DBAPIError

Found = TypeVar("Found")

CONNECT_S = 2
REPLY_S = 2.0
RECYCLE_S = 60
"""So old a connection is not used again: what lies between may have forgotten it without a word."""
SWEEP_S = 600.0
_MISSING_TABLE = "42P01"
_LOST = ("08", "57P")  # how the codes begin of a server that breaks off


class PostgresCache:
    """Keeps a grade for `seconds`. Raises `BadRecord` for a URL that cannot be read; connects at the first use.

    The time is the server's, for the clocks of its clients differ. `name` is the URL without user, password and
    options. `problem` says what is wrong, "" when nothing is.
    """

    def __init__(self, url: str, seconds: float, clock: Clock = time.monotonic) -> None:
        self._url = _read_url(url)
        self.name = name_of(self._url)
        self._seconds = seconds
        self._clock = clock
        self._health = Health(self.name)
        self._absence = Absence(clock)
        self._swept_at: float | None = None

    @property
    def problem(self) -> str:
        return self._health.problem

    def get_many(self, keys: Sequence[str]) -> dict[str, Grade]:
        from crag_core.storage.cache import postgres_rows

        if not keys:
            return {}
        values = self._attempt("read", lambda connection: postgres_rows.read(connection, keys))
        grades = {key: decode(value) for key, value in (values or {}).items()}
        return {key: grade for key, grade in grades.items() if grade is not None}

    def put_many(self, grades: dict[str, Grade]) -> None:
        from crag_core.storage.cache import postgres_rows

        if not grades:
            return
        values = {key: encode(grade).decode("ascii") for key, grade in grades.items()}
        lifetime = timedelta(seconds=self._seconds)
        self._attempt("written", lambda connection: postgres_rows.write(connection, values, lifetime))
        if self._swept_at is None or self._clock() >= self._swept_at + SWEEP_S:
            self._swept_at = self._clock()
            self._attempt("written", postgres_rows.sweep)

    def close(self) -> None:
        self._engine.dispose()

    @cached_property
    def _engine(self) -> Engine:
        from sqlalchemy import create_engine

        options = driver_options(self._url, CONNECT_S)
        return create_engine(self._url, pool_timeout=REPLY_S, pool_recycle=RECYCLE_S, connect_args=options)

    def _attempt(self, purpose: str, work: Callable[[Connection], Found]) -> Found | None:
        """What `work` gives in one transaction, or None and a problem."""
        from sqlalchemy.exc import DBAPIError, TimeoutError

        if self._absence.is_now():
            return None
        try:
            done = self._run(work)
        except (DBAPIError, TimeoutError, OSError) as error:
            if _is_lost(error):
                self._absence.begin()
                hint = f"Check that the server runs and lets you in; it is tried again every {AWAY_S:.0f} s."
                self._health.report("reached", self._explain("reached", error, hint))
            else:  # it answers, and says no: asking it costs no waiting
                self._back()
                hint = "Check that this user may make a table and write to it, and that the disk is not full."
                self._health.report(purpose, self._explain(purpose, error, hint))
            return None
        self._back()
        self._health.report(purpose, "")
        return done

    def _run(self, work: Callable[[Connection], Found]) -> Found:
        """Once more where the server was started anew since the last time, or has no table yet."""
        from sqlalchemy.exc import DBAPIError

        from crag_core.storage.cache import postgres_rows

        try:
            return self._transact(work)
        except DBAPIError as error:
            if _code(error) == _MISSING_TABLE:
                with suppress(DBAPIError):  # another process may be quicker; what else is wrong, the next one tells
                    self._transact(postgres_rows.make_table)
            elif not error.connection_invalidated:
                raise
        return self._transact(work)

    def _transact(self, work: Callable[[Connection], Found]) -> Found:
        from sqlalchemy.exc import DBAPIError

        with (
            self._engine.connect() as connection,
            limited(_number_of(connection), REPLY_S, DBAPIError),
            connection.begin(),
        ):
            return work(connection)

    def _back(self) -> None:
        self._absence.end()
        self._health.report("reached", "")

    def _explain(self, purpose: str, error: Exception, hint: str) -> str:
        cause = getattr(error, "orig", None) or error
        detail = hide_password(" ".join(str(cause).split()), self._url)
        return f"The grade cache {self.name} cannot be {purpose} ({detail[:200]}), so grades are made anew. {hint}"


def _number_of(connection: Connection) -> int:
    """Of its line, among the process's."""
    raw = connection.connection.driver_connection
    assert raw is not None
    return int(raw.fileno())


def _is_lost(error: Exception) -> bool:
    """Whether it was no answer at all, or the last one."""
    from sqlalchemy.exc import DBAPIError, OperationalError

    if not isinstance(error, DBAPIError):
        return True
    code = _code(error)
    return error.connection_invalidated or (isinstance(error, OperationalError) and not code) or code.startswith(_LOST)


def _code(error: DBAPIError) -> str:
    """PostgreSQL's own; empty for an error of the driver."""
    return getattr(error.orig, "sqlstate", None) or ""


def _read_url(text: str) -> URL:
    import psycopg
    from psycopg.conninfo import make_conninfo
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        text.encode("utf-8")
        url = make_url(with_driver(text))
        check_address(url)
        _, options = url.get_dialect()().create_connect_args(url)
        make_conninfo(**options)  # complains of options that it does not know
    except (ArgumentError, ValueError, TypeError, psycopg.Error):
        # Their own words may quote a piece of the password.
        raise BadRecord(
            "The URL of the PostgreSQL cache: expected postgresql://[user:password@]host[:port]/database; found one "
            "that cannot be read, not shown because of its password.",
            hint="Write the signs / # ? @ : % of a password as %2F %23 %3F %40 %3A %25.",
        ) from None
    return url

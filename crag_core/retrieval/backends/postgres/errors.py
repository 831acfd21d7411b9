"""Explains errors of PostgreSQL and of the connection to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import psycopg

from crag_core.base.errors import StoreUnavailable
from crag_core.base.network import database
from crag_core.base.network.database import hide_password

if TYPE_CHECKING:
    from psycopg.rows import TupleRow
    from sqlalchemy import URL

    Connection = psycopg.Connection[TupleRow]

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

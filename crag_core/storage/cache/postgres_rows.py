"""The table of grades in a PostgreSQL, and what is read and written in one transaction; loads SQLAlchemy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from sqlalchemy import Column, Connection, DateTime, MetaData, Table, Text, delete, func, literal, select
from sqlalchemy.dialects.postgresql import insert

_tables = MetaData()
# `value` is JSON in ASCII: no text of a question or document can be one that a database refuses.
GRADES = Table(
    "crag_grades",
    _tables,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False, index=True),
)
_MOST_AT_ONCE = 10_000


def make_table(connection: Connection) -> None:
    _tables.create_all(connection)


def read(connection: Connection, keys: Sequence[str]) -> dict[str, str]:
    """The values that have not expired."""
    wanted = select(GRADES.c.key, GRADES.c.value).where(GRADES.c.key.in_(keys), GRADES.c.expires_at > func.now())
    return {key: value for key, value in connection.execute(wanted)}


def write(connection: Connection, values: Mapping[str, str], lifetime: timedelta) -> None:
    end = func.now() + literal(lifetime)
    # In one order everywhere: two writers that lock the same rows crosswise would wait for each other.
    rows = [{"key": key, "value": values[key], "expires_at": end} for key in sorted(values)]
    new = insert(GRADES).values(rows)
    changed = {"value": new.excluded.value, "expires_at": new.excluded.expires_at}
    connection.execute(new.on_conflict_do_update(index_elements=["key"], set_=changed))


def sweep(connection: Connection) -> None:
    """Delete what has expired, except what another process is about to delete or to write."""
    expired = select(GRADES.c.key).where(GRADES.c.expires_at <= func.now()).limit(_MOST_AT_ONCE)
    connection.execute(delete(GRADES).where(GRADES.c.key.in_(expired.with_for_update(skip_locked=True))))

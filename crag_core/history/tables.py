"""The tables of the history, and the way to them from every earlier version; loads SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    func,
    insert,
    inspect,
    select,
    update,
)

from crag_core.errors import HistoryUnavailable

_tables = MetaData()
_history = Table("crag_history", _tables, Column("version", Integer, nullable=False))

# `record` and `label` are JSON in ASCII: no text of a question or document can be one that a database refuses.
RUNS = Table(
    "crag_runs",
    _tables,
    Column("id", String(64), primary_key=True),
    Column("kept_at", Float, nullable=False, index=True),
    Column("created", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("policy", Text, nullable=False),
    Column("evaluator", Text, nullable=False),
    Column("imported", Boolean, nullable=False),
    Column("record", Text, nullable=False),
)
LABELS = Table(
    "crag_labels",
    _tables,
    Column("key", String(64), primary_key=True),
    Column("run_id", String(64), nullable=False, index=True),
    Column("kept_at", Float, nullable=False, index=True),
    Column("label", Text, nullable=False),
)


def _create(connection: Connection) -> None:
    _tables.create_all(connection)
    connection.execute(insert(_history).values(version=0))


STEPS: tuple[Callable[[Connection], None], ...] = (_create,)
"""The n-th brings a history of version n - 1 to version n. What was released is never changed, only added to: before
RUNS or LABELS get another column, `_create` needs a copy of them as they are now."""


def version(connection: Connection) -> int:
    """0 where there is no history yet; raises `HistoryUnavailable` for one that a later version wrote."""
    if not inspect(connection).has_table(_history.name):
        return 0
    found = connection.execute(select(func.max(_history.c.version))).scalar() or 0
    if found > len(STEPS):
        raise HistoryUnavailable(
            f"The history was written by a later version of this program: it has version {found}, expected at most "
            f"{len(STEPS)}.",
            hint="Start that version, or set CRAG_HISTORY to another place.",
        )
    return int(found)


def upgrade(connection: Connection) -> None:
    """Bring the history to the present version; inside a transaction that nobody else writes in."""
    before = version(connection)
    for number, step in enumerate(STEPS[before:], start=before + 1):
        step(connection)
        connection.execute(update(_history).values(version=number))

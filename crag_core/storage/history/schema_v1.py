"""The tables of version 1; never changed. Loads SQLAlchemy."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Connection, Float, Integer, MetaData, String, Table, Text, insert

_tables = MetaData()
_history = Table("crag_history", _tables, Column("version", Integer, nullable=False))
FIRST_RUNS = Table(
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
FIRST_LABELS = Table(
    "crag_labels",
    _tables,
    Column("key", String(64), primary_key=True),
    Column("run_id", String(64), nullable=False, index=True),
    Column("kept_at", Float, nullable=False, index=True),
    Column("label", Text, nullable=False),
)


def create_first(connection: Connection) -> None:
    """The step to version 1."""
    _tables.create_all(connection)
    connection.execute(insert(_history).values(version=0))

"""The tables of version 2 and the migration to them; loads SQLAlchemy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    insert,
    select,
    text,
    update,
)

from crag_core.base.errors import CragError
from crag_core.base.serialization import from_plain
from crag_core.storage.history.run_columns import columns_of, columns_without_record
from crag_core.storage.history.schema_v1 import FIRST_LABELS, FIRST_RUNS
from crag_core.trace.feedback import Label
from crag_core.trace.trace import Trace

_tables = MetaData()
_OLD = "crag_runs_1"
_AT_A_TIME = 50

# `record` and `label` are JSON in ASCII: no text of a question or document can be one that a database refuses. The
# record is large, and the last column, so that whoever reads the others need not read over it.
RUNS = Table(
    "crag_runs",
    _tables,
    Column("id", String(64), primary_key=True),
    Column("kept_at", Float, nullable=False),
    Column("imported", Boolean, nullable=False),
    Column("readable", Boolean, nullable=False),
    Column("score", Float),
    Column("decided_ms", Float),
    Column("retrieval_ms", Float),
    Column("provider_ms", Float),
    Column("total_ms", Float, nullable=False),
    Column("searched", Boolean, nullable=False),
    Column("improved", Boolean),
    Column("graded", Integer, nullable=False),
    Column("ungraded", Integer, nullable=False),
    Column("cached", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("action", Text, nullable=False),
    Column("ending", Text, nullable=False),
    Column("policy", Text, nullable=False),
    Column("strategy", Text, nullable=False),
    Column("evaluator", Text, nullable=False),
    Column("evaluator_version", Text, nullable=False),
    Column("writer", Text, nullable=False),
    Column("writer_version", Text, nullable=False),
    Column("embedding", Text, nullable=False),
    Column("fingerprint", String(16), nullable=False),
    Column("asked_by", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("searched_text", Text, nullable=False),
    Column("record", Text, nullable=False),
    Index("ix_crag_runs_kept_at", "kept_at", "id"),
    Index("ix_crag_runs_asked_by", "asked_by", "kept_at"),
)
LABELS = Table(
    "crag_labels",
    _tables,
    Column("key", String(64), primary_key=True),
    Column("run_id", String(64), nullable=False, index=True),
    Column("kept_at", Float, nullable=False, index=True),
    Column("about", Text, nullable=False),
    Column("mark", Text, nullable=False),
    Column("label", Text, nullable=False),
)


def select_and_count(connection: Connection) -> None:
    """The step to version 2: the runs move into a table with more columns, which their records fill.

    A record that this version cannot read is kept as it is, without figures.
    """
    connection.execute(text("DROP INDEX ix_crag_runs_kept_at"))
    connection.execute(text(f"ALTER TABLE crag_runs RENAME TO {_OLD}"))
    RUNS.create(connection)
    old = FIRST_RUNS.to_metadata(MetaData(), name=_OLD)
    ids = connection.execute(select(old.c.id)).scalars().all()
    for some in _portions(ids):  # never all records in memory
        rows = connection.execute(select(old).where(old.c.id.in_(some))).all()
        connection.execute(insert(RUNS), [_moved(row._asdict()) for row in rows])
    connection.execute(text(f"DROP TABLE {_OLD}"))
    for name in ("about", "mark"):
        connection.execute(text(f"ALTER TABLE crag_labels ADD COLUMN {name} TEXT NOT NULL DEFAULT ''"))
    _fill_labels(connection)
    # Up to where old runs were deleted, see `Rows.border`.
    connection.execute(text("ALTER TABLE crag_history ADD COLUMN seen FLOAT"))


def _moved(row: dict[str, Any]) -> dict[str, Any]:
    try:
        message = columns_of(Trace.from_json(row["record"]))
    except CragError:
        message = columns_without_record(row["question"])
    return message | row | {"asked_by": ""}


def _fill_labels(connection: Connection) -> None:
    keys = connection.execute(select(FIRST_LABELS.c.key)).scalars().all()
    for some in _portions(keys):
        rows = connection.execute(select(FIRST_LABELS.c.key, FIRST_LABELS.c.label).where(FIRST_LABELS.c.key.in_(some)))
        for key, kept in rows.all():
            try:
                label = from_plain(Label, json.loads(kept), "label")
            except (CragError, ValueError, RecursionError):
                continue
            change = update(LABELS).where(LABELS.c.key == key)
            connection.execute(change.values(about=label.about.value, mark=label.mark.value))


def _portions(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[start : start + _AT_A_TIME] for start in range(0, len(keys), _AT_A_TIME))

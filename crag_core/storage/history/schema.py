"""The tables, and the migration from every earlier version; loads SQLAlchemy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
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
    column,
    insert,
    inspect,
    select,
    table,
    text,
    update,
)

from crag_core.base.errors import CragError, HistoryUnavailable
from crag_core.base.serialization import from_plain
from crag_core.storage.history.run_columns import columns_of, columns_without_record
from crag_core.trace.feedback import Label
from crag_core.trace.trace import Trace


def _columns(kind: type[Any], *names: str, nullable: bool = False) -> Iterator[Column[Any]]:
    return (Column(name, kind, nullable=nullable) for name in names)


HISTORY = Table("crag_history", MetaData(), Column("version", Integer, nullable=False), Column("seen", Float))
# `record` and `label` are JSON in ASCII: no text of a question or document can be one that a database refuses. The
# record is large, and the last column, so that whoever reads the others need not read over it.
RUNS = Table(
    "crag_runs",
    MetaData(),
    Column("id", String(64), primary_key=True),
    *_columns(Float, "kept_at"),
    *_columns(Boolean, "imported", "readable"),
    *_columns(Float, "score", "decided_ms", "retrieval_ms", "provider_ms", nullable=True),
    *_columns(Float, "total_ms"),
    *_columns(Boolean, "searched"),
    *_columns(Boolean, "improved", nullable=True),
    *_columns(Integer, "graded", "ungraded", "cached", "calls", "prompt_tokens", "completion_tokens"),
    *_columns(Text, "action", "ending", "policy", "strategy", "evaluator", "evaluator_version"),
    *_columns(Text, "writer", "writer_version", "embedding"),
    Column("fingerprint", String(16), nullable=False),
    *_columns(Text, "asked_by", "created", "question", "searched_text", "record"),
    Index("ix_crag_runs_kept_at", "kept_at", "id"),
    Index("ix_crag_runs_asked_by", "asked_by", "kept_at"),
)
LABELS = Table(
    "crag_labels",
    MetaData(),
    Column("key", String(64), primary_key=True),
    Column("run_id", String(64), nullable=False, index=True),
    Column("kept_at", Float, nullable=False, index=True),
    *_columns(Text, "about", "mark", "label"),
)
_FIRST = """
    CREATE TABLE crag_history (version INTEGER NOT NULL);
    CREATE TABLE crag_runs (id VARCHAR(64) NOT NULL, kept_at FLOAT NOT NULL, created TEXT NOT NULL,
        question TEXT NOT NULL, action TEXT NOT NULL, policy TEXT NOT NULL, evaluator TEXT NOT NULL,
        imported BOOLEAN NOT NULL, record TEXT NOT NULL, PRIMARY KEY (id));
    CREATE INDEX ix_crag_runs_kept_at ON crag_runs (kept_at);
    CREATE TABLE crag_labels ("key" VARCHAR(64) NOT NULL, run_id VARCHAR(64) NOT NULL, kept_at FLOAT NOT NULL,
        label TEXT NOT NULL, PRIMARY KEY ("key"));
    CREATE INDEX ix_crag_labels_run_id ON crag_labels (run_id);
    CREATE INDEX ix_crag_labels_kept_at ON crag_labels (kept_at);
    INSERT INTO crag_history (version) VALUES (0)"""
_OLD = "crag_runs_1"
_AT_A_TIME = 50


def create_first(connection: Connection) -> None:
    """The step to version 1."""
    for statement in _FIRST.split(";"):
        connection.execute(text(statement))


def select_and_count(connection: Connection) -> None:
    """The step to version 2: the runs move into a table with more columns, which their records fill.

    A record that this version cannot read is kept as it is, without figures.
    """
    connection.execute(text("DROP INDEX ix_crag_runs_kept_at"))
    connection.execute(text(f"ALTER TABLE crag_runs RENAME TO {_OLD}"))
    RUNS.create(connection)
    old = table(_OLD, column("id"))
    ids = connection.execute(select(old.c.id)).scalars().all()
    for some in portions(ids, _AT_A_TIME):  # never all records in memory
        rows = connection.execute(select(text("*")).select_from(old).where(old.c.id.in_(some))).all()
        connection.execute(insert(RUNS), [_moved(row._asdict()) for row in rows])
    connection.execute(text(f"DROP TABLE {_OLD}"))
    for name in ("about", "mark"):
        connection.execute(text(f"ALTER TABLE crag_labels ADD COLUMN {name} TEXT NOT NULL DEFAULT ''"))
    _fill_labels(connection)
    # Up to where old runs were deleted, see `Rows.pruned_until`.
    connection.execute(text("ALTER TABLE crag_history ADD COLUMN seen FLOAT"))


def _moved(row: dict[str, Any]) -> dict[str, Any]:
    try:
        columns = columns_of(Trace.from_json(row["record"]))
    except CragError:
        columns = columns_without_record(row["question"])
    return columns | row | {"asked_by": ""}


def _fill_labels(connection: Connection) -> None:
    keys = connection.execute(select(LABELS.c.key)).scalars().all()
    for some in portions(keys, _AT_A_TIME):
        rows = connection.execute(select(LABELS.c.key, LABELS.c.label).where(LABELS.c.key.in_(some)))
        for key, kept in rows.all():
            with suppress(CragError, ValueError, RecursionError):
                label = from_plain(Label, json.loads(kept), "label")
                change = update(LABELS).where(LABELS.c.key == key)
                connection.execute(change.values(about=label.about.value, mark=label.mark.value))


def portions(keys: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


STEPS: tuple[Callable[[Connection], None], ...] = (create_first, select_and_count)
"""The n-th brings a history of version n - 1 to version n. What was released is never changed, only added to: before
RUNS or LABELS get another column, the step that made them needs a copy of them as they are now."""


def version(connection: Connection) -> int:
    """0 where there is no history yet; raises `HistoryUnavailable` for one that a later version wrote."""
    return _version(connection, locks=False)


def upgrade(connection: Connection) -> None:
    """Bring the history to the present version, in the transaction that is under way.

    Where writers do not wait for each other, those who find an earlier version wait here, and look again.
    """
    if version(connection) == len(STEPS):
        return
    before = _version(connection, locks=True)
    for number, step in enumerate(STEPS[before:], start=before + 1):
        step(connection)
        connection.execute(update(HISTORY).values(version=number))


def _version(connection: Connection, locks: bool) -> int:
    if not inspect(connection).has_table(HISTORY.name):
        return 0
    rows = select(HISTORY.c.version)
    found = max(connection.execute(rows.with_for_update() if locks else rows).scalars(), default=0)
    if found > len(STEPS):
        raise HistoryUnavailable(
            f"The history was written by a later version of this program: it has version {found}, expected at most "
            f"{len(STEPS)}.",
            hint="Start that version, or set CRAG_HISTORY to another place.",
        )
    return int(found)

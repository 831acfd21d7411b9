"""The tables of the history, and reads and writes; loads SQLAlchemy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sql
from sqlalchemy import Boolean, Column, ColumnElement, Connection, Float, Index, Integer, String, Table, Text, select
from sqlalchemy.dialects import postgresql, sqlite

from crag_core.base.errors import HistoryUnavailable
from crag_core.base.text.words import storable
from crag_core.storage.history.runs import Feedback, Selection, folded

VERSION = 2


def _columns(kind: type[Any], *names: str, nullable: bool = False) -> Iterator[Column[Any]]:
    return (Column(name, kind, nullable=nullable) for name in names)


_METADATA = sql.MetaData()
HISTORY = Table("crag_history", _METADATA, Column("version", Integer, nullable=False), Column("seen", Float))
# `record` and `label` are JSON in ASCII: no text of a question or document can be one that a database refuses. The
# record is large, and the last column, so that whoever reads the others need not read over it.
RUNS = Table(
    "crag_runs",
    _METADATA,
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
    _METADATA,
    Column("key", String(64), primary_key=True),
    Column("run_id", String(64), nullable=False, index=True),
    Column("kept_at", Float, nullable=False, index=True),
    *_columns(Text, "about", "mark", "label"),
)
_SUMMARY = [column for column in RUNS.c if column.name not in ("record", "searched_text")]
_AT_A_TIME = 500  # values in one statement


def create(connection: Connection) -> None:
    _METADATA.create_all(connection)
    connection.execute(sql.insert(HISTORY).values(version=VERSION))


class Rows:
    def __init__(self, connection: Connection) -> None:
        """Raises `HistoryUnavailable` for tables that another version of this program made."""
        self._connection = connection
        _check_version(connection.execute(select(sql.func.max(HISTORY.c.version))).scalar())

    def take_over(self, source: sqlite3.Connection) -> None:
        """The rows of a file by an earlier version, but those that are there."""
        source.row_factory = sqlite3.Row
        _check_version(source.execute("SELECT max(version) FROM crag_history").fetchone()[0])
        for table in (RUNS, LABELS):
            for row in source.execute(f"SELECT * FROM {table.name}"):
                add = self._insert(table).values({column.name: row[column.name] for column in table.c})
                self._connection.execute(add.on_conflict_do_nothing())

    def record(self, id: str) -> str | None:
        found: str | None = self._connection.execute(select(RUNS.c.record).where(RUNS.c.id == id)).scalar()
        return found

    def runs(self, selection: Selection, limit: int | None = None, skip: int = 0) -> Sequence[Mapping[str, Any]]:
        """All but the records, newest first."""
        wanted = _newest_first(select(*_SUMMARY), selection).limit(limit).offset(skip)
        return [row._asdict() for row in self._connection.execute(wanted)]

    def count(self, selection: Selection) -> int:
        matching = select(sql.func.count()).select_from(RUNS).where(*_conditions(selection))
        return self._connection.execute(matching).scalar() or 0

    def ids(self, selection: Selection) -> Sequence[str]:
        return self._connection.execute(_newest_first(select(RUNS.c.id), selection)).scalars().all()

    def policies(self, selection: Selection) -> Sequence[str]:
        named = select(RUNS.c.policy).where(*_conditions(selection)).distinct().order_by(RUNS.c.policy)
        return self._connection.execute(named).scalars().all()

    def advance(self, now: float, most: float) -> float | None:
        """The time that this pruning takes for now: `most` seconds after that of the last one, or the newest run, at
        most; None where there is neither."""
        last: float | None = self._connection.execute(select(HISTORY.c.seen)).scalar()
        if last is None:
            last = self._connection.execute(select(sql.func.max(RUNS.c.kept_at))).scalar()
        if last is None:
            return None
        self._connection.execute(sql.update(HISTORY).values(seen=min(now, last + most)))
        return min(now, last + most)

    def delete_runs(self, selection: Selection) -> int:
        deleted = 0
        for some in _portions(self.ids(selection)):
            self._connection.execute(sql.delete(LABELS).where(LABELS.c.run_id.in_(some)))
            deleted += self._connection.execute(sql.delete(RUNS).where(RUNS.c.id.in_(some))).rowcount
        return deleted

    def delete_label(self, key: str) -> bool:
        return self._connection.execute(sql.delete(LABELS).where(LABELS.c.key == key)).rowcount > 0

    def labels(self, run_id: str | None = None) -> Sequence[str]:
        """Of all runs without `run_id`; oldest first."""
        wanted = select(LABELS.c.label).order_by(LABELS.c.kept_at, LABELS.c.key)
        if run_id is not None:
            wanted = wanted.where(LABELS.c.run_id == run_id)
        return self._connection.execute(wanted).scalars().all()

    def marks(self, run_ids: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """(run, what was judged, how) of every label on these runs."""
        for some in _portions(run_ids):
            wanted = select(LABELS.c.run_id, LABELS.c.about, LABELS.c.mark).where(LABELS.c.run_id.in_(some))
            yield from (tuple(row) for row in self._connection.execute(wanted))

    def put_run(self, id: str, values: Mapping[str, Any], at_first: Mapping[str, Any]) -> None:
        """`at_first`: what is set when the run is new, and then stays."""
        self._put(RUNS.c.id, id, values, at_first)

    def put_label(self, key: str, values: Mapping[str, Any]) -> None:
        self._put(LABELS.c.key, key, values, {})

    def _put(self, column: Column[Any], key: str, values: Mapping[str, Any], at_first: Mapping[str, Any]) -> None:
        add = self._insert(column.table).values({column.name: key, **values, **at_first})
        self._connection.execute(add.on_conflict_do_update(index_elements=[column], set_=values))

    def _insert(self, table: Table) -> Any:
        return {"sqlite": sqlite, "postgresql": postgresql}[self._connection.dialect.name].insert(table)


def _check_version(found: int | None) -> None:
    if found != VERSION:
        raise HistoryUnavailable(
            f"Another version of this program wrote the history: it has version {found}, expected {VERSION}.",
            hint="Start that version, or set CRAG_HISTORY to another place.",
        )


def _portions(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[start : start + _AT_A_TIME] for start in range(0, len(keys), _AT_A_TIME))


def _newest_first(query: sql.Select[Any], selection: Selection) -> sql.Select[Any]:
    return query.where(*_conditions(selection)).order_by(RUNS.c.kept_at.desc(), RUNS.c.id.desc())


def _conditions(wanted: Selection) -> Iterator[ColumnElement[bool]]:
    """All of which have to hold. Every value goes in as a parameter."""
    if wanted.actions:
        yield RUNS.c.action.in_([action.value if action else "" for action in wanted.actions])
    if wanted.policies:
        yield RUNS.c.policy.in_([storable(name) for name in wanted.policies])
    if wanted.endings:
        yield RUNS.c.ending.in_([ending.value for ending in wanted.endings])
    if wanted.feedback:
        yield sql.or_(*map(_was_said, wanted.feedback))
    if wanted.since is not None:
        yield RUNS.c.kept_at >= wanted.since
    if wanted.until is not None:
        yield RUNS.c.kept_at < wanted.until
    if wanted.text:
        yield RUNS.c.searched_text.contains(folded(wanted.text), autoescape=True)
    if wanted.asked_by is not None:
        yield RUNS.c.asked_by == storable(wanted.asked_by)
    if wanted.ids is not None:
        yield RUNS.c.id.in_(wanted.ids)
    if wanted.imported is not None:
        yield RUNS.c.imported.is_(wanted.imported)


def _was_said(feedback: Feedback) -> ColumnElement[bool]:
    label = sql.exists().where(LABELS.c.run_id == RUNS.c.id)
    if feedback is Feedback.NONE:
        return ~label
    about, mark = feedback.value.split()
    return label.where(LABELS.c.about == about, LABELS.c.mark == mark)

"""What is read and written in one transaction; loads SQLAlchemy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from crag_core.history.tables import LABELS, RUNS

_TOLD = [column for column in RUNS.c if column.name != "record"]


class Rows:
    """Only what every database understands, so that it need not be SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put_run(self, id: str, values: Mapping[str, Any], at_first: Mapping[str, Any]) -> None:
        """`at_first`: what is set when the run is new, and then stays."""
        self._put(RUNS, "id", id, values, at_first)

    def record(self, id: str) -> str | None:
        found: str | None = self._connection.execute(select(RUNS.c.record).where(RUNS.c.id == id)).scalar()
        return found

    def run(self, id: str) -> Mapping[str, Any] | None:
        """All but the record."""
        found = self._connection.execute(select(*_TOLD).where(RUNS.c.id == id)).first()
        return None if found is None else found._asdict()

    def recent_runs(self, limit: int, skip: int) -> Sequence[Mapping[str, Any]]:
        newest = select(*_TOLD).order_by(RUNS.c.kept_at.desc(), RUNS.c.id.desc()).limit(limit).offset(skip)
        return [row._asdict() for row in self._connection.execute(newest)]

    def delete_run(self, id: str) -> bool:
        """And its labels."""
        self._connection.execute(delete(LABELS).where(LABELS.c.run_id == id))
        return self._connection.execute(delete(RUNS).where(RUNS.c.id == id)).rowcount > 0

    def put_label(self, key: str, values: Mapping[str, Any]) -> None:
        self._put(LABELS, "key", key, values, {})

    def delete_label(self, key: str) -> bool:
        return self._connection.execute(delete(LABELS).where(LABELS.c.key == key)).rowcount > 0

    def labels(self, run_id: str | None = None) -> Sequence[str]:
        """Of all runs without `run_id`; oldest first."""
        wanted = select(LABELS.c.label).order_by(LABELS.c.kept_at, LABELS.c.key)
        if run_id is not None:
            wanted = wanted.where(LABELS.c.run_id == run_id)
        return self._connection.execute(wanted).scalars().all()

    def _put(self, table: Table, column: str, key: str, values: Mapping[str, Any], at_first: Mapping[str, Any]) -> None:
        change = update(table).where(table.c[column] == key).values(**values)
        if self._connection.execute(change).rowcount:
            return
        # Writers of SQLite wait for each other; of others one can be quicker between these two statements.
        is_alone = self._connection.dialect.name == "sqlite"
        try:
            with nullcontext() if is_alone else self._connection.begin_nested():
                self._connection.execute(insert(table).values({column: key, **values, **at_first}))
        except IntegrityError:
            self._connection.execute(change)

"""Reads and writes within one transaction; loads SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from crag_core.storage.history.queries import matching
from crag_core.storage.history.run_filter import Selection
from crag_core.storage.history.schema import HISTORY, LABELS, RUNS

_TOLD = [column for column in RUNS.c if column.name not in ("record", "searched_text")]
_AT_A_TIME = 500  # values in one statement


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

    def runs(self, selection: Selection, limit: int, skip: int) -> Sequence[Mapping[str, Any]]:
        """All but the records, newest first."""
        newest = select(*_TOLD).where(*matching(selection)).order_by(RUNS.c.kept_at.desc(), RUNS.c.id.desc())
        return [row._asdict() for row in self._connection.execute(newest.limit(limit).offset(skip))]

    def figures(self, selection: Selection) -> Sequence[Mapping[str, Any]]:
        """As `runs`, oldest first."""
        oldest = select(*_TOLD).where(*matching(selection)).order_by(RUNS.c.kept_at, RUNS.c.id)
        return [row._asdict() for row in self._connection.execute(oldest)]

    def count(self, selection: Selection) -> int:
        found = self._connection.execute(select(func.count()).select_from(RUNS).where(*matching(selection))).scalar()
        return found or 0

    def ids(self, selection: Selection) -> Sequence[str]:
        """Newest first."""
        newest = select(RUNS.c.id).where(*matching(selection)).order_by(RUNS.c.kept_at.desc(), RUNS.c.id.desc())
        return self._connection.execute(newest).scalars().all()

    def policies(self, selection: Selection) -> Sequence[str]:
        named = select(RUNS.c.policy).where(*matching(selection)).distinct().order_by(RUNS.c.policy)
        return self._connection.execute(named).scalars().all()

    def newest(self) -> float | None:
        """When the last run was kept; None where there is none."""
        found: float | None = self._connection.execute(select(func.max(RUNS.c.kept_at))).scalar()
        return found

    def border(self) -> float | None:
        """The time that old runs were told from young ones by at the last pruning; None: there was none."""
        found: float | None = self._connection.execute(select(HISTORY.c.seen)).scalar()
        return found

    def move_border(self, to: float) -> None:
        self._connection.execute(update(HISTORY).values(seen=to))

    def delete_run(self, id: str) -> bool:
        """And its labels."""
        return self.delete_runs([id]) > 0

    def delete_runs(self, ids: Sequence[str]) -> int:
        """And their labels."""
        deleted = 0
        for some in _portions(ids):
            self._connection.execute(delete(LABELS).where(LABELS.c.run_id.in_(some)))
            deleted += self._connection.execute(delete(RUNS).where(RUNS.c.id.in_(some))).rowcount
        return deleted

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

    def marks(self, run_ids: Sequence[str]) -> Sequence[tuple[str, str, str]]:
        """(run, what was judged, how) of every label on these runs."""
        found: list[tuple[str, str, str]] = []
        for some in _portions(run_ids):
            wanted = select(LABELS.c.run_id, LABELS.c.about, LABELS.c.mark).where(LABELS.c.run_id.in_(some))
            found += [(row.run_id, row.about, row.mark) for row in self._connection.execute(wanted)]
        return found

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


def _portions(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[start : start + _AT_A_TIME] for start in range(0, len(keys), _AT_A_TIME))

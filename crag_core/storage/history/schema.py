"""The tables, and the migration from every earlier version; loads SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Column, Connection, Float, Integer, MetaData, Table, inspect, select, update

from crag_core.base.errors import HistoryUnavailable
from crag_core.storage.history.schema_v1 import create_first
from crag_core.storage.history.schema_v2 import LABELS, RUNS, select_and_count

__all__ = ["HISTORY", "LABELS", "RUNS", "STEPS", "upgrade", "version"]

HISTORY = Table("crag_history", MetaData(), Column("version", Integer, nullable=False), Column("seen", Float))

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

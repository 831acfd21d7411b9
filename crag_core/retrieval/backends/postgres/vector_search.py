"""Builds the HNSW index of vectors in a PostgreSQL while others read and write."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING

from psycopg.sql import SQL, Composed, Identifier, Literal

from crag_core.base.network.database import Line
from crag_core.retrieval.backends.postgres.server import READ_S, Server, limited

if TYPE_CHECKING:
    from crag_core.retrieval.backends.postgres.server import Connection

LONGEST = 2000
"""Numbers in a vector; pgvector makes no such index of longer ones, and every passage is looked at."""
_LOOKED_AT_EVERY = 10.0
_MEMORY = "512MB"
# One at a time, and not in the way of who holds the lock of the index.
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended('crag vectors ' || current_schema(), 0))"
_IS_SOUND = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"


def make_index(server: Server, table: str, index: str) -> None:
    """`index` over the vectors of `table`, unless it exists, or somebody is building it."""
    with _alone(server) as is_alone, server.apart() as connection:
        with limited(connection, READ_S):
            sound = connection.execute(_IS_SOUND, (index,)).fetchone()
            exists = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone() == (True,)
            any_one = SQL("SELECT vector_dims(vector) FROM {} LIMIT 1").format(Identifier(table))
            first = connection.execute(any_one).fetchone() if exists else None
        if not is_alone or first is None or first[0] > LONGEST or sound == (True,):
            return
        steps: list[SQL | Composed] = [
            SQL("SET statement_timeout = 0"),
            SQL("SET maintenance_work_mem = {}").format(Literal(_MEMORY)),
            # An index that a kill left half made is of no use, and in the way.
            SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(Identifier(index)),
            SQL("CREATE INDEX CONCURRENTLY {} ON {} USING hnsw ((vector::vector({})) vector_cosine_ops)").format(
                Identifier(index), Identifier(table), Literal(first[0])
            ),
        ]
        for step in steps:
            _run(server, connection, step)


def _run(server: Server, connection: Connection, step: SQL | Composed) -> None:
    """However long it takes, as long as the server answers others meanwhile."""
    with ThreadPoolExecutor(1) as thread:
        line = Line(connection.fileno())
        work = thread.submit(lambda: connection.execute(step))
        try:
            while not wait([work], _LOOKED_AT_EVERY).done:
                server.read(lambda other: other.execute("SELECT 1"), None)
        except BaseException:
            line.cut()
            raise
        finally:
            line.close()
        work.result()


@contextmanager
def _alone(server: Server) -> Iterator[bool]:
    """Whether nobody else builds an index, until the end of the block; a lock of the transaction, as the other one."""
    with server.apart() as connection, connection.transaction():
        with limited(connection, READ_S):
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            found = connection.execute(_TRY_LOCK).fetchone()
        yield found == (True,)

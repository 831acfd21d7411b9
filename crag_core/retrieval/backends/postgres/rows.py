"""A short list of dataclasses as a table of a PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Generic

from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier

from crag_core.retrieval.backends.backend import R
from crag_core.retrieval.backends.postgres.server import Server
from crag_core.retrieval.backends.postgres.tables import LISTS, TYPES, storable

if TYPE_CHECKING:
    from uuid import UUID

    from crag_core.retrieval.backends.postgres.errors import Connection


class PostgresRows(Generic[R]):
    """`Rows` of one dataclass whose fields are texts and numbers."""

    def __init__(self, server: Server, name: str, kind: type[R]) -> None:
        assert LISTS[name] is kind
        self._server = server
        self._name = name
        self._table = Identifier(f"crag_{name}")
        self._kind = kind
        self._read: tuple[UUID, list[R]] | None = None

    def is_there(self) -> bool:
        return self._server.read(self._version, None) is not None

    def rows(self) -> list[R]:
        """All of them, in no order; read again only where somebody has written since."""
        return list(self._server.read(self._rows, None) or ())

    def put(self, rows: Sequence[R]) -> None:
        names = [field.name for field in fields(self._kind)]
        new = list({row.id: asdict(row) for row in rows}.values())  # type: ignore[attr-defined]
        columns = [[_value(row[name]) for row in new] for name in names]
        statement = SQL(
            "INSERT INTO {} ({}) SELECT * FROM unnest({}) ON CONFLICT (id) DO UPDATE SET ({}) = ROW ({})"
        ).format(
            self._table,
            SQL(", ").join(map(Identifier, names)),
            SQL(", ").join(SQL(f"%s::{TYPES[str(field.type)]}[]") for field in fields(self._kind)),
            SQL(", ").join(map(Identifier, names)),
            SQL(", ").join(Identifier("excluded", name) for name in names),
        )

        def put(connection: Connection) -> None:
            if new:
                connection.execute(statement, columns)
            self._note(connection, is_change=bool(new))

        self._server.write(put)

    def drop(self, ids: Iterable[str]) -> None:
        gone = [storable(one) for one in ids]

        def drop(connection: Connection) -> None:
            if connection.execute(SQL("DELETE FROM {} WHERE id = ANY(%s)").format(self._table), (gone,)).rowcount:
                self._note(connection, is_change=True)

        self._server.write(drop)

    def tidy(self) -> None:
        """The server does so by itself."""

    def _rows(self, connection: Connection) -> list[R]:
        version = self._version(connection)
        if version is None:
            return []
        read = self._read
        if read is None or read[0] != version:
            known = {field.name for field in fields(self._kind)}
            with connection.cursor(row_factory=dict_row) as cursor:
                found = cursor.execute(SQL("SELECT * FROM {}").format(self._table)).fetchall()
            # A version is never given twice, so what is undone after this is never taken for what is there.
            read = (version, [self._kind(**{name: row[name] for name in known & row.keys()}) for row in found])
            self._read = read
        return read[1]

    def _version(self, connection: Connection) -> UUID | None:
        found = connection.execute("SELECT version FROM crag_versions WHERE name = %s", (self._name,)).fetchone()
        return found[0] if found else None

    def _note(self, connection: Connection, is_change: bool) -> None:
        """Record that the list exists, and that it changed."""
        then = "DO UPDATE SET version = excluded.version" if is_change else "DO NOTHING"
        noted = f"INSERT INTO crag_versions VALUES (%s, gen_random_uuid()) ON CONFLICT (name) {then}"
        connection.execute(noted, (self._name,))


def _value(value: Any) -> Any:
    return storable(str(value)) if isinstance(value, str) else value

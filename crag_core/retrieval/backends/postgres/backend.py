"""An index in a PostgreSQL with the extension vector, for any number of processes and machines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import MISSING, Field, asdict, fields
from typing import TYPE_CHECKING, Any, Generic

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from crag_core.base.documents import Document, IndexVersion
from crag_core.base.errors import StoreUnavailable
from crag_core.base.text.words import storable
from crag_core.retrieval.backends.backend import R, check_original
from crag_core.retrieval.backends.postgres.passages import PostgresPassages
from crag_core.retrieval.backends.postgres.server import Server

if TYPE_CHECKING:
    from uuid import UUID

    from crag_core.retrieval.backends.postgres.server import Connection

LISTS: Mapping[str, type[Any]] = {"documents": Document, "generations": IndexVersion}
TYPES = {"int": "bigint", "float": "double precision", "str": "text"}
_OTHERS = {
    "versions": "CREATE TABLE crag_versions (name text PRIMARY KEY, version uuid NOT NULL)",
    "statistics": """CREATE TABLE crag_statistics (generation text PRIMARY KEY, embedding text NOT NULL,
        passages bigint NOT NULL, words bigint NOT NULL)""",
    # Most files are compressed as they are.
    "originals": """CREATE TABLE crag_originals (id text PRIMARY KEY, content bytea NOT NULL);
        ALTER TABLE crag_originals ALTER COLUMN content SET STORAGE EXTERNAL""",
}
_OLDEST = (0, 8)
# As `name_content` makes it.
_IS_SOUND = "SELECT left(encode(sha256(content), 'hex'), 32) = id FROM crag_originals WHERE id = %s"
_KEEP = "INSERT INTO crag_originals VALUES (%s, %b) ON CONFLICT (id) DO UPDATE SET content = excluded.content"


class PostgresBackend:
    """A `Backend`; making one reaches no network. Raises `BadRecord` for a URL that cannot be read.

    All that is done inside the lock is one transaction, so a kill leaves all of it or nothing. Its tables, whose names
    begin with crag_, stand in the first schema of the user's search_path; each schema is an index of its own.
    """

    def __init__(self, url: str) -> None:
        self._server = Server(url, prepare)
        self.place = self._server.place
        self.documents = PostgresRows(self._server, "documents", Document)
        self.index_versions = PostgresRows(self._server, "generations", IndexVersion)
        self.originals = PostgresOriginals(self._server)

    def passages(self, version: IndexVersion) -> PostgresPassages:
        return PostgresPassages(self._server, version)

    def lock(self) -> AbstractContextManager[None]:
        """The server frees it when its holder dies."""
        return self._server.lock()


def prepare(connection: Connection, place: str) -> None:
    """Create the tables that are missing, and add the columns that an index of an earlier release lacks."""
    there = _columns(connection, [*LISTS, *_OTHERS])
    if missing := [name for name in _OTHERS if not there[name]]:
        _add_vectors(connection, place)
        for name in missing:
            connection.execute(_OTHERS[name])
    for name, kind in LISTS.items():
        table = Identifier(f"crag_{name}")
        if not there[name]:
            columns = SQL(", ").join(map(_column, fields(kind)))
            connection.execute(SQL("CREATE TABLE {} ({}, PRIMARY KEY (id))").format(table, columns))
        elif new := [field for field in fields(kind) if field.name not in there[name]]:
            added = SQL(", ").join(SQL("ADD COLUMN {}").format(_column(field)) for field in new)
            connection.execute(SQL("ALTER TABLE {} {}").format(table, added))


def _columns(connection: Connection, names: Sequence[str]) -> dict[str, set[str]]:
    """Of each table; none of one that is not there."""
    found = connection.execute(
        """SELECT name, attname FROM unnest(%s::text[]) AS name
        JOIN pg_attribute ON attrelid = to_regclass('crag_' || name) AND attnum > 0 AND NOT attisdropped""",
        (list(names),),
    ).fetchall()
    return {name: {column for of, column in found if of == name} for name in names}


def _column(field: Field[Any]) -> Composed:
    default = "" if field.default is MISSING else field.default
    # A text of the standard library's kinds of text is one for the driver only if it says so.
    value: Composable = Literal(str(default) if field.type == "str" else default)
    return SQL("{} {} NOT NULL DEFAULT {}").format(Identifier(field.name), SQL(TYPES[str(field.type)]), value)


def _add_vectors(connection: Connection, place: str) -> None:
    advice = (
        "Install pgvector 0.8 or newer on the server, and run CREATE EXTENSION vector in this database as its "
        "administrator."
    )
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported) as error:
        raise _lacks_vectors(place, str(error), advice) from error
    except psycopg.errors.UndefinedFile as error:  # as PostgreSQL before 15 says that it is not installed
        raise _lacks_vectors(place, str(error), advice) from error
    found = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    version = found[0] if found else ""
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _OLDEST:
        advice = "Install pgvector 0.8 or newer on the server, and run ALTER EXTENSION vector UPDATE."
        raise _lacks_vectors(place, f"expected 0.8 or newer, found {version}", advice)


def _lacks_vectors(place: str, detail: str, advice: str) -> StoreUnavailable:
    message = " ".join(detail.split())[:300]
    return StoreUnavailable(
        f"The database {place} lacks the extension vector, and it cannot be added ({message}).", hint=advice
    )


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


class PostgresOriginals:
    """`Originals`: a row for each document."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def keep(self, document_id: str, content: bytes) -> None:
        def keep(connection: Connection) -> None:
            if connection.execute(_IS_SOUND, (document_id,)).fetchone() != (True,):
                connection.execute(_KEEP, (document_id, content))

        self._server.write(keep)

    def read(self, document_id: str) -> bytes:
        def read(connection: Connection) -> Any:
            # As bytes: written in digits they are twice as many.
            cursor = connection.cursor(binary=True)
            return cursor.execute("SELECT content FROM crag_originals WHERE id = %s", (document_id,)).fetchone()

        found = self._server.read(read, None)
        return check_original(document_id, None if found is None else bytes(found[0]))

    def sizes(self, document_ids: Collection[str]) -> dict[str, int]:
        sizes = "SELECT id, length(content) FROM crag_originals WHERE id = ANY(%s)"
        asked = list(document_ids)
        return dict(self._server.read(lambda connection: connection.execute(sizes, (asked,)).fetchall(), None) or ())

    def drop(self, document_ids: Iterable[str]) -> None:
        gone = list(document_ids)
        drop = "DELETE FROM crag_originals WHERE id = ANY(%s)"
        self._server.write(lambda connection: connection.execute(drop, (gone,)))

    def tidy(self, known: Collection[str]) -> None:
        kept = list(known)
        tidy = "DELETE FROM crag_originals WHERE id <> ALL(%s)"
        self._server.write(lambda connection: connection.execute(tidy, (kept,)))

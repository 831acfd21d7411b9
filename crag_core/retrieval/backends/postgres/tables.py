"""The tables of an index in a PostgreSQL that are there once, however many versions of the index there are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from crag_core.base.documents import Document, IndexVersion
from crag_core.base.errors import StoreUnavailable

if TYPE_CHECKING:
    from crag_core.retrieval.backends.postgres.errors import Connection

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
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """A text as PostgreSQL takes it."""
    return _UNSTORABLE.sub("\ufffd", text)


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

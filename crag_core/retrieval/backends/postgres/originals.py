"""The files that were indexed, in a table of a PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from crag_core.retrieval.backends.backend import original_missing
from crag_core.retrieval.backends.postgres.server import Server
from crag_core.retrieval.hits import name_content

if TYPE_CHECKING:
    from crag_core.retrieval.backends.postgres.errors import Connection

# As `name_content` makes it.
_IS_SOUND = "SELECT left(encode(sha256(content), 'hex'), 32) = id FROM crag_originals WHERE id = %s"
_KEEP = "INSERT INTO crag_originals VALUES (%s, %b) ON CONFLICT (id) DO UPDATE SET content = excluded.content"


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
        if found is not None and name_content(found[0]) == document_id:
            return bytes(found[0])
        raise original_missing(is_damaged=found is not None)

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

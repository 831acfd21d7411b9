"""An index in a PostgreSQL with the extension vector, for any number of processes and machines."""

from __future__ import annotations

from contextlib import AbstractContextManager

from crag_core.base.documents import Document, IndexVersion
from crag_core.retrieval.backends.postgres import tables
from crag_core.retrieval.backends.postgres.originals import PostgresOriginals
from crag_core.retrieval.backends.postgres.passages import PostgresPassages
from crag_core.retrieval.backends.postgres.rows import PostgresRows
from crag_core.retrieval.backends.postgres.server import Server


class PostgresBackend:
    """A `Backend`; making one reaches no network. Raises `BadRecord` for a URL that cannot be read.

    All that is done inside the lock is one transaction, so a kill leaves all of it or nothing. Its tables, whose names
    begin with crag_, stand in the first schema of the user's search_path; each schema is an index of its own.
    """

    def __init__(self, url: str) -> None:
        self._server = Server(url, tables.prepare)
        self.place = self._server.place
        self.documents = PostgresRows(self._server, "documents", Document)
        self.index_versions = PostgresRows(self._server, "generations", IndexVersion)
        self.originals = PostgresOriginals(self._server)

    def passages(self, version: IndexVersion) -> PostgresPassages:
        return PostgresPassages(self._server, version)

    def lock(self) -> AbstractContextManager[None]:
        """The server frees it when its holder dies."""
        return self._server.lock()

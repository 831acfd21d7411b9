"""What the backends share whose tables are LanceDB's."""

from __future__ import annotations

from crag_core.base.documents import Document, IndexVersion
from crag_core.retrieval.backends.backend import R
from crag_core.retrieval.backends.lance.passages import LancePassages
from crag_core.retrieval.backends.lance.remote_tables import Remote, RemotePassages, RemoteRows
from crag_core.retrieval.backends.lance.rows import LanceRows
from crag_core.retrieval.backends.lance.tables import LanceTables


class LanceBackend:
    """`remote` writes to the tables; None: they are written to here."""

    def __init__(self, tables: LanceTables, remote: Remote | None) -> None:
        self.place = tables.place
        self._tables = tables
        self._remote = remote
        self.documents = self._rows("documents", Document)
        self.index_versions = self._rows("generations", IndexVersion)

    def passages(self, version: IndexVersion) -> LancePassages:
        if self._remote is None:
            return LancePassages(self._tables, version)
        return RemotePassages(self._tables, version, self._remote)

    def _rows(self, name: str, kind: type[R]) -> LanceRows[R]:
        if self._remote is None:
            return LanceRows(self._tables, name, kind)
        return RemoteRows(self._tables, name, kind, self._remote)

"""A short list of dataclasses as a LanceDB table, such as the documents with the state of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, Field, asdict, fields
from typing import Any, Generic

from crag_core.retrieval.backends.backend import R
from crag_core.retrieval.backends.lance.tables import LanceTables, quote

_SQL = {"int": "bigint", "float": "double", "str": "string"}


class LanceRows(Generic[R]):
    """`Rows` of one dataclass whose fields are texts and numbers; a newer field has its default in older rows."""

    def __init__(self, tables: LanceTables, name: str, kind: type[R]) -> None:
        self._tables = tables
        self._name = name
        self._kind = kind
        self._read: tuple[int, list[R]] | None = None

    def is_there(self) -> bool:
        with self._tables.opened(self._name) as table:
            return table is not None

    def rows(self) -> list[R]:
        """All of them, in no order; read again only where somebody has written since."""
        with self._tables.opened(self._name) as table:
            if table is None:
                return []
            version = table.version
            read = self._read
            if read is None or read[0] != version:
                names = [field.name for field in fields(self._kind) if field.name in table.schema.names]
                read = (version, [self._kind(**row) for row in table.to_arrow().select(names).to_pylist()])
                self._read = read
            return list(read[1])

    def put(self, rows: Sequence[R]) -> None:
        """With one commit; the table is made if need be."""
        import pyarrow as pa

        with self._tables.opened(self._name) as table:
            if table is None:
                table = self._tables.create(self._name, _schema(self._kind))
            if not rows:
                return
            if missing := [field for field in fields(self._kind) if field.name not in table.schema.names]:
                table.add_columns({field.name: _default(field) for field in missing})
            given = pa.Table.from_pylist([asdict(row) for row in rows], schema=_schema(self._kind))
            table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(given)

    def drop(self, ids: Iterable[str]) -> None:
        listed = ", ".join(map(quote, ids))
        with self._tables.opened(self._name) as table:
            if table is not None and listed:
                table.delete(f"id IN ({listed})")

    def tidy(self) -> None:
        with self._tables.explain():
            self._tables.tidy(self._name)


def _schema(kind: type[Any]) -> Any:
    import pyarrow as pa

    types = {"int": pa.int64(), "float": pa.float64(), "str": pa.string()}
    return pa.schema([(field.name, types[str(field.type)]) for field in fields(kind)])


def _default(field: Field[Any]) -> str:
    """As LanceDB's SQL has it."""
    value = "" if field.default is MISSING else field.default
    return f"cast({quote(str(value))} as {_SQL[str(field.type)]})"

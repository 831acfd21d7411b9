"""LanceDB tables, and short lists of dataclasses in them, such as the documents with the state of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, asdict, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.backends.backend import R

if TYPE_CHECKING:
    from lancedb.table import LanceTable

# Readers of another process may still be looking at the version before.
_KEEP_OLD_VERSIONS = timedelta(hours=1)
_SQL = {"int": "bigint", "float": "double", "str": "string"}


class LanceTables:
    """Use all but `opened` inside `with tables.explain():`."""

    def __init__(self, uri: str, place: str, options: Mapping[str, str] | None = None) -> None:
        """`place` is how the errors name `uri`; `options` are LanceDB's storage options."""
        self.place = place
        self._uri = uri
        self._options = dict(options or {})
        self._connection: Any = None
        self._opened: dict[str, LanceTable] = {}
        self.up_to_date: set[str] = set()
        """Tables with all columns of today: asking one for its columns costs a request in an object store."""

    def open(self, name: str) -> LanceTable | None:
        """The table at its newest version; None where it was never made."""
        if not self._exists(name):
            self._opened.pop(name, None)
            return None
        if name not in self._opened:
            self._opened[name] = self._connect().open_table(name)
        return self._opened[name]

    @contextmanager
    def opened(self, name: str) -> Iterator[LanceTable | None]:
        """The same, with the faults inside explained."""
        with self.explain():
            yield self.open(name)

    def create(self, name: str, schema: Any) -> LanceTable:
        """A table that does not exist yet; inside the backend's lock."""
        table: LanceTable = self._connect().create_table(name, schema=schema)
        self._opened[name] = table
        return table

    def drop(self, name: str) -> None:
        if self._exists(name):
            self._connect().drop_table(name)
        self.forget(name)

    def forget(self, name: str) -> None:
        """Forget a table that was dropped, here or elsewhere."""
        self._opened.pop(name, None)
        self.up_to_date.discard(name)

    def tidy(self, name: str) -> None:
        """Bring the indexes of a table up to date and merge its small files."""
        table = self.open(name)
        if table is not None:
            table.optimize(cleanup_older_than=_KEEP_OLD_VERSIONS)

    @contextmanager
    def explain(self) -> Iterator[None]:
        """Turn LanceDB's and the system's errors into `StoreUnavailable`."""
        with explain_faults(self.place):
            yield

    def _exists(self, name: str) -> bool:
        # A folder without a manifest is what a kill during the table's creation leaves.
        versions = Path(self._uri) / f"{name}.lance" / "_versions"
        return versions.is_dir() and any(versions.iterdir())

    def _connect(self) -> Any:
        if self._connection is None:
            import lancedb

            # Another process may have written since: every read looks for the newest version.
            self._connection = lancedb.connect(
                self._uri, read_consistency_interval=timedelta(0), storage_options=self._options or None
            )
        return self._connection


@contextmanager
def explain_faults(place: str | Path) -> Iterator[None]:
    """Turn LanceDB's and the system's errors into `StoreUnavailable`."""
    try:
        yield
    except PermissionError as error:
        raise StoreUnavailable(
            f"The index folder {place} cannot be read or written ({error.strerror}).",
            hint="Give this user access to the folder, or choose another one in the settings.",
        ) from error
    except BaseException as error:
        if not is_of_engine(error):
            raise
        detail = str(error).partition(", /")[0].strip() or type(error).__name__
        full = "no space" in detail.lower() or "quota" in detail.lower()
        hint = (
            "Free some disk space and try again; what was indexed before is safe."
            if full
            else "Check that the folder exists and is writable; if damaged, move it away and index the documents again."
        )
        raise StoreUnavailable(f"The index in {place} cannot be used ({detail[:300]}).", hint=hint) from error


def is_of_engine(error: BaseException) -> bool:
    """LanceDB raises plain RuntimeError, ValueError and OSError from its Rust core, which also panics at damage: that
    is no `Exception`, and has no type that could be imported."""
    return isinstance(error, OSError | RuntimeError | ValueError) or type(error).__name__ == "PanicException"


def quote(text: str) -> str:
    """A literal for a filter: any text, with its quotation marks doubled."""
    return "'" + text.replace("'", "''") + "'"


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

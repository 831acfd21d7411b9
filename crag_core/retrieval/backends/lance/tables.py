"""Connects to LanceDB tables, and explains their errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag_core.base.errors import StoreUnavailable

if TYPE_CHECKING:
    from lancedb.table import LanceTable

# Readers of another process may still be looking at the version before.
_KEEP_OLD_VERSIONS = timedelta(hours=1)


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

"""An index in a folder of this machine: LanceDB tables, and the files beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.backends.disk.originals import FolderOriginals
from crag_core.retrieval.backends.lance.backend import LanceBackend
from crag_core.retrieval.backends.lance.remote_tables import Remote
from crag_core.retrieval.backends.lance.tables import LanceTables, explain_faults
from crag_core.retrieval.backends.lance.write_protocol import Send

_LOCK_SECONDS = 120


class FolderBackend(LanceBackend):
    """A `Backend`, whose tables are written to by `send`, else here; making one touches no disk."""

    def __init__(self, folder: Path, send: Send | None = None) -> None:
        remote = Remote(send, "", str(folder.absolute())) if send else None
        super().__init__(LanceTables(str(folder), str(folder)), remote)
        self._folder = folder
        self.originals = FolderOriginals(folder / "originals")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """The system frees it when its holder dies."""
        from filelock import FileLock, Timeout

        with explain_faults(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                with FileLock(self._folder / "write.lock", timeout=_LOCK_SECONDS):
                    yield
            except Timeout as error:
                raise StoreUnavailable(
                    f"Another process has been writing to the index for over {_LOCK_SECONDS} seconds.",
                    hint="Wait for it to finish, or stop it, and try again.",
                ) from error

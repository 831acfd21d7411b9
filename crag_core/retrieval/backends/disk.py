"""An index in a folder of this machine: LanceDB tables, and the files beside them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from crag_core.retrieval.backends.backend import DOCUMENT_ID, check_id, check_original, lock_taken
from crag_core.retrieval.backends.lance.backend import LanceBackend, Remote, Send
from crag_core.retrieval.backends.lance.tables import LanceTables, explain_faults

_LOCK_SECONDS = 120
_UNFINISHED = ".new-"


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
                raise lock_taken(_LOCK_SECONDS) from error


class FolderOriginals:
    """`Originals`: one file a document, named by its id and by nothing that a user wrote; nobody else can read it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, document_id: str, content: bytes) -> None:
        with explain_faults(self._folder):
            if self._load(document_id) == content:
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=_UNFINISHED, dir=self._folder)
            try:
                with open(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(name, self._path(document_id))
            finally:
                Path(name).unlink(missing_ok=True)

    def read(self, document_id: str) -> bytes:
        with explain_faults(self._folder):
            return check_original(document_id, self._load(document_id))

    def sizes(self, document_ids: Collection[str]) -> dict[str, int]:
        with explain_faults(self._folder):
            paths = {one: self._path(one) for one in document_ids}
            return {one: path.stat().st_size for one, path in paths.items() if path.exists()}

    def drop(self, document_ids: Iterable[str]) -> None:
        with explain_faults(self._folder):
            for one in document_ids:
                self._path(one).unlink(missing_ok=True)

    def tidy(self, known: Collection[str]) -> None:
        with explain_faults(self._folder):
            for path in list(self._folder.iterdir()) if self._folder.is_dir() else ():
                is_ours = path.name.startswith(_UNFINISHED) or DOCUMENT_ID.fullmatch(path.name)
                if is_ours and path.name not in known:
                    path.unlink(missing_ok=True)

    def _load(self, document_id: str) -> bytes | None:
        try:
            return self._path(document_id).read_bytes()
        except FileNotFoundError:
            return None

    def _path(self, document_id: str) -> Path:
        return self._folder / check_id(document_id)

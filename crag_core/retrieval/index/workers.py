"""Who is at work on documents: a locked file for each, which the system unlocks when its process dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from crag_core.base.errors import StoreUnavailable

_PREFIX = "working-"


@contextmanager
def at_work(folder: Path, owner: str = "") -> Iterator[str]:
    """The name of a worker, by default a new one, who is alive until the end of this; `folder` is that of the index."""
    from filelock import FileLock

    owner = owner or uuid4().hex
    path = _path(folder, owner)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(path)
        lock.acquire()
    except OSError as error:
        raise StoreUnavailable(
            f"The index folder {folder} cannot be written ({error.strerror}).",
            hint="Give this user access to the folder, or set CRAG_HOME to another one; if the disk is full, free some "
            "space.",
        ) from error
    try:
        yield owner
    finally:
        path.unlink(missing_ok=True)
        lock.release()


def is_alive(folder: Path, owner: str) -> bool:
    from filelock import FileLock, Timeout

    path = _path(folder, owner)
    if not owner or not path.exists():
        return False
    try:
        with FileLock(path, timeout=0):
            path.unlink(missing_ok=True)
    except Timeout:
        return True
    except OSError:  # of a folder that cannot be written to, which nobody works in
        return False
    return False


def _path(folder: Path, owner: str) -> Path:
    return folder / f"{_PREFIX}{owner}.lock"

"""A file that appears only when it is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from crag_core.base.errors import BackupFailed


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """To be written inside, for its owner only. An error leaves nothing; a kill leaves a name that begins with a dot.

    Raises `BackupFailed` where there is such a file already, or the disk does not take it.
    """
    unfinished = path.with_name(f".{path.name}.unfinished-{os.getpid()}")
    try:
        if path.exists():
            raise BackupFailed(f"{path} is there already.", hint="Name another file, or move that one away.")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with open(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise BackupFailed(
            f"The backup {path} cannot be written ({error.strerror or error}).",
            hint="Nothing was kept of it. Free some disk space, or name a file elsewhere.",
        ) from error

"""Replaces a home by a restored one in one step."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crag_core.base.errors import BackupFailed


@contextmanager
def unfinished(home: Path) -> Iterator[Path]:
    """An empty folder beside `home`, to be filled inside; unless it is put in place there, it is gone afterwards.

    Raises `BackupFailed` where `home` holds something, or cannot be replaced.
    """
    _check(home)
    folder = home.with_name(f".{home.name}.restoring")
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            raise BackupFailed(
                f"{folder} is there: another restore is under way, or was interrupted.",
                hint="If none is under way, delete that folder and start again.",
            ) from None
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise BackupFailed(
            f"The home {home} cannot be restored ({error.strerror or error}).",
            hint="Nothing was changed. Check the disk and the rights of the folder above it.",
        ) from error


def put_in_place(folder: Path, home: Path) -> None:
    """Inside `unfinished`. The system refuses if somebody has put something into `home` meanwhile."""
    try:
        os.rename(folder, home)
    except OSError:
        _check(home)
        raise


def _check(home: Path) -> None:
    if home.is_symlink() or home.is_mount():
        raise BackupFailed(
            f"{home} is a link or a mount point, which cannot be replaced as a whole.",
            hint="Set CRAG_HOME to a folder inside it.",
        )
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise BackupFailed(
            f"{home} is not empty, and a backup is restored into an empty home only.",
            hint=f"Stop the application, move the folder away (mv {home} {home}.old) and try again, or set CRAG_HOME.",
        )

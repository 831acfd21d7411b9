"""A home in one ZIP file and back: the file of the home as it was at one moment, and a home made in one step."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import BackupFailed

MARKER = "sample-indexed"
"""A home with this file is not given the sample documents once more."""
_COPY = ".backup-"
_EARLIER = "If an earlier version made it (a tar file), unpack that into an empty CRAG_HOME: tar -xf FILE -C FOLDER."


class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


@contextmanager
def _explained(what: str, hint: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BackupFailed(f"{what} ({error.strerror or error}).", hint=hint) from error


@contextmanager
def copied(home: Path, copy_file: Callable[[Path], None]) -> Iterator[Path]:
    """A folder that has a copy of the file of `home`, made by `copy_file`; it is gone afterwards.

    Raises `BackupFailed`, and what `copy_file` raises.
    """
    from filelock import FileLock, Timeout

    if not home.is_dir():
        raise BackupFailed(f"There is nothing to back up: {home} is not there.", hint="Set CRAG_HOME.")
    folder = home / _COPY
    with ExitStack() as ending:
        with _explained(
            f"The home {home} takes no copy of its file",
            "The copy is made in the home first: free some disk space there, or give this user write access.",
        ):
            try:
                ending.enter_context(FileLock(home / "backup.lock", timeout=0))
            except Timeout as error:
                hint = "Wait for it to finish."
                raise BackupFailed("Another backup of this home is being made.", hint=hint) from error
            ending.callback(shutil.rmtree, folder, ignore_errors=True)
            shutil.rmtree(folder, ignore_errors=True)  # left by a kill: whoever makes one now has the lock
            folder.mkdir(mode=0o700)
            copy_file(folder / sqlite_file.NAME)
            sqlite_file.make(folder / sqlite_file.NAME)  # of a home that holds nothing yet
        yield folder


def pack(folder: Path, sink: Sink) -> int:
    """The bytes of the file of a home, which go into `sink`; it need not be one that can be sought in."""
    file = folder / sqlite_file.NAME
    entry = zipfile.ZipInfo(sqlite_file.NAME, datetime.now(UTC).timetuple()[:6])
    entry.file_size = file.stat().st_size
    with (
        zipfile.ZipFile(sink, "w") as archive,  # type: ignore[call-overload]
        file.open("rb") as source,
        archive.open(entry, "w", force_zip64=True) as target,
    ):
        shutil.copyfileobj(source, target, 2**20)
    return entry.file_size


def unpack(file: BinaryIO, folder: Path) -> str:
    """The file of a home into `folder`, which is empty, and when it was copied; raises `BackupFailed`."""
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if [entry.filename for entry in entries] != [sqlite_file.NAME] or entries[0].compress_type:
                raise BackupFailed(
                    f"This is not a backup of a home: expected {sqlite_file.NAME} alone in it, found "
                    f"{', '.join(entry.filename for entry in entries)[:100]!r}.",
                    hint=_EARLIER,
                )
            size, free = entries[0].file_size, shutil.disk_usage(folder).free
            if size > free:
                raise BackupFailed(
                    f"The backup needs {size / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free.",
                    hint="Free some disk space.",
                )
            with archive.open(entries[0]) as source, (folder / sqlite_file.NAME).open("xb") as target:
                shutil.copyfileobj(source, target, 2**20)  # raises where the checksum is not that of the bytes
                target.flush()
                os.fsync(target.fileno())
            (folder / sqlite_file.NAME).chmod(0o600)
            return f"{datetime(*entries[0].date_time):%Y-%m-%d %H:%M} UTC"
    except (BackupFailed, OSError):
        raise
    except Exception as error:  # of zipfile, which meets bytes that it does not expect with errors of every kind
        raise BackupFailed(
            f"This is not a whole backup ({error}).", hint=f"Copy it once more, or take another one. {_EARLIER}"
        ) from error


@contextmanager
def restored(home: Path) -> Iterator[Path]:
    """An empty folder beside `home`, to be filled inside; it becomes `home` in one step, and after an error it is gone.

    Raises `BackupFailed` where `home` holds something, or cannot be replaced.
    """
    _check(home)
    folder = home.with_name(f".{home.name}.restoring")
    with _explained(
        f"The home {home} cannot be restored",
        "Nothing was changed. Check the disk and the rights of the folder above it.",
    ):
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
            (folder / MARKER).touch()
            try:
                os.rename(folder, home)
            except OSError:
                _check(home)  # somebody has put something into it meanwhile
                raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)


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


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """To be written inside, for its owner only. An error leaves nothing; a kill leaves a name that begins with a dot.

    Raises `BackupFailed` where there is such a file already, or the disk does not take it.
    """
    unfinished = path.with_name(f".{path.name}.unfinished-{os.getpid()}")
    with _explained(
        f"The backup {path} cannot be written",
        "Nothing was kept of it. Free some disk space, or name a file elsewhere.",
    ):
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

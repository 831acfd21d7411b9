"""A home in a backup and back: a consistent snapshot, a whole new file, a home replaced in one step."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from crag_core.base.errors import BackupFailed
from crag_core.storage.backup.archive import BESIDE, FILES, FOLDERS

_PREFIX = ".backup-"
_KNOWN = {*FOLDERS, *FILES, "grades.sqlite", "history.db.new", "backup.lock", "vector-store"}


@contextmanager
def collected(home: Path, copy_index: Callable[[Path], None], has_history: bool) -> Iterator[Path]:
    """A folder that has the files of `home` which are backed up; it is gone afterwards.

    `copy_index` makes a copy of the index as a file of that name. Without `has_history` the history is kept elsewhere.
    Each part is of one moment, and nobody waits for it. Raises `BackupFailed`, and what `copy_index` raises.
    """
    from filelock import FileLock, Timeout

    if not home.is_dir():
        raise BackupFailed(f"There is nothing to back up: {home} is not there.", hint="Set CRAG_HOME.")
    try:
        with FileLock(home / "backup.lock", timeout=0):
            for left in home.glob(f"{_PREFIX}*"):  # by a kill: whoever makes one now has the lock
                shutil.rmtree(left, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=home))
            try:
                _collect(home, folder, copy_index, has_history)
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except Timeout as error:
        raise BackupFailed("Another backup of this home is being made.", hint="Wait for it to finish.") from error


def left_out(home: Path) -> tuple[str, ...]:
    """Names in `home` that no backup has and this program does not know."""
    names = [path.name for path in home.iterdir() if not path.name.startswith(_PREFIX)]
    return tuple(sorted(name for name in names if name not in _KNOWN and not name.endswith(BESIDE)))


def _collect(home: Path, folder: Path, copy_index: Callable[[Path], None], has_history: bool) -> None:
    if has_history:
        _copy_database(home / "history.db", folder)
    for database in sorted((home / "laboratory").glob("*.db")):
        _copy_database(database, folder / "laboratory")
    for kind in ("sets/*.jsonl", "presets/*.toml"):
        for file in sorted((home / "laboratory").glob(kind)):
            if not file.name.startswith("."):  # one that is being written
                _copy(file, folder / file.relative_to(home))
    _copy_lines(home / "audit.jsonl", folder)
    (folder / "index").mkdir()
    copy_index(folder / "index" / "index.db")
    _copy(home / "sample-indexed", folder / "sample-indexed")


def _copy(file: Path, target: Path) -> None:
    if file.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)


def _copy_lines(log: Path, folder: Path) -> None:
    """Up to the last whole line: somebody may be adding one."""
    if log.is_file():
        _copy(log, folder / log.name)
        with (folder / log.name).open("rb+") as copy:
            whole = sum(len(line) for line in copy if line.endswith(b"\n"))
            copy.truncate(whole)


def _copy_database(database: Path, folder: Path) -> None:
    """With SQLite's own way of copying what others are writing to; a damaged one is an error."""
    if not database.is_file() or not database.stat().st_size:
        return
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / database.name
    try:
        with closing(sqlite3.connect(database, timeout=30)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            problems = [row[0] for row in target.execute("PRAGMA quick_check(1)")]
    except sqlite3.Error as error:
        raise BackupFailed(
            f"{database.name} cannot be copied ({error}).",
            hint=f"If the disk of {database.parent} is full, free some space; if the file is damaged, put a copy back.",
        ) from error
    if problems != ["ok"]:
        raise BackupFailed(f"{database.name} is damaged ({problems[0][:200]}).", hint="Put a copy of it back.")


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

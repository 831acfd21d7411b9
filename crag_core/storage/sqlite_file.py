"""SQLite files that several threads and processes may create and use at once."""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path


def is_there(file: Path) -> bool:
    """False too for an empty file, which is what SQLite makes of a missing one."""
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:
        return False


def make(file: Path, layout: str, seconds: float) -> None:
    """Make a file that lets others read while one writes, with the tables of `layout`, unless it is there.

    Under another name: a file that is being turned to WAL is reported as locked, whatever the time-out. Raises
    `sqlite3.Error` and `OSError`, of these `TimeoutError` after waiting for `seconds`.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with lock(file, seconds):
        if is_there(file):
            return
        building = Path(f"{file}.new")
        building.unlink(missing_ok=True)  # left by a kill
        with closing(sqlite3.connect(building)) as database:
            database.executescript(f"PRAGMA journal_mode = WAL; {layout}")
        os.replace(building, file)


def lock(file: Path, seconds: float) -> AbstractContextManager[object]:
    """Nobody else makes the file, or moves it, inside."""
    from filelock import FileLock

    return FileLock(f"{file}.lock", timeout=seconds)

"""What earlier versions kept in files of their own: into the one file of the home, at the first start."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import CragError, StoreUnavailable

BEFORE = ".before"
_BESIDE = ("-wal", "-shm", "")


def take_index(home: Path) -> None:
    """The file of an earlier index becomes that of the home, in one step. Raises `StoreUnavailable`."""
    old, new = home / "index" / "index.db", home / sqlite_file.NAME
    if not os.path.exists(old) or new.exists():  # False too for a path that the system does not take
        return
    try:
        with closing(sqlite_file.connect(old, writes=True)[0]) as database:
            (is_busy, *_) = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise OSError("another process has it open")
        os.rename(old, new)
        sqlite_file.made(new).touch(0o600)
        old.with_name("made").unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        if old.exists():  # else another process was first
            detail, hint = sqlite_file.explain(error, old)
            raise StoreUnavailable(f"{old} cannot become {new} ({detail}).", hint=hint) from error


def take_files(home: Path, takers: Mapping[str, Callable[[Path], object]]) -> tuple[str, ...]:
    """Each that is there: whole or not at all, and left under another name; what could not be taken, in words.

    A kill between taking and naming does no harm: what is there already is not added again.
    """
    problems = []
    for name, take in takers.items():
        path = home / name
        if not os.path.exists(path):
            continue
        try:
            if path.is_dir() or path.stat().st_size:
                take(path)
            number = next(n for n in range(1, 1000) if not _aside(path, n).exists())
            for ending in _BESIDE:
                with suppress(FileNotFoundError):
                    os.replace(f"{path}{ending}", f"{_aside(path, number)}{ending}")
        except (CragError, OSError, sqlite3.Error) as error:
            if path.exists():  # else another process was first
                problems.append(f"{path}, of an earlier version, is not taken over: {error} It is tried at each start.")
    return tuple(problems)


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}{BEFORE}{number if number > 1 else ''}")

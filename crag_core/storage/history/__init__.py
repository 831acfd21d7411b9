"""Where runs and labels are kept: a file of this machine, or a database that several machines share."""

from __future__ import annotations

from pathlib import Path

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import BadRecord
from crag_core.storage.history.store import HistoryStore

__all__ = ["HistoryStore", "open_history"]


def open_history(setting: str, folder: Path, days: float = 0.0) -> HistoryStore:
    """The history that CRAG_HISTORY asks for, of runs kept for `days` (0: for ever); nothing is read or written yet.

    "" and "disk" give the file of the home `folder`, a URL that database, "off" one whose every method says so.
    """
    setting = setting.strip()
    if setting in ("", "disk"):
        return HistoryStore(folder / sqlite_file.NAME, days=days)
    if setting == "off":
        return HistoryStore(None)
    if "://" not in setting:
        raise BadRecord(f"CRAG_HISTORY: expected disk, off, or the URL of a database; found {setting[:40]!r}.")
    return HistoryStore(setting, days=days)

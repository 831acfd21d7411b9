"""Where grades are kept between runs: a file of this machine, or a server that several machines share."""

from __future__ import annotations

from pathlib import Path

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import BadRecord
from crag_core.base.network.database import show_place
from crag_core.storage.cache.grade_cache import GradeCache
from crag_core.storage.cache.redis import RedisCache
from crag_core.storage.cache.tables import TableCache

__all__ = ["GradeCache", "RedisCache", "TableCache", "open_cache"]

_REDIS = ("redis://", "rediss://", "unix://")


def open_cache(setting: str, folder: Path, seconds: float) -> GradeCache | None:
    """The cache that CRAG_CACHE asks for, keeping a grade for `seconds`; touches neither disk nor network yet.

    "" and "disk" give the file of the home `folder`, "off" gives None, the URL of a Redis that server.
    """
    setting = setting.strip()
    if setting in ("", "disk"):
        return TableCache(folder / sqlite_file.NAME, seconds)
    if setting == "off":
        return None
    if setting.startswith(_REDIS):
        return RedisCache(setting, seconds)
    known = ", ".join(_REDIS)
    raise BadRecord(f"CRAG_CACHE: expected disk, off, or a URL that starts with {known}; found {show_place(setting)}.")

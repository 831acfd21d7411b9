"""What an index can stand on; `backend.py` says what that takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from crag_core.base.errors import BadRecord

if TYPE_CHECKING:
    from crag_core.retrieval.backends.backend import Backend
    from crag_core.retrieval.backends.lance.write_protocol import Send

_POSTGRES = ("postgresql://", "postgres://")
_OBJECTS = "s3://"


def open_backend(setting: str, folder: Path, send: Send | None = None) -> Backend:
    """The backend that CRAG_STORE asks for; touches neither disk nor network yet, and loads that one only.

    "" and "disk" give `folder`, the URL of a PostgreSQL that server, one with s3:// that object store.
    `send` writes to tables whose engine would run in this process; None: it does.
    """
    setting = setting.strip()
    if setting in ("", "disk"):
        from crag_core.retrieval.backends.disk.backend import FolderBackend

        return FolderBackend(folder, send)
    if setting.startswith(_POSTGRES):
        from crag_core.retrieval.backends.postgres.backend import PostgresBackend

        return PostgresBackend(setting)
    if setting.startswith(_OBJECTS):
        from crag_core.retrieval.backends.objects.backend import ObjectBackend

        return ObjectBackend(setting, send)
    known = ", ".join((*_POSTGRES, _OBJECTS))
    raise BadRecord(f"CRAG_STORE: expected disk, or a URL that starts with {known}; found {_show(setting)}.")


def _show(setting: str) -> str:
    """As much of it as surely holds no password."""
    if re.fullmatch(r"[\w./-]{1,40}", setting):
        return repr(setting)
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://", setting)
    return f"a URL that starts with {scheme[0]}" if scheme else "something else"

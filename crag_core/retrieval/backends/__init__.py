"""The backends of an index, by how CRAG_STORE names them; `backend.py` has their protocol."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from crag_core.base.errors import BadRecord
from crag_core.base.network.database import show_place

if TYPE_CHECKING:
    from crag_core.retrieval.backends.backend import Backend
    from crag_core.retrieval.backends.lance.backend import Send


def _disk(setting: str, folder: Path, send: Send | None) -> Backend:
    from crag_core.retrieval.backends.disk import FolderBackend

    return FolderBackend(folder, send)


def _postgres(setting: str, folder: Path, send: Send | None) -> Backend:
    from crag_core.retrieval.backends.postgres.backend import PostgresBackend

    return PostgresBackend(setting)


def _objects(setting: str, folder: Path, send: Send | None) -> Backend:
    from crag_core.retrieval.backends.objects import ObjectBackend

    return ObjectBackend(setting, send)


BACKENDS: dict[str, Callable[[str, Path, Send | None], Backend]] = {
    "disk": _disk,
    "postgresql://": _postgres,
    "postgres://": _postgres,
    "s3://": _objects,
}
"""What a setting is, or how a URL begins. Each loads its own engine only, and touches neither disk nor network yet."""


def open_backend(setting: str, folder: Path, send: Send | None = None) -> Backend:
    """The backend that CRAG_STORE asks for; "" is "disk", which is `folder`.

    `send` writes to tables whose engine would run in this process; None: it does.
    """
    setting = setting.strip() or "disk"
    for start, build in BACKENDS.items():
        if setting == start or (start.endswith("://") and setting.startswith(start)):
            return build(setting, folder, send)
    names = ", ".join(start for start in BACKENDS if not start.endswith("://"))
    urls = ", ".join(start for start in BACKENDS if start.endswith("://"))
    raise BadRecord(f"CRAG_STORE: expected {names}, or a URL that starts with {urls}; found {show_place(setting)}.")

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crag_core.retrieval.backends.backend import Backend
from crag_core.retrieval.backends.folder import FolderBackend

Open = Callable[[], Backend]
"""Another view of the same place, as another process has it."""

ENGINES = ("folder",)


@pytest.fixture(params=ENGINES)
def open_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """An empty place of each engine, real every time."""
    if request.param == "folder":
        yield lambda: FolderBackend(tmp_path / "index")


@pytest.fixture
def backend(open_backend: Open) -> Backend:
    return open_backend()

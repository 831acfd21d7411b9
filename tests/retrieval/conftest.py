from __future__ import annotations

import os
from pathlib import Path

import pytest

from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def store(tmp_path: Path, embedder: WordEmbedder) -> PassageStore:
    return PassageStore(tmp_path / "index", embedder)


@pytest.fixture(scope="session")
def shared_documents() -> Path:
    folder = Path(os.environ.get("CRAG_SHARED_DATA", REPOSITORY.parent / "shared" / "data")) / "dev" / "documents"
    if not folder.is_dir():
        pytest.skip("skipped: shared data not found")
    return folder

"""A home with three documents, and a service on it that most tests share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from crag_core.app import workbench
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from tests.service.parts import DOCUMENTS, Served, serve
from tests.word_embedder import WordEmbedder


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index that every test has a copy of."""
    folder = tmp_path_factory.mktemp("filled") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
        Workbench(Config(home=folder)).store.ingest([(name, text.encode()) for name, text in DOCUMENTS.items()])
    return folder


@pytest.fixture
def home(tmp_path: Path, filled: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "home"))


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, filled: Path) -> Iterator[Served]:
    home = Path(shutil.copytree(filled, tmp_path_factory.mktemp("served") / "home"))
    with serve(home) as running:
        yield running


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as found:
        yield found


@pytest.fixture
def open_bench(monkeypatch: pytest.MonkeyPatch, served: Served) -> Workbench:
    """On the home of the service, in this process."""
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    return Workbench(Config(home=served.home, ollama_host="127.0.0.1:9"))

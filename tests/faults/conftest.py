"""A small index made without the embedding model; workbenches of these tests do without it too."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app import workbench
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from tests.faults.parts import fill
from tests.judge import judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import HOST
from tests.stand_ins.ollama_server import OllamaServer
from tests.storage.conftest import valkey as valkey
from tests.ui.conftest import APP, Start, _navigate_as_the_server_does, new_process
from tests.word_embedder import WordEmbedder

Open = Callable[..., Workbench]


class Words(WordEmbedder):
    def load(self) -> None:
        """There is nothing to load."""


@pytest.fixture(autouse=True)
def _words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", Words)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index that every test has a copy of."""
    folder = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workbench, "HuggingFaceEmbedder", Words)
        fill(Workbench(Config(home=folder)))
    return folder


@pytest.fixture
def home(tmp_path: Path, _words: None, filled: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "home"))


@pytest.fixture
def open_bench(home: Path) -> Open:
    """A workbench on the index, as another start of the program would make it."""

    def make(**settings: Any) -> Workbench:
        return Workbench(Config(**{"home": home, "ollama_host": "http://127.0.0.1:9", **settings}))

    return make


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    """Every passage is judged 0.9, so that a run needs three grades and an answer and no more."""
    with OllamaServer(ScriptedModel(judging())) as running:
        yield running


@pytest.fixture
def start(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """The page on the index, without a model unless the environment names one."""

    def open_page(policy: str = "paper", **environment: str) -> AppTest:
        (home / "sample-indexed").touch()
        defaults = {"CRAG_HOME": str(home), "OLLAMA_HOST": f"{HOST}:9", "CRAG_WEB": "off"}
        for name, value in {**defaults, **environment}.items():
            monkeypatch.setenv(name, value)
        app = AppTest.from_file(APP, default_timeout=60)
        app.session_state["policy"] = policy
        return app.run()

    _navigate_as_the_server_does(monkeypatch)
    new_process()
    yield open_page
    new_process()

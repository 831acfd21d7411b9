"""One model server of each kind, shared by all sessions; several in a setting are refused."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from crag_core.app import workbench as build
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.errors import Stopped
from tests.judge import judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import wait_until
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.word_embedder import WordEmbedder

DOCUMENTS = [(f"dues-{n}.txt", f"In harbour {n} a yacht of nine metres pays {n} pounds a night.") for n in range(9)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    Workbench(Config(home=tmp_path)).store.ingest([(name, text.encode()) for name, text in DOCUMENTS])
    return tmp_path


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer(ScriptedModel(judging())) as made:
        yield made


def workbench_on(home: Path, server: OllamaServer) -> Workbench:
    return Workbench(Config(home=home, cache="off", ollama_host=server.url))


def test_all_sessions_with_one_server_share_its_places(home: Path, server: OllamaServer) -> None:
    server.faults.delay_s = 30.0
    workbench = workbench_on(home, server)
    flags = [threading.Event() for _ in range(4)]

    def ask(flag: threading.Event) -> None:
        own = workbench.using(replace(workbench.config, top_k=3))
        with suppress(Stopped):
            own.servers.model(f"ollama/{MODEL}").complete((("user", "Hello"),), flag)  # type: ignore[union-attr]

    threads = [threading.Thread(target=ask, args=(flag,)) for flag in flags]
    for thread in threads:
        thread.start()
    assert wait_until(lambda: server.active == 2, 60)
    assert sum(workbench.servers.calls_under_way().values()) == 2
    for flag in flags:
        flag.set()
    for thread in threads:
        thread.join()
    assert server.chat_calls == 2, "the others were never sent"
    assert wait_until(lambda: sum(workbench.servers.calls_under_way().values()) == 0, 60)

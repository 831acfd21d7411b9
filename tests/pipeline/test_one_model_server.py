"""One model server of each kind, shared by all sessions; several in a setting are refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.types import ASGIApp

from crag_core.app import workbench as build
from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.errors import Stopped
from crag_core.base.types.answers import AnswerState
from crag_core.evaluators.policies import suit
from tests.judge import judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import wait_until
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.stand_ins.openai_server import OpenAIServer
from tests.word_embedder import WordEmbedder

QUESTION = "What does a yacht of nine metres pay for a night?"
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


def test_server_killed_while_it_writes_leaves_what_it_wrote_and_goes_on_when_it_is_back(home: Path) -> None:
    with OllamaServer(ScriptedModel(judging(answer="It pays nine pounds [1]. " * 40), delay_s=0.005)) as dying:
        workbench = workbench_on(home, dying)
        choice = Choice(suit(workbench.policies["paper"], "embedding"), "embedding", f"ollama/{MODEL}", top_k=9)
        killer = threading.Thread(target=lambda: wait_until(lambda: dying.pieces_sent > 9, 10.0) and dying.stop())
        killer.start()
        pipeline = workbench.engine(choice)
        trace = pipeline.run(QUESTION)
        killer.join()
        assert trace.failure is not None and "went away" in trace.failure.summary
        assert trace.answer is not None and trace.answer.text.startswith("It pays")
        dying.start()
        resumed = pipeline.resume(trace)
    assert resumed.failure is None
    assert resumed.answer is not None and resumed.answer.state is AnswerState.COMPLETE


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
    assert wait_until(lambda: server.active == 2, 5.0)
    assert wait_until(lambda: sum(map(workbench.servers.is_busy, flags)) == 2, 5.0)
    for flag in flags:
        flag.set()
    for thread in threads:
        thread.join()
    assert server.chat_calls == 2, "the others were never sent"
    assert not any(map(workbench.servers.is_busy, flags))


def test_both_servers_are_asked_at_the_same_time(home: Path) -> None:
    """Each answers only when both have been asked."""
    meeting = threading.Barrier(2)

    class Ollama(OllamaServer):
        async def _list(self, body: None) -> ASGIApp:
            await asyncio.to_thread(meeting.wait, 10.0)
            return await super()._list(body)

    class OpenAI(OpenAIServer):
        async def _list(self, body: None) -> ASGIApp:
            await asyncio.to_thread(meeting.wait, 10.0)
            return await super()._list(body)

    with Ollama(ScriptedModel([]), models=["a"]) as near, OpenAI(ScriptedModel([]), models=["d"]) as far:
        found = Workbench(Config(home=home, ollama_host=near.url, openai_url=far.api_base)).servers.look()
    assert found.choices == ("ollama/a:latest", "extractive", "openai/d")

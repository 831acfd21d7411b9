"""Whole runs over several model servers: no grade is lost with a server, and who is left out is left out for all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from crag_core.app import workbench as build
from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench, suit
from crag_core.base.errors import Stopped
from crag_core.base.types import AnswerState
from crag_core.trace.trace import Trace
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
def servers() -> Iterator[tuple[OllamaServer, OllamaServer]]:
    with OllamaServer(ScriptedModel(judging())) as one, OllamaServer(ScriptedModel(judging())) as other:
        yield one, other


def workbench_on(home: Path, *servers: OllamaServer) -> Workbench:
    return Workbench(Config(home=home, cache="off", ollama_host=",".join(server.url for server in servers)))


def ask(workbench: Workbench) -> Trace:
    """A run that grades each passage by a call and writes its answer by another."""
    choice = Choice(suit(workbench.policies["worst-chunk"], "llm"), "llm", f"ollama/{MODEL}", top_k=9)
    return workbench.pipeline(choice).run(QUESTION)


def test_grades_are_spread_and_every_call_is_on_the_bill(home: Path, servers: tuple[OllamaServer, ...]) -> None:
    trace = ask(workbench_on(home, *servers))
    assert trace.failure is None and trace.grades is not None
    assert [grade.score for grade in trace.grades] == [0.9] * 9
    one, other = (server.chat_calls for server in servers)
    assert one + other == trace.usage.calls and min(one, other) >= 2


def test_server_killed_while_it_grades_loses_no_grade(home: Path, servers: tuple[OllamaServer, ...]) -> None:
    dying, other = servers
    dying.faults.delay_s = 60.0
    killer = threading.Thread(target=lambda: wait_until(lambda: dying.active == 2, 10.0) and dying.stop())
    killer.start()
    workbench = workbench_on(home, *servers)
    trace = ask(workbench)
    killer.join()
    assert trace.failure is None and trace.grades is not None
    assert [grade.score for grade in trace.grades] == [0.9] * 9
    assert trace.answer is not None and trace.answer.state is AnswerState.COMPLETE
    assert dying.chat_calls == 2 and trace.usage.calls == other.chat_calls + 2
    # Another run, of another session with other settings, knows of it.
    dying.faults.clear()
    dying.start()
    ask(workbench.using(replace(workbench.config, top_k=3)))
    assert dying.chat_calls == 2
    left_out, used = workbench.standings("ollama")
    assert left_out.failures == 1 and left_out.name == dying.url and used.served == other.chat_calls


def test_server_killed_while_it_writes_leaves_what_it_wrote(home: Path, servers: tuple[OllamaServer, ...]) -> None:
    _, other = servers
    with OllamaServer(ScriptedModel(judging(answer="It pays nine pounds [1]. " * 40), delay_s=0.005)) as dying:
        workbench = workbench_on(home, dying)
        choice = Choice(suit(workbench.policies["paper"], "embedding"), "embedding", f"ollama/{MODEL}", top_k=9)
        several = workbench.using(replace(workbench.config, ollama_host=f"{dying.url} {other.url}"))
        killer = threading.Thread(target=lambda: wait_until(lambda: dying.pieces_sent > 9, 10.0) and dying.stop())
        killer.start()
        pipeline = several.pipeline(choice)
        trace = pipeline.run(QUESTION)
        killer.join()
    assert trace.failure is not None and "went away" in trace.failure.summary
    assert trace.answer is not None and trace.answer.text.startswith("It pays")
    assert other.chat_calls == 0
    resumed = pipeline.resume(trace)
    assert resumed.failure is None and other.chat_calls == 1
    assert resumed.answer is not None and resumed.answer.state is AnswerState.COMPLETE


def test_one_address_has_no_standings_to_show(home: Path, servers: tuple[OllamaServer, ...]) -> None:
    workbench = workbench_on(home, servers[0])
    assert workbench.standings("ollama") == workbench.standings("openai") == ()
    assert workbench.models().ollama.servers == ()
    assert len(workbench_on(home, *servers).standings("ollama")) == len(servers)


def test_all_sessions_with_one_server_share_its_places(home: Path, servers: tuple[OllamaServer, ...]) -> None:
    server, _ = servers
    server.faults.delay_s = 30.0
    workbench = workbench_on(home, server)
    flags = [threading.Event() for _ in range(4)]

    def ask(flag: threading.Event) -> None:
        own = workbench.using(replace(workbench.config, top_k=3))
        with suppress(Stopped):
            own.language_model(f"ollama/{MODEL}").complete((("user", "Hello"),), flag)  # type: ignore[union-attr]

    threads = [threading.Thread(target=ask, args=(flag,)) for flag in flags]
    for thread in threads:
        thread.start()
    assert wait_until(lambda: server.active == 2, 5.0)
    assert wait_until(lambda: sorted(map(str, map(workbench.calls_before, flags))) == ["0", "1", "None", "None"], 5.0)
    for flag in flags:
        flag.set()
    for thread in threads:
        thread.join()
    assert server.chat_calls == 2, "the others were never sent"
    assert [workbench.calls_before(flag) for flag in flags] == [None] * 4


def test_what_is_offered_is_what_any_server_has(home: Path, servers: tuple[OllamaServer, ...]) -> None:
    one, other = servers
    one.models, other.models = ["a:1b", "b:1b"], ["c:1b", "a:1b"]
    with OpenAIServer(ScriptedModel([]), models=["d"]) as far:
        hosts = f"{one.url}, 127.0.0.1:9, {other.url}"
        workbench = Workbench(Config(home=home, ollama_host=hosts, openai_url=far.api_base))
        found = workbench.models()
    assert found.choices == ("ollama/a:1b", "ollama/b:1b", "ollama/c:1b", "extractive", "openai/d")
    assert found.ollama.message == "2 of 3 Ollama servers answer; http://127.0.0.1:9 does not."
    assert found.ollama.hint == "Start it with: ollama serve"
    assert [state.reachable for state in found.ollama.servers] == [True, False, True]
    assert found.openai is not None and found.openai.servers == ()


LOOKING = """
import os
from crag_core.app.workbench import Workbench
bench = Workbench()
model = bench.language_model("ollama/llama3.2")
assert model is not None and len(bench.models().ollama.servers) == 2
print(os.environ["OLLAMA_HOST"])
"""


@pytest.mark.parametrize("hosts", ["127.0.0.1:9,127.0.0.1:10", "http://127.0.0.1:9 http://me:s3cret@127.0.0.1:10"])
def test_list_in_the_environment_does_not_disturb_the_client_that_reads_it_too(tmp_path: Path, hosts: str) -> None:
    """The package of Ollama makes a client of that variable when it is imported, and a list is no address."""
    environment = os.environ | {"OLLAMA_HOST": hosts, "CRAG_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LOOKING], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == hosts, "it is as it was"


def test_more_servers_grade_more_questions_of_a_set_at_a_time(home: Path) -> None:
    assert Workbench(Config(home=home)).scoring_workers == 2
    assert Workbench(Config(home=home, ollama_host="a,b,c", calls_at_once=4)).scoring_workers == 12

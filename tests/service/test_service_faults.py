"""The service while a neighbour fails, while it is full, and when it is ended: docs/faults.md over HTTP."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
import pytest

from crag_core.app import workbench
from crag_core.app.choice import Choice
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.evaluators.policies import find_policy
from crag_core.service.guards import Rules
from crag_core.service.service import Service
from crag_core.storage.history.runs import Selection
from crag_core.trace.summary import Ending
from tests.browser.conftest import find_port
from tests.judge import ANSWER, heard, judging
from tests.service.parts import PLAIN, QUESTION, TOKEN, Served, serve, serving
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import HOST, wait_until
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.stand_ins.searxng_server import SearXNGServer
from tests.word_embedder import WordEmbedder

JUDGED = ("--policy", "worst-chunk", "--evaluator", "llm", "--model", f"ollama/{MODEL}")
WAITING = 1


@pytest.fixture(scope="module")
def ollama() -> Iterator[OllamaServer]:
    with OllamaServer(ScriptedModel(judging())) as running:
        yield running


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, filled: Path, ollama: OllamaServer) -> Iterator[Served]:
    """Graded and answered by the model; two runs at once, one in line."""
    home = Path(shutil.copytree(filled, tmp_path_factory.mktemp("judged") / "home"))
    full = {"CRAG_RUNS_AT_ONCE": "2", "CRAG_RUNS_WAITING": f"{WAITING}", "CRAG_CACHE": "off"}
    with serve(home, *JUDGED, OLLAMA_HOST=ollama.url, **full) as running:
        yield running


@pytest.fixture(autouse=True)
def _well_again(ollama: OllamaServer) -> Iterator[None]:
    yield
    ollama.faults.clear()
    ollama.requests.clear()


class Impatient:
    """Asks, and leaves without an answer."""

    def __init__(self, served: Served, **asked: Any) -> None:
        self._connection = socket.create_connection((HOST, int(served.url.rpartition(":")[2])))
        body = json.dumps(asked or {"query": QUESTION})
        head = f"POST /query HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {TOKEN}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._connection.sendall((head + body).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()


def ask(served: Served, question: str = QUESTION, **body: Any) -> httpx.Response:
    with served.client() as client:
        return client.post("/query", json={"query": question, **body})


def history(served: Served) -> Any:
    return Workbench(Config(home=served.home)).history


def stopped(served: Served) -> int:
    return int(history(served).count(Selection(endings=(Ending.STOPPED,))))


def at_work(ollama: OllamaServer, count: int = 1) -> bool:
    return wait_until(lambda: ollama.active >= count, 60)


def test_a_model_that_dies_in_mid_answer_leaves_a_run_that_is_carried_on(judged: Served, ollama: OllamaServer) -> None:
    assert ask(judged).json()["answer"] == ANSWER
    ollama.requests.clear()
    died = threading.Event()

    def reply(messages: Any) -> Any:
        said = judging()(messages)
        if said == ANSWER and not died.is_set():
            ollama.faults.die_after = 0
            died.set()
        return said

    ollama.engine = ScriptedModel(reply)
    broken = ask(judged)
    told = broken.json()
    assert broken.status_code == 503 and broken.headers["retry-after"], told
    assert told["kind"] == "ModelUnavailable" and "does not answer or went away" in told["error"]
    assert told["hint"] and told["ending"] == "failed" and "Traceback" not in broken.text
    before = heard(ollama)["judge"]
    ollama.faults.clear()
    with judged.client() as client:
        ollama.faults.delay_s = 60.0
        with Impatient(judged, resume=told["id"]):
            assert at_work(ollama)
            twice = client.post("/query", json={"resume": told["id"]})
            assert twice.status_code == 409 and twice.json()["kind"] == "UnderWay"
        ollama.faults.clear()
        assert wait_until(lambda: client.get("/health").json()["runs_under_way"] == 0, 60)
        done = client.post("/query", json={"resume": told["id"]})
        assert done.json()["answer"] == ANSWER and done.json()["id"] == told["id"]
        assert heard(ollama)["judge"] == before, "what was graded is not graded again"
        again = client.post("/query", json={"resume": told["id"]})
        assert again.status_code == 422 and "this one is finished" in again.json()["error"]


def test_a_model_that_is_away_is_told_and_health_says_so(judged: Served, ollama: OllamaServer) -> None:
    ollama.stop()
    try:
        told = ask(judged)
        assert told.status_code == 503 and "Start it with: ollama serve" in told.json()["error"] + told.json()["hint"]
        with judged.client() as client:
            assert wait_until(lambda: client.get("/health").status_code == 503, 60)
            part = client.get("/health").json()["parts"]["language model"]
            assert not part["works"] and part["needed"] and part["problem"].endswith("cannot be reached.")
        with judged.client(token="") as stranger:
            assert stranger.get("/health").json()["parts"]["language model"]["problem"] == ""
    finally:
        ollama.start()


def test_an_index_that_is_away_keeps_no_decision_from_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    (tmp_path / "index").mkdir()
    (tmp_path / "crag.db").write_bytes(b"no database" * 900)
    contexts = [{"text": "A yacht of up to ten metres pays 14 pounds a night."}]
    with serving(tmp_path, Rules()) as url, httpx.Client(base_url=url, timeout=60, **PLAIN) as client:
        told = client.post("/route", json={"question": QUESTION, "contexts": contexts})
        assert told.status_code == 200 and told.json()["decision"]["action"] == "CORRECT"
        away = client.post("/query", json={"query": QUESTION})
        assert away.status_code == 503 and away.json()["kind"] == "StoreUnavailable"
        health = client.get("/health")
        assert health.status_code == 503 and not health.json()["parts"]["index"]["works"]


def test_health_does_not_wait_for_a_part_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    go_on, asked = threading.Event(), []

    def hang(self: object) -> tuple[()]:
        asked.append(self)
        go_on.wait(60)
        return ()

    monkeypatch.setattr("crag_core.retrieval.index.store.PassageStore.documents", hang)
    monkeypatch.setattr("crag_core.service.service.HEALTH_S", 0.0)
    monkeypatch.setattr("crag_core.service.service.PART_S", 0.5)
    service = Service(
        Workbench(Config(home=tmp_path, ollama_host="127.0.0.1:9")), Choice(find_policy("paper"), "heuristic")
    )
    service._loaded.set()
    try:
        for _ in range(2):
            told = service.health().parts["index"]
            assert not told.works and told.needed and told.problem == "It does not answer within 0.5 s."
        assert len(asked) == 1, "nobody asks it again while it hangs"
        assert service.health().parts["evaluator"].works
    finally:
        go_on.set()


def test_who_leaves_stops_the_run_and_its_model_call(judged: Served, ollama: OllamaServer) -> None:
    ollama.faults.delay_s = 60.0
    left, kept = ollama.disconnects, stopped(judged)
    with Impatient(judged):
        assert at_work(ollama)
    assert ollama.wait_for_disconnects(left + 1)
    assert wait_until(lambda: stopped(judged) == kept + 1, 60), "the run is kept as stopped"
    ollama.faults.clear()
    assert ask(judged).status_code == 200, "its turn is free again"


def test_a_line_that_is_full_refuses_and_says_when_to_come_again(judged: Served, ollama: OllamaServer) -> None:
    ollama.faults.delay_s = 60.0
    with judged.client() as client:

        def counts() -> tuple[int, int]:
            found = client.get("/health").json()
            return found["runs_under_way"], found["runs_waiting"]

        with Impatient(judged), Impatient(judged), Impatient(judged):
            assert wait_until(lambda: counts() == (2, WAITING), 60), counts()
            for path, body in (("/query", {"query": QUESTION}), ("/route", {"question": "Why?", "contexts": []})):
                refused = client.post(path, json=body)
                assert refused.status_code == 429 and refused.headers["retry-after"] == "5"
                assert refused.json()["error"].startswith("Too many questions at the same time")
                assert refused.json()["kind"] == "Busy"
            assert client.post("/reroute", json={"id": "none"}).status_code == 404, "what needs no turn is answered"
        assert wait_until(lambda: counts() == (0, 0), 60), counts()


def test_a_full_disk_costs_an_answer_nothing(judged: Served) -> None:
    process = psutil.Process(judged.process.pid)
    least, most = process.rlimit(resource.RLIMIT_FSIZE)
    process.rlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        told = ask(judged)
        assert told.status_code == 200 and told.json()["answer"] == ANSWER and told.json()["kept"] is False
        with judged.client() as client:
            decided = client.post("/route", json={"question": "Why?", "contexts": [], "keep": True})
            assert decided.status_code == 200 and decided.json()["kept"] is False
            assert wait_until(lambda: client.get("/health").json()["status"] == "degraded", 60)
    finally:
        process.rlimit(resource.RLIMIT_FSIZE, (least, most))
    assert ask(judged).json()["kept"] is True


def test_the_web_away_or_back_and_a_pause_between_two_searches(home: Path) -> None:
    found = WebResult("Dues", "https://example.org/dues", "A yacht of nine metres pays 14 pounds for a night.")
    with SearXNGServer([found]) as web:
        port = find_port()
        settings = {
            "CRAG_METRICS_PORT": f"{port}",
            "CRAG_WEB_PROVIDERS": "searxng",
            "CRAG_SEARXNG_URL": web.url,
            "CRAG_WEB_PAGES": "off",
        }
        with serve(home, "--policy", "paper", "--lower", "0", "--upper", "1", "--web", "auto", **settings) as served:
            with_web = ask(served).json()
            assert with_web["metadata"]["cragWebSearchUsed"] and with_web["sources"][-1]["origin"] == "web"
            assert ask(served, use_web_search=False).json()["metadata"]["cragWebSearchUsed"] is False
            web.stop()
            away = ask(served, question="How much does the crane lift?", record=True)
            assert away.status_code == 200 and "SearXNG could not be reached" in away.text
            assert away.json()["answer"] and not away.json()["metadata"]["cragWebSearchUsed"]
            web.start()
            figures = httpx.get(f"http://{HOST}:{port}/metrics", **PLAIN).text
            assert 'crag_runs_total{ending="done"} 3.0' in figures and 'crag_part_works{part="history"} 1.0' in figures
            for question in ("Who inspects the crane?", "When is it inspected?"):
                told = ask(served, question=question, policy="signals", lower=0.0, upper=1.0, record=True).json()
            assert "this policy waits 30 s" in str(told["record"]["steps"]), "two searches within its pause"


def test_ended_by_sigterm_with_a_run_under_way_and_carried_on_by_the_next_start(
    judged: Served, ollama: OllamaServer
) -> None:
    """The last of those that ask this service."""
    ollama.faults.delay_s = 60.0
    with judged.client() as client, ThreadPoolExecutor(1) as thread:
        asked = thread.submit(client.post, "/query", json={"query": QUESTION})
        assert at_work(ollama)
        children = psutil.Process(judged.process.pid).children(recursive=True)
        assert judged.end() == -signal.SIGTERM
        told = asked.result()
    assert psutil.wait_procs(children, timeout=10)[1] == [], "no process is left"
    assert told.status_code == 503 and "program was ended" in told.json()["error"]
    assert "Traceback" not in judged.log.read_text(), judged.log.read_text()
    ollama.faults.clear()
    with serve(judged.home, *JUDGED, OLLAMA_HOST=ollama.url) as served, served.client() as client:
        done = client.post("/query", json={"resume": told.json()["id"]})
        assert done.status_code == 200 and done.json()["answer"] == ANSWER

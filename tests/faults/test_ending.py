"""Ctrl-C and SIGTERM in the middle of the first start: it ends at once, aborts nothing, and the next start goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from tests.browser.conftest import find_port
from tests.browser.visitor import Visitor
from tests.conftest import REPOSITORY
from tests.stand_ins.local_server import wait_until

SAMPLES = len([*(REPOSITORY / "data" / "sample").iterdir()])
INDEXES = f"of {SAMPLES})"


def end_at(home: Path, is_indexed: bool, number: signal.Signals) -> tuple[int, str]:
    """Start it, look at its page while it indexes, or until it has and loads the model; send the signal.

    Returns exit code and what it said.
    """
    port = find_port()
    command = [sys.executable, "-m", "ui", "--server.port", str(port), "--server.headless", "true"]
    environment = os.environ | {"CRAG_HOME": str(home), "OLLAMA_HOST": "127.0.0.1:9", "OPENAI_BASE_URL": ""}
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=environment | {"CRAG_WEB": "off"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            assert wait_until(lambda: accepts(port), 60) and process.stdout is not None
            asyncio.run(look(f"http://localhost:{port}", is_indexed))
            children = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(number)
            said = process.stdout.read()
            code = process.wait(60)
            assert psutil.wait_procs(children, timeout=10)[1] == [], "no process is left"
            return code, said
        finally:
            process.kill()


def accepts(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("localhost", port)) == 0


async def look(url: str, is_indexed: bool) -> None:
    visitor = Visitor(url, "V")
    await visitor.open()
    await visitor.until(lambda: any(INDEXES in bar.text for bar in visitor.elements("progress")))
    if is_indexed:
        await visitor.until(lambda: not any(visitor.elements("progress")))
    await visitor.close()


@pytest.mark.parametrize(
    ("loads", "number"), [(False, signal.SIGTERM), pytest.param(True, signal.SIGINT, marks=pytest.mark.exhaustive)]
)
def test_ended_while_it_loads_and_while_it_indexes_and_finished_by_the_next_start(
    tmp_path: Path, loads: bool, number: signal.Signals
) -> None:
    code, said = end_at(tmp_path, loads, number)
    assert code == -number, said
    assert "terminate called" not in said and "Traceback" not in said
    store = Workbench(Config(home=tmp_path)).store
    if loads or (tmp_path / "sample-indexed").exists():  # the signal came when all were in
        assert len(store.documents()) == SAMPLES, "the first start is over too early"
    assert len(store.listing()) == SAMPLES, "all are kept, and none is forgotten"
    store.finish_interrupted()
    assert len(store.documents()) == SAMPLES

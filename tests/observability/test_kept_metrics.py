"""The figures of the shared history as Prometheus gets them from `python -m crag_core serve-metrics`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from crag_core.base.errors import HistoryUnavailable
from crag_core.base.types.decisions import Action
from crag_core.observability.history_metrics import WINDOWS, KeptRuns, registry_of
from crag_core.storage.history import open_history
from crag_core.trace.summary import Ending, Measured
from tests.fakes import QUESTION, Bench, FakeModel
from tests.observability.scraped import Scraped, read

ROOT = Path(__file__).parents[2]
NOW = 1_000_000.0


def run_at(age: float, action: Action | None = Action.CORRECT, **fields: object) -> Measured:
    usual = {
        "at": NOW - age,
        "ending": Ending.DONE,
        "action": action,
        "policy": "paper",
        "strategy": "none",
        "score": 0.5,
        "decided_ms": 50.0,
        "retrieval_ms": 400.0,
        "provider_ms": 100.0,
        "total_ms": 1000.0,
        "searched": False,
        "improved": None,
        "graded": 4,
        "ungraded": 1,
        "cached": 2,
        "calls": 3,
        "prompt_tokens": 100,
        "completion_tokens": 10,
    }
    return Measured(**usual | fields)  # type: ignore[arg-type]


def scrape(runs: Sequence[Measured]) -> Scraped:
    registry = CollectorRegistry()
    registry.register(KeptRuns(lambda: runs, clock=lambda: NOW))
    return read(registry)


def test_the_figures_of_each_window_are_those_of_its_runs() -> None:
    found = scrape(
        [
            run_at(10),
            run_at(20, Action.INCORRECT, searched=True, improved=True),
            run_at(7200, None, ending=Ending.FAILED, decided_ms=None, retrieval_ms=None, provider_ms=None),
            run_at(30 * 86400, Action.AMBIGUOUS, improved=False),
        ]
    )
    hour, day, all_of_them = {"window": "1h"}, {"window": "1d"}, {"window": "all"}
    assert found["crag_history_up"] == 1
    assert found["crag_kept_runs", hour | {"ending": "done"}] == 2
    assert found["crag_kept_runs", day | {"ending": "failed"}] == 1
    assert found["crag_kept_decisions", hour | {"action": "CORRECT"}] == 1
    assert found["crag_kept_decisions", all_of_them | {"action": "AMBIGUOUS"}] == 1
    assert found["crag_kept_share", hour | {"figure": "corrected"}] == 0.5
    assert found["crag_kept_share", hour | {"figure": "searched"}] == 0.5
    assert found["crag_kept_share", all_of_them | {"figure": "improved"}] == 0.5
    assert found["crag_kept_share", day | {"figure": "failed"}] == pytest.approx(1 / 3)
    assert found["crag_kept_share", hour | {"figure": "ungraded"}] == 0.2
    assert found["crag_kept_share", hour | {"figure": "cached"}] == 0.4
    assert found["crag_kept_seconds", hour | {"path": "fast", "quantile": "0.5"}] == 0.05
    assert found["crag_kept_seconds", hour | {"path": "corrected", "quantile": "0.95"}] == pytest.approx(0.3)
    assert found["crag_kept_model_calls", hour] == 6
    assert found["crag_kept_model_tokens", all_of_them | {"kind": "prompt"}] == 400
    assert {labels["window"] for labels, _ in found.all("crag_kept_runs")} == set(WINDOWS)


def test_a_history_that_is_away_is_told_and_no_figure_is_made_up(caplog: pytest.LogCaptureFixture) -> None:
    def away() -> Sequence[Measured]:
        raise HistoryUnavailable("The database is away.")

    registry = registry_of(away, "1.2.3")
    for _ in range(2):
        found = read(registry)
    assert found["crag_history_up"] == 0 and "process_cpu_seconds_total" in found.names
    assert not [name for name in found.names if name.startswith("crag_kept")]
    assert len(caplog.records) == 1


def test_the_command_serves_what_other_processes_keep(tmp_path: Path) -> None:
    history = open_history("disk", tmp_path)
    environment = {**os.environ, "CRAG_HOME": str(tmp_path)}
    port = free_port()
    command = [sys.executable, "-m", "crag_core", "serve-metrics", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stderr is not None
            told = serving.stderr.readline()
            assert told == f"figures of the kept runs at http://127.0.0.1:{port}/metrics\n"
            assert ask(port)["crag_history_up"] == 1
            history.save(Bench(model=FakeModel()).pipeline.run(QUESTION))
            found = ask(port)
            assert found["crag_kept_runs", {"window": "1h", "ending": "done"}] == 1
            assert found["crag_kept_model_calls", {"window": "all"}] == 1
            assert QUESTION not in found.text
        finally:
            serving.send_signal(signal.SIGTERM)
        assert serving.wait(20) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(port: int) -> Scraped:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
        return Scraped(reply.read().decode())

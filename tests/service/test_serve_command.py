"""The command `serve`: what it refuses before anything listens, and what it says."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from crag_core.__main__ import WRONG, main
from crag_core.service import command
from tests.conftest import REPOSITORY


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


def told(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    return main(["serve", *options]), capsys.readouterr().err


def test_without_a_token_it_is_for_this_machine_only(capsys: pytest.CaptureFixture[str]) -> None:
    code, words = told(capsys, "--host", "0.0.0.0")
    assert code == WRONG and "Without a token the service is for this machine only" in words
    assert "CRAG_SERVICE_TOKEN" in words


def test_a_port_that_is_taken_or_no_port_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, words = told(capsys, "--port", str(taken.getsockname()[1]))
    assert code == 1 and "The service cannot listen at 127.0.0.1" in words and "--port" in words
    assert told(capsys, "--port", "70000")[0] == WRONG


@pytest.mark.parametrize(
    "options",
    [("--policy", "papier"), ("--evaluator", "crss"), ("--preset", "none"), ("--collection", "none")],
    ids=str,
)
def test_a_choice_that_cannot_be_meant_is_refused_at_the_start(
    capsys: pytest.CaptureFixture[str], options: tuple[str, str]
) -> None:
    assert told(capsys, *options)[0] == WRONG


def test_without_its_packages_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("crag_core.service.") and name != command.__name__]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    code, words = told(capsys)
    assert code == 1 and words == (
        'error: Expected the package fastapi, found none. Run: pip install "crag-explorer[serve]"\n'
    )


def test_the_unit_of_systemd_starts_it_and_is_confined_as_that_of_the_application() -> None:
    units = [(REPOSITORY / "deploy" / name).read_text("utf-8") for name in
             ("crag-explorer.service", "crag-explorer-serve.service")]  # fmt: skip
    app, service = ({line for line in unit.splitlines() if line and line[0] != "#"} for unit in units)
    own = {"Description=CRAG Explorer, the service"}
    own |= {"ExecStart=/opt/crag-explorer/.venv/bin/python -m crag_core serve --port 8600"}
    assert service - app == own

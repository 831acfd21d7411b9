"""The command line as a program: pipes that close, consoles of ASCII, disks that are full, standard input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.matrix import mostly

SLOW = 120.0


def start(home: Path, *arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    """In an index that is empty: no model is loaded."""
    environment = {**os.environ, "CRAG_HOME": str(home), "OLLAMA_HOST": "127.0.0.1:9", "OMP_NUM_THREADS": "1"}
    options: dict[str, Any] = {
        "cwd": REPOSITORY, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE
    } | more  # fmt: skip
    command = [sys.executable, "-m", "crag_core", *arguments]
    return subprocess.Popen(command, env=environment | options.pop("env", {}), **options)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_output_that_nobody_reads_ends_quietly(home: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with start(home, "settings", stdout=writer) as process:
        os.close(writer)
        _, told = process.communicate(timeout=SLOW)
    assert told == b"", "neither a traceback nor 'Exception ignored'"
    assert process.returncode == 141


def test_output_of_which_a_letter_is_read_ends_quietly(home: Path) -> None:
    with start(home, "ask", "Why does Zoë leave?", "--json") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(1) == b"{"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(SLOW) in (0, 141)  # it may have been quicker


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_full_disk_is_told(home: Path) -> None:
    with Path("/dev/full").open("wb") as full, start(home, "settings", stdout=full) as process:
        _, told = process.communicate(timeout=SLOW)
    assert told.decode() == "error: the output cannot be written (No space left on device).\n"
    assert process.returncode == 1


@pytest.mark.parametrize("console", mostly({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}), ids=str)
def test_a_console_that_writes_ascii_only(home: Path, console: dict[str, str]) -> None:
    question = "Why does Zoë pay 5 € at 港?"
    with start(home, "ask", "-", env=console) as process:
        out, told = process.communicate(question.encode(), SLOW)
    assert process.returncode == 0 and b"Traceback" not in told
    assert out.startswith(b"Retrieval: INCORRECT. Nothing was retrieved")
    with start(home, "ask", "-", "--json", env=console) as process:
        out, told = process.communicate(b"\xef\xbb\xbf  " + question.encode() + b"\r\n", SLOW)
    assert process.returncode == 0 and told == b""
    assert json.loads(out)["question"] == question, "no letter of a record is lost"


def test_streams_that_are_closed(home: Path) -> None:
    command = f"exec {sys.executable} -m crag_core ask - <&- >&- 2>&-"
    done = subprocess.run(
        ["sh", "-c", command], cwd=REPOSITORY, env={**os.environ, "CRAG_HOME": str(home)}, check=False
    )
    assert done.returncode == 2


@pytest.mark.skipif(sys.platform != "linux", reason="skipped: only Linux has this")
def test_too_little_memory_is_told_before_anything_begins(home: Path) -> None:
    limited = ["prlimit", f"--as={2 * 10**9}", sys.executable, "-m", "crag_core", "ask", "hello"]
    environment = {**os.environ, "CRAG_HOME": str(home)}
    ended = subprocess.run(limited, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=SLOW)
    assert ended.returncode == 1 and not home.exists()
    assert ended.stderr.startswith("error: Expected 3 GB of memory") and "Traceback" not in ended.stderr

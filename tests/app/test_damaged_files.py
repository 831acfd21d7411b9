"""Settings of every kind and kept files that are damaged: a clear error or a run without them, never a traceback."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from crag_core.__main__ import main
from crag_core.app import config, workbench
from crag_core.app.config import Config
from tests.deployment.homes import QUESTION, fill
from tests.matrix import mostly
from tests.policy_files import use_folder
from tests.word_embedder import WordEmbedder

Output = pytest.CaptureFixture[str]

VALUES = (
    *("", "  ", "x", "-1", "0", "nan", "inf", "1e309", "9" * 5000, "\udcff\udcfe", "a\nb", "é\u202e", ",", "*", "on"),
    *("http://", "://", "http://[", "http://x:99999", "redis://", "postgresql://", "s3://", "/dev/null", "ollama/"),
)
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut short": lambda data: data[: len(data) // 2],
    "other bytes": lambda data: b"\xff\xfe\x00" * 300,
    "bent": lambda data: bytes(byte ^ 0x55 if place % 7 == 0 else byte for place, byte in enumerate(data)),
    "another file": lambda data: b'{"schema": 99, "policy": []}\n',
}


def run(capsys: Output, *arguments: str) -> int:
    """The exit code; one that is not 0 comes with words."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # as the program does at its start
    try:
        code = main(list(arguments))
    except SystemExit as ended:
        code = int(ended.code or 0)
    shown = capsys.readouterr()
    own = shown.err.partition("Exception occurred during processing of request")[0]  # of a server of an earlier test
    assert "Traceback" not in own + shown.out
    if code:
        assert "error: " in shown.err or "Broke off at" in shown.out or '"error": "' in shown.out, arguments
    return code


@pytest.mark.parametrize("every", mostly(6, 1))
def test_no_value_of_any_setting_is_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output, every: int
) -> None:
    """Every sixth value of each setting, or each: it is read, and a question is asked with a half of them."""
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    monkeypatch.chdir(tmp_path)
    codes = set()
    for row, setting in enumerate(fields(Config)):
        for place, value in list(enumerate(VALUES, row))[row % every :: every]:
            with monkeypatch.context() as one:
                one.setenv("OLLAMA_HOST", "127.0.0.1:9")
                one.setenv("CRAG_HOME", str(tmp_path / "home"))
                one.setenv(setting.metadata["variable"], value)
                codes.add(run(capsys, "settings"))
                if place % 2 == 0 or every == 1:
                    codes.add(run(capsys, "ask", "Why?"))
    assert codes == {0, 1, 2}


def test_no_line_of_the_env_file_is_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    file = tmp_path / ".env"
    monkeypatch.setattr(config, "ENV_FILE", file)
    monkeypatch.setenv("CRAG_HOME", str(tmp_path / "home"))
    for data in (
        b"\xff\xfe\x00",
        b"A",
        b"A='",
        b"'",
        b"CRAG_TOP_K=\xff",
        b"CRAG_TOP_K=x",
        b"CRAG_AUDIT=\0",
        b"x" * 10**5,
    ):
        file.write_bytes(data)
        assert run(capsys, "settings") == 1, data[:20]


def test_no_damaged_file_is_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    home = tmp_path / "home"
    monkeypatch.setenv("CRAG_HOME", str(home))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    held = fill(home)
    folder = use_folder(tmp_path / "policies", monkeypatch)
    (folder / "mine.toml").write_bytes((folder / "paper.toml").read_bytes())
    (record := tmp_path / "run.json").write_text(held.history.load(held.history.search()[0].id).to_json(), "utf-8")  # type: ignore[union-attr]
    (known,), (preset,) = held.experiments.set_names(), held.experiments.preset_names()
    grading = ["evaluate", "--set", known, "--evaluator", "embedding", "--policy", "paper"]
    run(capsys, *grading)
    run(capsys, "compare", "--set", known, "--with", "paper,evaluator=embedding")
    (home / "laboratory" / "sets").mkdir(parents=True)
    ask = ["ask", QUESTION, "--evaluator", "embedding"]
    reads: dict[Path, tuple[list[str], ...]] = {
        home / "crag.db": (
            ask, grading, ["compare", "--set", known, "--with", "paper,evaluator=embedding"],
            ["ask", QUESTION, "--preset", preset], ["tune", "--set", known, "--preset", preset],
            ["backup", str(tmp_path / "b.zip")],
        ),
        home / "laboratory" / "sets" / "old.jsonl": (["evaluate", "--set", "old"],),
        home / "history.db": (ask,),
        home / "audit.jsonl": (["audit"],),
        folder / "mine.toml": ([*ask, "--policy", "mine"], [*ask, "--policy", "paper"]),
        record: (["report", str(record), "-o", str(tmp_path / "page.html")],),
    }  # fmt: skip
    for file, commands in reads.items():
        whole = file.read_bytes() if file.is_file() else b""
        for damage in DAMAGE.values():
            file.parent.mkdir(parents=True, exist_ok=True)  # what was taken over has another name
            file.write_bytes(damage(whole))
            for command in commands:
                run(capsys, *command)
            (tmp_path / "b.zip").unlink(missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.mkdir()
        for command in commands:
            run(capsys, *command)
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(file, ignore_errors=True)
        if whole:
            file.write_bytes(whole)


def test_a_file_without_an_end_is_refused_and_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv("CRAG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    for ending in ("json", "jsonl", "toml"):
        (tmp_path / f"zero.{ending}").symlink_to("/dev/zero")
    for arguments in (
        ("report", f"{tmp_path}/zero.json"),
        ("ask", "And then?", "--after", f"{tmp_path}/zero.json"),
        ("import-log", f"{tmp_path}/zero.jsonl"),
        ("evaluate", "--set", f"{tmp_path}/zero.jsonl"),
        ("evaluate", "--set", "sample", "--preset", f"{tmp_path}/zero.toml"),
    ):
        assert main(list(arguments)) in (1, 2), arguments
        assert "it has more than" in capsys.readouterr().err, arguments

"""`python -m crag_core import-log`: a log becomes a set, and says at which stage its questions went wrong."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from crag_core.__main__ import main
from crag_core.app import workbench
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from tests.conftest import REPOSITORY
from tests.word_embedder import WordEmbedder

Output = pytest.CaptureFixture[str]

HOLDS = "The ferry to Vennick leaves at ten in winter."
OTHER = "Tickets are sold in the harbour office on weekdays."


def rows(truth: bool = True) -> str:
    asked = {"frage": "When does the ferry to Vennick leave in winter?", "answer": "At ten."}
    one = asked | {"contexts": [OTHER, HOLDS]} | ({"reference": "at ten"} if truth else {})
    other = one | {"contexts": [OTHER], "answer": "At six."}
    return "".join(f"{json.dumps(row)}\n" for row in (one, other, {"frage": "No chunks"}))


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CRAG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    file = tmp_path / "winter.jsonl"
    file.write_text(rows(), "utf-8")
    return file


def test_a_preview_shows_the_mapping_and_keeps_nothing(log: Path, capsys: Output) -> None:
    assert main(["import-log", str(log), "--map", "question=frage", "--preview"]) == 0
    shown = capsys.readouterr()
    assert "Table: a record a row: 2 records, 3 chunks, 1 row refused" in shown.out
    assert "question                    frage" in shown.out and "right: at ten" in shown.out
    assert "row 3 refused: Expected the chunks" in shown.err
    assert Workbench(Config(home=log.parent / "home")).experiments.log_names() == ()


def test_the_example_is_read_as_a_whole(log: Path, capsys: Output) -> None:
    assert main(["import-log", str(REPOSITORY / "examples" / "retrieval-log.jsonl"), "--preview"]) == 0
    assert "Table: a record a row: 12 records, 24 chunks\n" in capsys.readouterr().out


def test_a_log_becomes_a_set_that_evaluate_and_compare_take_without_an_index(log: Path, capsys: Output) -> None:
    assert main(["import-log", str(log), "--map", "question=frage", "--name", "winter"]) == 0
    shown = capsys.readouterr().out
    assert "kept as the log 'winter': 2 records: 2 labelled, 0 without a label" in shown
    assert "labelled set 'winter': 1 answered, 1 not answered" in shown
    assert main(["evaluate", "--set", "winter", "--evaluator", "heuristic"]) == 0
    assert "winter: 2 questions" in capsys.readouterr().out
    assert main(["compare", "--set", "winter", "--with", "plain", "--with", "paper,evaluator=heuristic"]) == 0
    assert "winter: 2 questions" in capsys.readouterr().out


def test_the_stages_are_printed_and_written(log: Path, capsys: Output) -> None:
    out = log.parent / "stages.csv"
    command = ["import-log", str(log), "--map", "question=frage", "--stages", "--csv", str(out)]
    assert main([*command, "--policy", "paper", "--evaluator", "heuristic", "--lower", "0", "--upper", "0"]) == 0
    shown = capsys.readouterr().out
    assert "not retrieved                      1   50.0%  1 wrong" in shown
    assert "no fault found                     1   50.0%" in shown and "doubtful at most" not in shown
    written = out.read_text("utf-8").splitlines()
    assert written[0].startswith("record,row,question,stage,verdict,route,reason") and len(written) == 3


def test_without_right_answers_records_are_doubtful_at_most(log: Path, capsys: Output) -> None:
    log.write_text(rows(truth=False), "utf-8")
    command = ["import-log", str(log), "--map", "question=frage", "--stages", "--evaluator", "heuristic"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "doubtful at most" in shown and "wrong" not in shown and "0 labelled, 2 without a label" in shown


def test_standard_input_is_read(log: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    stream = io.TextIOWrapper(io.BytesIO(rows().replace("frage", "question").encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert main(["import-log", "-", "--name", "piped"]) == 0
    assert "kept as the log 'piped'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        ([], 1, "Expected a column with the question"),
        (["--map", "frage"], 2, "FIELD=COLUMN"),
        (["--map", "qestion=frage"], 2, "Unknown field"),
        (["--csv", "x.csv"], 2, "--csv goes with --stages"),
        (["--shape", "langsmith"], 1, "run_type"),
    ],
)
def test_wrong_use_is_told_and_nothing_is_kept(
    more: list[str], code: int, told: str, log: Path, capsys: Output
) -> None:
    assert main(["import-log", str(log), *more]) == code
    assert told in capsys.readouterr().err
    assert not (log.parent / "home" / "crag.db").exists()


def test_a_file_that_is_not_there_is_wrong_use(log: Path, capsys: Output) -> None:
    assert main(["import-log", str(log.parent / "no.jsonl")]) == 2
    assert "There is no file" in capsys.readouterr().err

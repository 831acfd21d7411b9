"""`python -m crag_core report`: from the record of a run to a file that can be sent, or to words on what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from crag_core.__main__ import main
from tests.report.pages import Page, recorded

Output = pytest.CaptureFixture[str]


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    path.write_text(recorded().to_json(), "utf-8")
    return path


def page_in(path: Path) -> Page:
    return Page(path.read_text("utf-8"))


def test_the_report_lies_beside_the_run_unless_another_name_is_given(run_file: Path, capsys: Output) -> None:
    assert main(["report", str(run_file)]) == 0
    beside = run_file.with_suffix(".html")
    assert page_in(beside).told("#verdict h2") == "Retrieval: CORRECT"
    assert capsys.readouterr().out.startswith(f"{beside}: {beside.stat().st_size / 1000:.0f} kB")

    other = run_file.with_name("other.htm")
    assert main(["report", str(run_file), "-o", str(other)]) == 0
    assert other.read_bytes() == beside.read_bytes()


def test_other_thresholds_and_policies_can_be_asked_for(run_file: Path) -> None:
    html = run_file.with_suffix(".html")
    assert main(["report", str(run_file), "--upper", "0.95", "--cutoff", "0.85"]) == 0
    told = page_in(html).all_told(".changed li")
    assert told[:2] == ["Upper threshold 0.95 instead of 0.60.", "Sentence cut-off 0.85 instead of 0.30."]

    assert main(["report", str(run_file), "--policy", "worst-chunk", "--preset", "conservative"]) == 0
    told = page_in(html).all_told(".changed li")
    assert told[0] == "Policy Worst chunk instead of Paper." and "Upper threshold 0.80 instead of 0.60." in told

    assert main(["report", str(run_file), "--policy", "worst-chunk"]) == 0
    told = page_in(html).all_told(".changed li")
    assert "Lower threshold 0.20 instead of 0.40." in told, (
        "the thresholds that the evaluator of the run brings with it"
    )


@pytest.mark.parametrize(
    ("code", "arguments", "words"),
    [
        (2, ["--policy", "papre"], "Unknown policy 'papre'. Did you mean 'paper'?"),
        (2, ["--policy", "worst-chunk", "--preset", "bold"], "Unknown preset 'bold' of policy 'worst-chunk'."),
        (1, ["-o", "no/such/folder/x.html"], "no/such/folder/x.html: the report cannot be written there: No such file"),
    ],
)
def test_what_cannot_be_done_is_named_with_its_exit_code(
    run_file: Path, capsys: Output, code: int, arguments: list[str], words: str
) -> None:
    assert main(["report", str(run_file), *arguments]) == code
    assert words in capsys.readouterr().err
    assert list(run_file.parent.glob("*.html")) == []


def test_a_report_never_replaces_its_run(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "run.html"
    path.write_text(recorded().to_json(), "utf-8")
    assert main(["report", str(path)]) == 1
    assert "the report would replace the run. Name another file with --output." in capsys.readouterr().err
    assert path.read_text("utf-8") == recorded().to_json()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"# README\n", "not valid JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "expected a recorded run (JSON), found no text."),
        (b"\xff\xfe\x00", "expected a recorded run (JSON), found no text."),
        (b"[]", "This is not a recorded run: it has no schema."),
        (b'{"schema": 99}', "This run has schema 99, expected one of"),
        (b'{"schema": 2, "id": 7}', "run.id: expected a valid string, found int 7."),
    ],
)
def test_what_is_no_run_is_said_with_what_to_do(tmp_path: Path, capsys: Output, content: bytes, words: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    assert main(["report", str(path)]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: {path}: ") and words in told
    assert "Export it again" in told or "python -m crag_core ask" in told


@pytest.mark.parametrize("arguments", [[], ["run.json", "--upper", "2"], ["run.json", "--bogus"]])
def test_wrong_use_is_exit_code_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", *arguments])
    assert ended.value.code == 2

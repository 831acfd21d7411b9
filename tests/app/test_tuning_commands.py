"""`python -m crag_core evaluate` and `tune`, on the whole way, with exit codes for somebody's CI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crag_core.__main__ import main
from crag_core.app import workbench
from crag_core.app.cli.tune import NOT_KEPT, objective
from crag_core.app.workbench import Workbench, build_pipeline
from crag_core.base.errors import EmbeddingUnavailable, WrongUse
from crag_core.evaluators.embedding import EmbeddingEvaluator
from crag_core.experiments.thresholds.objective import Costs, Objective
from crag_core.experiments.thresholds.preset import parse_preset
from tests.word_embedder import WordEmbedder

Output = pytest.CaptureFixture[str]

PLACES = ("Vennick", "Torrin", "Maldsey", "Orrin", "Kelby", "Saltry", "Dunmore", "Harrow", "Elsay", "Brend")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CRAG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    return tmp_path


@pytest.fixture
def labelled(home: Path) -> Path:
    """Ten documents, ten questions that they answer and twenty that they do not."""
    texts = [f"The ferry to {place} leaves at {hour} in the morning." for hour, place in enumerate(PLACES, 1)]
    for place, text in zip(PLACES, texts, strict=True):
        (home / f"{place}.txt").write_text(text, "utf-8")
    assert main(["ingest", *(str(home / f"{place}.txt") for place in PLACES)]) == 0
    rows = [f"When does the ferry to {place} leave in the morning?,correct" for place in PLACES]
    rows += [f"Who bakes the bread of {name}?,unanswerable" for name in "abcdefghijklmnopqrst"]
    file = home / "questions.csv"
    file.write_text("\n".join(["question,expected", *rows]), "utf-8")
    return file


def test_evaluate_tells_rates_and_table(labelled: Path, capsys: Output) -> None:
    capsys.readouterr()
    assert main(["evaluate", "--set", str(labelled), "--evaluator", "embedding"]) == 0
    shown = capsys.readouterr()
    assert "questions: 30 questions, policy two-signal, evaluator embedding" in shown.out
    assert "confidently wrong" in shown.out and "UNANSWERABLE" in shown.out and "AMBIGUOUS" in shown.out
    assert "graded 30 of 30" in shown.err


def test_a_set_is_graded_in_the_collection_that_its_labels_speak_of(labelled: Path, home: Path, capsys: Output) -> None:
    (home / "quay.txt").write_text("The quay of Orrin is open from 6 to 22.", "utf-8")
    assert main(["ingest", "--collection", "quays", str(home / "quay.txt")]) == 0
    of_quays = home / "quays.csv"
    rows = [row + (",quays" if place else ",collection") for place, row in enumerate(labelled.read_text().splitlines())]
    of_quays.write_text("\n".join(rows), "utf-8")
    capsys.readouterr()
    assert main(["evaluate", "--set", str(of_quays), "--evaluator", "embedding", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["conditions"]["corpus"] == Workbench().store.fingerprint("quays")
    assert "is searched" not in shown.err
    assert main(["evaluate", "--set", str(of_quays), "--evaluator", "embedding", "--collection", "main"]) == 0
    assert "30 are of the collection “quays”, and the collection “main” is searched" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limit", "code", "told"),
    [
        (("--max-confidently-wrong", "1"), 0, ""),
        (
            ("--min-right", "1", "--lower", "0", "--upper", "0"),
            NOT_KEPT,
            "right is 33.3%, at least 100.0% was asked for",
        ),
        (("--max-confidently-wrong", "0.5", "--lower", "0", "--upper", "0"), NOT_KEPT, "confidently wrong is 100.0%"),
    ],
)
def test_a_limit_that_is_not_kept_is_an_exit_code(
    labelled: Path, capsys: Output, limit: tuple[str, ...], code: int, told: str
) -> None:
    assert main(["evaluate", "--set", str(labelled), "--evaluator", "embedding", *limit]) == code
    assert told in capsys.readouterr().err


def test_tune_writes_a_preset_that_everything_reads(labelled: Path, home: Path, capsys: Output) -> None:
    out = home / "tuned.toml"
    arguments = ["tune", "--set", str(labelled), "--policy", "paper", "--evaluator", "embedding"]
    assert main([*arguments, "--objective", "wrong=10,web=1", "--out", str(out), "--save", "mine"]) == 0
    shown = capsys.readouterr().out
    assert "chosen on 15 questions" in shown and "on 15 other questions" in shown and "shipped" in shown
    preset = parse_preset(out.read_text("utf-8"), "mine")
    assert preset.policy == "paper" and preset.conditions.evaluator == "embedding" and preset.questions == 30
    assert Workbench().experiments.load_preset("mine") == preset

    assert main(["ask", "When does the ferry to Orrin leave?", "--preset", "mine", "--policy", "paper"]) == 0
    assert main(["ask", "When does the ferry to Orrin leave?", "--preset", str(out), "--policy", "paper"]) == 0
    assert main(["evaluate", "--set", str(labelled), "--preset", "mine"]) == 0
    assert f"lower {preset.lower:.2f}, upper {preset.upper:.2f}" in capsys.readouterr().out
    pipeline = build_pipeline(preset="mine")
    assert pipeline.settings.policy.thresholds == (preset.lower, preset.upper, preset.cutoff)
    assert pipeline.settings.evaluator.name == "embedding"
    with pytest.raises(WrongUse, match="chosen for the evaluator"):
        build_pipeline(preset="mine", evaluator="heuristic")
    with pytest.raises(WrongUse, match="chosen for the policy"):
        build_pipeline(preset="mine", policy="signals")


def test_too_few_questions_for_a_guarantee_are_an_exit_code(labelled: Path, capsys: Output) -> None:
    arguments = ["--set", str(labelled), "--evaluator", "embedding", "--objective", "confidently wrong <= 5%"]
    assert main(["tune", *arguments, "--confidence", "0.95"]) == NOT_KEPT
    assert "at least 49 more are needed" in capsys.readouterr().err


def test_thresholds_that_cannot_be_chosen_are_no_broken_limit_where_none_was_asked_for(
    labelled: Path, tmp_path: Path, capsys: Output
) -> None:
    few = tmp_path / "few.csv"
    few.write_text("".join(labelled.read_text("utf-8").splitlines(keepends=True)[:13]), "utf-8")
    arguments = ["--set", str(few), "--evaluator", "embedding"]
    assert main(["tune", *arguments]) == 1
    assert "error: Thresholds cannot be chosen from 12 questions" in capsys.readouterr().err
    assert main(["tune", *arguments, "--objective", "confidently wrong <= 5%"]) == NOT_KEPT


def test_questions_that_could_not_be_graded_are_no_result(
    labelled: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = EmbeddingEvaluator.grade

    def away_for_one(self: EmbeddingEvaluator, question: str, *more: object) -> object:
        if "Orrin" in question:
            raise EmbeddingUnavailable("The model is away.")
        return whole(self, question, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(EmbeddingEvaluator, "grade", away_for_one)
    arguments = ["evaluate", "--set", str(labelled), "--evaluator", "embedding"]
    assert main(arguments) == 1
    assert "1 of 30 questions could not be graded" in capsys.readouterr().err
    monkeypatch.setattr(EmbeddingEvaluator, "grade", whole)
    assert main(arguments) == 0


def test_confidence_goes_with_a_limit(labelled: Path, capsys: Output) -> None:
    assert main(["tune", "--set", str(labelled), "--confidence", "0.95"]) == 2
    assert "goes with a limit" in capsys.readouterr().err


def test_rows_that_cannot_be_used_are_named_and_nothing_is_graded(home: Path, capsys: Output) -> None:
    file = home / "bad.csv"
    file.write_text("question,expected\nWhy?,perhaps\n,correct\n", "utf-8")
    assert main(["evaluate", "--set", str(file)]) == 1
    told = capsys.readouterr().err
    assert "2 rows that cannot be used" in told and "Row 2:" in told and "Row 3:" in told and "graded" not in told


def test_a_file_that_is_no_text_is_refused_as_a_whole(home: Path, capsys: Output) -> None:
    file = home / "bad.xlsx"
    file.write_bytes(b"PK\x03\x04")
    assert main(["evaluate", "--set", str(file)]) == 1
    told = capsys.readouterr().err
    assert "This is not a text file." in told and "row" not in told.lower().replace("workbook", "")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("wrong=5, web=0.5", Objective(Costs(wrong=5, web=0.5))),
        ("confidently wrong <= 5%", Objective(most_wrong=0.05)),
        ("confidently_wrong at most 0.1", Objective(most_wrong=0.1)),
        ("", Objective()),
    ],
)
def test_objectives_in_words(text: str, wanted: Objective) -> None:
    assert objective(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "cost=5",
        "wrong",
        "wrong=x",
        "wrong=-1",
        "confidently wrong <= 100%",
        "wrong=nan",
        "confidently wrong <= 5%, web <= 60%",
    ],
)
def test_an_objective_that_means_nothing_is_wrong_use(home: Path, capsys: Output, text: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["tune", "--set", "mine", "--objective", text])
    told = capsys.readouterr().err
    assert ended.value.code == 2 and ("expected" in told or "must be a number from 0" in told)

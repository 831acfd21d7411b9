"""`python -m crag_core compare`, on the whole way: a set with its own documents, and a table of questions."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crag_core.__main__ import main
from crag_core.app import workbench as build
from crag_core.app.cli import compare as compare_commands
from crag_core.app.cli.compare import drawn
from crag_core.base.errors import EmbeddingUnavailable
from crag_core.evaluators.embedding import EmbeddingEvaluator
from crag_core.experiments.comparison.metrics import Unit
from crag_core.experiments.comparison.run_configurations import QUESTION
from crag_core.experiments.comparison.table import figure
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.retrieval.hybrid import HybridRetriever
from tests.judge import judging
from tests.report.pages import Page
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.word_embedder import WordEmbedder

Output = pytest.CaptureFixture[str]

PLACES = ("Vennick", "Torrin", "Maldsey", "Orrin", "Kelby", "Saltry", "Dunmore", "Harrow", "Elsay", "Brend")
JUDGED = "two-signal,evaluator=embedding,name=judged"
"""Grades without loading a model."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CRAG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    return tmp_path


@pytest.fixture
def bridges(home: Path) -> Path:
    """Six of ten places have bridges that a document counts."""
    (home / "documents").mkdir()
    rows = ["question,label,answers,document"]
    for n, place in enumerate(PLACES):
        (home / "documents" / f"d{n}.md").write_text(
            f"# {place}\n\n{place} has {n} bridges. It rains there.\n", "utf-8"
        )
        rows.append(f"How many bridges has {place}?,{'answered' if n < 6 else 'not answered'},{n},d{n}.md")
    assert main(["ingest", str(home / "documents")]) == 0
    file = home / "bridges.csv"
    file.write_text("\n".join(rows), "utf-8")
    return file


@pytest.fixture
def table(home: Path) -> Path:
    """Four questions that documents of the user's own answer, and four that they do not."""
    for hour, name in enumerate(PLACES[:4], 1):
        (home / f"{name}.txt").write_text(f"The ferry to {name} leaves at {hour} in the morning.", "utf-8")
    assert main(["ingest", *(str(home / f"{name}.txt") for name in PLACES[:4])]) == 0
    rows = [f"When does the ferry to {place} leave?,correct" for place in PLACES[:4]]
    rows += [f"Who bakes the bread of {name}?,incorrect" for name in "abcd"]
    file = home / "my ferries.csv"
    file.write_text("\n".join(["question,expected", *rows]), "utf-8")
    return file


def compare(*arguments: object, wanted: Sequence[str] = ("plain", JUDGED)) -> int:
    named = [word for one in wanted for word in ("--with", one)]
    return main(["compare", *map(str, arguments), *named])


def refused(capsys: Output, *arguments: object, wanted: Sequence[str] = ("plain", JUDGED), code: int = 2) -> str:
    capsys.readouterr()
    assert compare(*arguments, wanted=wanted) == code
    shown = capsys.readouterr()
    assert shown.out == "" and "Traceback" not in shown.err
    return shown.err


def count_retrievals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []
    whole = HybridRetriever.retrieve

    def counted(self: HybridRetriever, question: str, *more: Any, **options: Any) -> object:
        if question != QUESTION:  # of warming up
            asked.append(question)
        return whole(self, question, *more, **options)

    monkeypatch.setattr(HybridRetriever, "retrieve", counted)
    return asked


# --- what comes out -------------------------------------------------------------------------------------------------


def test_text_csv_json_and_page_have_the_same_figures(bridges: Path, home: Path, capsys: Output) -> None:
    ends = ("csv", "json", "html")
    files = [word for end in ends for word in (f"--{end}", home / f"out.{end}")]
    assert compare("--set", bridges, *files) == 0
    shown = capsys.readouterr()
    text = shown.out
    assert all(f"written to {home / f'out.{end}'}" in text for end in ends)
    assert (
        "bridges: 10 questions, intervals of 95 %; the second lines tell what is certainly gained over plain\n" in text
    )
    assert re.search(r"^ +plain +judged$", text, re.MULTILINE)
    assert "run 10 of 10" in shown.err
    data = json.loads((home / "out.json").read_text("utf-8"))
    assert (data["questions"], data["left_out"], data["configurations"]) == (10, 0, ["plain", "judged"])
    with (home / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(data["measures"]) > 20
    page = Page((home / "out.html").read_text("utf-8"))
    for measure in data["measures"]:
        line = next(line for line in text.splitlines() if line.startswith(measure["title"][:43]))
        for name in ("plain", "judged"):
            cell = measure["cells"][name]
            row = next(one for one in rows if (one["measure"], one["configuration"]) == (measure["name"], name))
            found, gain = cell["found"], cell["gain"]
            assert int(row["questions"]) == cell["counted"]
            assert [row["value"], row["low"], row["high"]] == (
                [str(found[end]) for end in ("value", "low", "high")] if found else ["", "", ""]
            )
            assert row["gain"] == (str(gain["value"]) if gain else "")
            assert found is None or figure(found["value"], Unit(measure["unit"])) in line
    assert data["questions"] == 10
    assert sum(sum(counts.values()) for counts in data["confusion"]["judged"].values()) == 10
    assert "2 configurations on 10 questions" in page.told("#part-1") and str(home) not in page.html
    assert "evaluator Embedding similarity; lower" in page.all_told("#part-1 .facts dd")[1]
    again = (
        "python -m crag_core compare --set bridges.csv --with plain --with two-signal,evaluator=embedding,name=judged"
    )
    assert page.told("pre") == f"{again} --html out.html"


def test_without_a_word_plain_rag_and_the_default_policy_are_compared(table: Path, capsys: Output) -> None:
    assert main(["compare", "--set", str(table), "--limit", "2"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^ +plain +two-signal$", shown, re.MULTILINE) and "my ferries: 2 questions" in shown


# --- what is not done twice -----------------------------------------------------------------------------------------


def test_kept_grades_are_not_taken_since_it_is_measured_what_grading_costs(table: Path, home: Path) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        written = f"model=ollama/{MODEL}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OLLAMA_HOST", server.url)
            question = "When does the ferry to Orrin leave?"
            assert main(["ask", question, "--policy", "worst-chunk", "--model", f"ollama/{MODEL}"]) == 0
            one = home / "one.csv"
            one.write_text(f"question,expected\n{question},correct\n", "utf-8")
            wanted = [f"plain,{written}", f"worst-chunk,{written}"]
            assert compare("--set", one, "--json", home / "out.json", wanted=wanted) == 0
    measures = {one["name"]: one["cells"] for one in json.loads((home / "out.json").read_text("utf-8"))["measures"]}
    calls = {name: cell["found"]["value"] for name, cell in measures["calls"].items()}
    assert calls[wanted[0]] == 1 and calls[wanted[1]] >= 1 + 4


# --- which questions ------------------------------------------------------------------------------------------------


def questions(count: int) -> tuple[LabelledQuestion, ...]:
    return tuple(LabelledQuestion(f"Question {n}?", Expected.CORRECT) for n in range(count))


def test_a_limit_draws_the_same_ones_every_time_and_more_with_a_higher_limit() -> None:
    every = questions(100)
    drawings = [drawn(every, limit) for limit in (1, 5, 30, 99)]
    assert [len(one) for one in drawings] == [1, 5, 30, 99] and drawings[2] == drawn(every, 30)
    for fewer, more in pairwise(drawings):
        assert set(fewer) < set(more)
        assert list(more) == sorted(more, key=every.index), "in the order of the set"
    assert drawings[2] != every[:30], "not the first ones, which may be alike"


@pytest.mark.parametrize("limit", ["0", "x"])
def test_a_limit_of_nothing_is_wrong_use(limit: str, home: Path, capsys: Output) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["compare", "--set", "mine", f"--limit={limit}"])
    assert ended.value.code == 2 and "expected a number from 1" in capsys.readouterr().err


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (["plain", "paper,uper=0.8"], "unknown key 'uper'. Did you mean upper?"),
        (["paper,lower=0.9,upper=0.1"], "lower must not exceed upper"),
        (["paper,evaluator=llm"], "The evaluator 'llm' needs a language model."),
        (["paper,model=mine"], "Unknown language model 'mine'."),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_before_anything_is_run(
    wanted: list[str], told: str, table: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_retrievals(monkeypatch)
    assert told in refused(capsys, "--set", table, wanted=wanted)
    assert asked == []


def test_a_file_that_cannot_be_written_is_told_and_what_was_run_is_kept(
    table: Path, home: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "cannot be written" in refused(capsys, "--set", table, "--csv", home / "no such folder" / "out", code=1)
    asked = count_retrievals(monkeypatch)
    assert compare("--set", table, "--csv", home / "out") == 0 and asked == []


# --- faults and stops -----------------------------------------------------------------------------------------------


def away_for(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = EmbeddingEvaluator.grade

    def grade(self: EmbeddingEvaluator, question: str, *more: Any) -> object:
        if at in question:
            raise EmbeddingUnavailable("The model is away.", hint="Bring it back.")
        return whole(self, question, *more)

    monkeypatch.setattr(EmbeddingEvaluator, "grade", grade)


def test_questions_that_could_not_be_run_are_left_out_and_told(
    table: Path, home: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        away_for("Orrin", patch)
        assert compare("--set", table, "--json", home / "out.json") == 1
    shown = capsys.readouterr()
    assert "1 of 8 questions could not be run, and are left out." in shown.err
    assert "my ferries: 7 questions" in shown.out, "what could be run is told all the same"
    data = json.loads((home / "out.json").read_text("utf-8"))
    assert (data["questions"], data["left_out"]) == (7, 1)
    asked = count_retrievals(monkeypatch)
    assert compare("--set", table) == 0 and asked == ["When does the ferry to Orrin leave?"]


def test_ctrl_c_ends_it_at_once_and_keeps_what_was_run(
    table: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_retrievals(monkeypatch)
    with monkeypatch.context() as patch:

        def interrupt(scoring: object) -> None:
            if getattr(scoring, "done", 0) == 2:
                raise KeyboardInterrupt

        patch.setattr(compare_commands, "Progress", lambda done: interrupt)
        with pytest.raises(SystemExit) as ended:
            compare("--set", table)
    assert ended.value.code == 130
    shown = capsys.readouterr()
    assert "stopped; what was run is kept, and the same command continues from there" in shown.err
    assert "intervals" not in shown.out
    assert 4 <= len(asked) <= 8
    assert compare("--set", table) == 0
    assert 16 <= len(asked) <= 20, "at most the two questions that were under way are run anew"

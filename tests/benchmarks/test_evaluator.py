"""The benchmark of evaluators from end to end, on made-up sets and with evaluators that are told what to say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import contenders, evaluator
from benchmarks.nearest import RememberingEmbedder
from benchmarks.sets import Question, Task
from crag_core.base.protocols import Cancel
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage
from tests.benchmarks.test_sets import FERRY, ask, write_set
from tests.word_embedder import WordEmbedder

Output = pytest.CaptureFixture[str]


class Oracle:
    """Knows that a passage with "ferry" answers every question, and one with "Vennick" is on topic."""

    def __init__(self, name: str = "oracle", has_parts: bool = False) -> None:
        self.card = EvaluatorCard(name, name, "0 to 1", 0.3, 0.6, 0.3, False, "nothing")
        self.calls: list[tuple[str, tuple[Passage, ...]]] = []
        self._has_parts = has_parts

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        self.calls.append((question, tuple(passages)))
        return tuple(self._grade(passage) for passage in passages)

    def _grade(self, passage: Passage) -> Grade:
        if "unreadable" in passage.text:
            return Grade(passage.id, None, cause="another script")
        answering, topical = float("ferry" in passage.text), float("Vennick" in passage.text)
        parts = (("answering", answering), ("topical", topical)) if self._has_parts else ()
        return Grade(passage.id, (answering + topical) / 2, parts=parts)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Shared data with two small sets, and the embedder of words in place of the model."""
    folder = tmp_path / "data"
    queries = [ask(n, f"When does ferry {n} leave?", answers=["at nine"]) for n in range(10)]
    judged = [(f"q{n}", "f" if n % 2 else "b", 2 if n % 2 else 0) for n in range(10)]
    write_set(folder / "dev" / "sets" / "squad2_dev", queries, qrels=judged)
    routes = ("correct", "ambiguous_or_incorrect", "incorrect")
    routed = [ask(n, f"Question {n}", route=routes[n % 3]) for n in range(12)]
    write_set(folder / "dev" / "sets" / "route_dev", routed)
    monkeypatch.setattr(evaluator, "DATA", folder)
    monkeypatch.setattr(evaluator, "HuggingFaceEmbedder", WordEmbedder)
    return folder


def use(monkeypatch: pytest.MonkeyPatch, made: Oracle) -> Oracle:
    monkeypatch.setattr(contenders, "build", lambda name, embedder, folder: made)
    return made


def run(*arguments: str) -> None:
    evaluator.main([*arguments, "--no-cost"])


# --- from end to end ------------------------------------------------------------------------------------------------


def test_a_small_set_is_measured_and_written_as_json(
    data: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Oracle("embedding"))
    file = tmp_path / "report.json"
    run("--sets", "squad2_dev", "--evaluators", "embedding", "--limit", "5", "--json", str(file))
    printed = capsys.readouterr()
    assert "## squad2_dev: 5 questions, drawn from 10" in printed.out
    assert "| answered from adversarial paragraph | " in printed.out and "1.000 (" in printed.out
    assert "embedding graded 5 passages" in printed.err and "graded" not in printed.out
    report = json.loads(file.read_text("utf-8"))["sets"]["squad2_dev"]
    [row] = report["apart"].values()
    assert (report["questions"], report["of"], row["embedding"]["value"]) == (5, 10, 1.0)
    assert report["strips"]["embedding"]["answers kept"]["value"] == 1.0


def test_every_evaluator_without_a_model_runs(data: Path, capsys: Output) -> None:
    run("--evaluators", "heuristic,signals,embedding", "--limit", "5", "--sets", "squad2_dev,route_dev,selqa_dev")
    printed = capsys.readouterr().out
    assert "## selqa_dev\n\nskipped: this set is not in the shared data" in printed
    for name in ("heuristic", "signals", "embedding"):
        assert f"| {name}, policy paper as shipped" in printed


# --- grading --------------------------------------------------------------------------------------------------------


def task(*passages: str, **fields: Any) -> Task:
    found = tuple(Passage(f"p{n}", text, "s") for n, text in enumerate(passages))
    return Task((Question("When?", found, ("",) * len(found)),), **fields)


def test_passages_carry_a_cosine_and_strips_do_not() -> None:
    embedder = RememberingEmbedder(WordEmbedder())
    oracle = Oracle()
    contenders.grade(oracle, task(FERRY), embedder)
    contenders.grade(oracle, task(FERRY, is_strips=True), embedder)
    asked, strips = (passages for _, passages in oracle.calls)
    cosine = asked[0].score("cosine")
    assert cosine is not None and -1 <= cosine <= 1 and strips[0].score("cosine") is None


def test_the_best_passage_speaks_for_the_question_and_ungraded_ones_do_not() -> None:
    embedder = RememberingEmbedder(WordEmbedder())
    graded = contenders.grade(Oracle(has_parts=True), task("unreadable", "ferry", "Vennick"), embedder)
    assert {name: best.tolist() for name, best in graded.best.items()} == {
        "oracle": [0.5],
        "answering": [1.0],
        "topical": [1.0],
    }
    assert contenders.left_out({"oracle": graded}) == "Passages that could not be graded, left out: oracle 1."
    nothing = contenders.grade(Oracle(), task("unreadable"), embedder)
    assert str(nothing.best["oracle"][0]) == "nan"

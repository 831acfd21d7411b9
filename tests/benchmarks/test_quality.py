"""The benchmarks of quality, on few questions: what is held out, what is run, and what the tables tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import quality
from benchmarks.held_out import route_set
from benchmarks.public_sets import read_set
from benchmarks.quality import answers_of, counts_of
from crag_core.app import workbench
from crag_core.base.types.decisions import Action
from crag_core.evaluators.policies import load_policies
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.comparison.table import Table
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from tests.benchmarks.test_sets import write_set
from tests.word_embedder import WordEmbedder

Output = pytest.CaptureFixture[str]
TOWNS = ("Vennick", "Orrin", "Halm", "Tressa", "Quill")


def write_data(folder: Path) -> Path:
    """Five towns with two documents each, a question for every document, one nobody answers, and one off the corpus."""
    corpus = [
        {"doc_id": f"{town}-{n}", "title": town, "text": f"The ferry {n} of {town} leaves at {n} past nine."}
        for town in TOWNS
        for n in (1, 2)
    ]
    queries: list[dict[str, Any]] = [
        {
            "query_id": f"q-{row['doc_id']}",
            "query": f"When does the ferry {row['doc_id'][-1]} of {row['title']} leave?",
            "answers": [f"{row['doc_id'][-1]} past nine"],
            "answerable": True,
            "route": "correct",
        }
        for row in corpus
    ]
    queries.append({"query_id": "q-near", "query": "Who steers?", "answers": [], "route": "ambiguous_or_incorrect"})
    queries.append({"query_id": "q-far", "query": "Who painted it?", "answers": ["Orla"], "route": "incorrect"})
    judged = [(f"q-{row['doc_id']}", row["doc_id"], 2) for row in corpus] + [("q-near", "Halm-1", 0)]
    write_set(folder / "dev" / "sets" / "route_dev", queries, corpus=corpus, qrels=judged)
    write_set(folder / "dev" / "sets" / "2wiki_corpus", [], corpus=[{"doc_id": "w", "title": "W", "text": "Dough."}])
    return folder


# --- what is held out -----------------------------------------------------------------------------------------------


def test_all_documents_of_a_title_go_to_the_web_and_their_questions_are_not_answered(tmp_path: Path) -> None:
    held = route_set(write_data(tmp_path) / "dev", tmp_path / "made")
    found = read_set(held.folder)
    assert len(found.documents) == 8, "a fifth of five titles, with both of its documents"
    away = [one for one in found.labelled.questions if one.expected is Expected.UNANSWERABLE]
    answered = [one for one in found.labelled.questions if one.expected is Expected.CORRECT]
    assert len(answered) == 8 and all(one.document in dict(found.documents) for one in answered)
    assert [len(one.answers) for one in away] == [1, 1, 0], "with their answers, which the web may bring; then q-near"
    assert [one.note for one in found.labelled.questions if one.expected is Expected.INCORRECT] == ["q-far"]
    assert held.web is not None
    pages = [json.loads(line) for line in held.web.read_text("utf-8").splitlines()]
    assert len(pages) == 3 and {page["title"] for page in pages[:2]} <= set(TOWNS) and pages[2]["title"] == "W"
    assert not {page["text"] for page in pages} & {text.split("\n\n", 1)[1].strip() for _, text in found.documents}


# --- what the tables tell -------------------------------------------------------------------------------------------


ASKED = (
    LabelledQuestion("A?", Expected.CORRECT, ("nine",)),
    LabelledQuestion("B?", Expected.UNANSWERABLE, ("ten",)),
    LabelledQuestion("C?", Expected.UNANSWERABLE),
    LabelledQuestion("D?", Expected.INCORRECT, ("Orla",)),
)


def results(*answered: tuple[bool, float]) -> dict[str, Outcome]:
    return {
        one.key: Outcome(one.key, "run", Action.CORRECT, is_answered=said, contains=right if one.answers else None)
        for one, (said, right) in zip(ASKED, answered, strict=True)
    }


PLAIN = results((True, 1.0), (True, 0.0), (True, 0.0), (True, 0.0))
CAREFUL = results((True, 1.0), (True, 1.0), (False, 0.0), (True, 0.0))


def test_wrong_answers_are_told_with_how_many_less_they_are() -> None:
    rows = answers_of(Table(ASKED, {"plain": PLAIN, "careful": CAREFUL})).rows
    assert list(rows["plain"])[:2] == ["answered although unanswerable", "less"]
    assert str(rows["plain"]["answered although unanswerable"]).startswith("100%") and rows["plain"]["less"] is None
    assert str(rows["careful"]["answered although unanswerable"]).startswith("33%")
    assert rows["careful"]["less"] == "67%"


def test_what_only_the_web_answers_is_counted_by_itself() -> None:
    table = Table(ASKED, {"plain": PLAIN, "careful": CAREFUL})
    rows = answers_of(table).rows
    assert rows["careful"]["known answer, only in the web"] == "100% (2% to 100%)", "D is answered nowhere"
    assert counts_of(table, 9) == (
        "4 of 9 questions: 1 that the documents answer, 1 that only the web answers, 2 that nothing answers."
    )


# --- as a command ---------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_quality_runs_every_policy_with_the_web_and_without(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    monkeypatch.setattr(quality, "DATA", write_data(tmp_path))
    command = ["--sets", "route_dev", "--home", str(tmp_path / "home"), "--json", str(tmp_path / "report.json")]
    quality.main(command)
    printed = capsys.readouterr().out
    assert "12 questions: 8 that the documents answer, 2 that only the web answers, 2 that nothing answers." in printed
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))["route_dev"]
    policies = list(load_policies()[0])
    assert report["configurations"] == ["plain", *policies, *(f"{name} + web" for name in policies)]
    web = next(row for row in report["measures"] if row["name"] == "web")["cells"]
    assert {web[name]["found"]["value"] for name in ("plain", *policies)} == {0.0}
    assert web["worst-chunk + web"]["found"]["value"] > 0

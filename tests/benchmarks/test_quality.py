"""The benchmarks of quality and peers, on few questions: what is held out, what is run, and what the tables tell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from benchmarks import peers, quality
from benchmarks.any_no import LabelsSayYes, ModelSaysYes, ScoreSaysYes, any_no
from benchmarks.held_out import leaflet_set, route_set
from benchmarks.quality import answers_of, counts_of, kinds_of, ways_of
from crag_core.app import workbench
from crag_core.base.protocols import Cancel, Messages, Reply
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.steps import Usage
from crag_core.decision.decide import decide
from crag_core.evaluators.policies import load_policies
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.comparison.table import Table
from crag_core.experiments.labelled.public_sets import read_set
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from tests.benchmarks.test_sets import write_set
from tests.fakes import FakeEvaluator, FakeModel, passage
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


def read(folder: Path) -> Any:
    return read_set(*((folder / name).read_bytes() for name in ("queries.jsonl", "corpus.jsonl", "qrels.tsv")))


# --- what is held out -----------------------------------------------------------------------------------------------


def test_all_documents_of_a_title_go_to_the_web_and_their_questions_are_not_answered(tmp_path: Path) -> None:
    held = route_set(write_data(tmp_path) / "dev", tmp_path / "made")
    found = read(held.folder)
    assert len(found.documents) == 8, "a fifth of five titles, with both of its documents"
    away = [one for one in found.questions if one.expected is Expected.UNANSWERABLE]
    answered = [one for one in found.questions if one.expected is Expected.CORRECT]
    assert len(answered) == 8 and all(one.document in dict(found.documents) for one in answered)
    assert [len(one.answers) for one in away] == [1, 1, 0], "with their answers, which the web may bring; then q-near"
    assert [one.note for one in found.questions if one.expected is Expected.INCORRECT] == ["q-far"]
    assert held.web is not None
    pages = [json.loads(line) for line in held.web.read_text("utf-8").splitlines()]
    assert len(pages) == 3 and {page["title"] for page in pages[:2]} <= set(TOWNS) and pages[2]["title"] == "W"
    assert not {page["text"] for page in pages} & {text.split("\n\n", 1)[1].strip() for _, text in found.documents}


def test_the_same_documents_are_held_out_every_time(tmp_path: Path) -> None:
    data = write_data(tmp_path) / "dev"
    first, second = (route_set(data, tmp_path / name).folder for name in ("one", "two"))
    assert [path.read_bytes() for path in sorted(first.iterdir())] == [
        path.read_bytes() for path in sorted(second.iterdir())
    ]


def test_leaflets_are_whole_documents(tmp_path: Path) -> None:
    leaflets = tmp_path / "collections" / "health-leaflets"
    leaflets.mkdir(parents=True)
    rows = []
    for n in range(5):
        (leaflets / f"leaflet-{n}.md").write_text(f"# Leaflet {n}\n\nText {n}.\n", "utf-8")
        rows.append({"query_id": f"q{n}", "query": f"What is {n}?", "file": f"health-leaflets/leaflet-{n}.md"})
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "collections" / "health-leaflets.questions.jsonl").write_text(lines, "utf-8")
    held = leaflet_set(tmp_path, tmp_path / "made")
    found = read(held.folder)
    assert held.web is None and len(found.documents) == 4
    assert [one.expected for one in found.questions].count(Expected.UNANSWERABLE) == 1
    for asked in found.questions:
        assert asked.document in dict(found.documents) or asked.expected is Expected.UNANSWERABLE


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
    assert str(rows["careful"]["less"]).startswith("67% (")


def test_what_only_the_web_answers_is_counted_by_itself() -> None:
    table = Table(ASKED, {"plain": PLAIN, "careful": CAREFUL})
    rows = answers_of(table).rows
    assert rows["careful"]["known answer, only in the web"] == "100% (2% to 100%)", "D is answered nowhere"
    assert counts_of(table, 9) == (
        "4 of 9 questions: 1 that the documents answer, 1 that only the web answers, 2 that nothing answers."
    )


def test_wrong_answers_are_told_by_what_their_questions_are_about() -> None:
    rows = kinds_of(Table(ASKED, {"plain": PLAIN, "careful": CAREFUL})).rows
    assert {told: str(cell).split()[0] for told, cell in rows["careful"].items()} == {
        "on the subject": "0%",
        "about something else": "100%",
        "only in the web": "0%",
    }
    assert str(rows["plain"]["only in the web"]).startswith("100%")


def test_plain_rag_has_no_route_to_be_right_about() -> None:
    rows = ways_of(Table(ASKED, {"plain": PLAIN, "careful": CAREFUL})).rows
    assert rows["plain"]["right route"] is None and rows["careful"]["right route"] is not None
    assert rows["careful"]["half within"] == "0.00 s"


# --- the peers' rule ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "action"), [((1, 1), Action.CORRECT), ((1, 0), Action.AMBIGUOUS), ((0, 0), Action.AMBIGUOUS)]
)
def test_a_single_no_goes_to_the_web_beside_what_has_a_yes(said: tuple[int, ...], action: Action) -> None:
    found = tuple(passage(n) for n in range(1, 3))
    grades = tuple(Grade(one.id, float(score)) for one, score in zip(found, said, strict=True))
    policy = any_no()
    assert decide(policy, found, grades).action is action
    assert policy.steps(Action.AMBIGUOUS)["drop"] == 0.5 and "web" not in policy.steps(Action.CORRECT)


class YesNoModel(FakeModel):
    """Says yes to what holds a word."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    def complete_all(
        self, chats: Sequence[Messages], cancel: Cancel, schema: Mapping[str, Any] | None = None
    ) -> list[Reply | Exception]:
        said = ("yes" if self.word in messages[-1][1] else "no" for messages in chats)
        return [Reply(f'{{"relevant": "{one}"}}', Usage(1, 20, 5)) for one in said]


def test_a_model_says_yes_or_no_in_one_call_a_passage() -> None:
    model = YesNoModel("nine")
    grades = ModelSaysYes(model).grade("When?", [passage(1, "It leaves at nine."), passage(2, "Knead it.")], Event())
    assert [one.score for one in grades] == [1.0, 0.0] and sum(one.usage.calls for one in grades) == 2


def test_a_score_says_yes_from_the_threshold_on() -> None:
    scored = FakeEvaluator(lambda one: {"p1": 0.6, "p2": 0.59}[one.id], ModelSaysYes.card)
    grades = ScoreSaysYes(scored, 0.6).grade("When?", [passage(1), passage(2)], Event())
    assert [one.score for one in grades] == [1.0, 0.0]


def test_labels_say_yes_to_what_answers() -> None:
    asked = LabelledQuestion("When?", Expected.CORRECT, ("nine",), "document-1.txt")
    judge = LabelsSayYes([asked])
    assert [one.score for one in judge.grade("When?", [passage(1), passage(2)], Event())] == [1.0, 0.0]
    assert [one.score for one in judge.grade("Who?", [passage(1)], Event())] == [0.0], "nobody labelled it"


# --- as a command ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("benchmark", [quality, peers])
def test_without_shared_data_it_says_so(
    benchmark: Any, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "DATA", tmp_path / "nothing")
    benchmark.main([])
    assert capsys.readouterr().out == "skipped: shared data not found\n"


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


def test_peers_sends_what_the_documents_answer_to_the_web(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    held = route_set(write_data(tmp_path) / "dev", tmp_path / "made")
    found = peers.compare_rule(peers.open_held_out(held, tmp_path / "home"), 6)
    needless = next(row for row in found["measures"] if row["name"] == "needless_web")["cells"]
    assert needless["any no, of 6, by the labels"]["found"]["value"] == 1.0, "one chunk answers, five do not"
    assert "any no, of 2, by the trained evaluator" in capsys.readouterr().out

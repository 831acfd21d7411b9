"""A log as a set without any index: labels from what is right, grades, outcomes and thresholds on its own chunks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crag_core.app import retrieval_logs, workbench
from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.errors import BadRecord, UnknownName
from crag_core.evaluators.policies import find_policy
from crag_core.experiments.batch import score
from crag_core.experiments.comparison.run_configurations import Contender, run_set
from crag_core.experiments.labelled.graded import cases
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet, Origin, UnlabelledQuestion
from crag_core.experiments.labelled.read import read_questions, write_csv, write_questions
from crag_core.experiments.logs.matching import questions_of
from crag_core.experiments.logs.read import read_log
from crag_core.experiments.logs.record import Context, LogRecord, RetrievalLog
from crag_core.experiments.store import LOGS
from crag_core.experiments.thresholds.threshold_board import Board
from tests.fakes import Clock
from tests.word_embedder import WordEmbedder

HOLDS = "The ferry to Vennick leaves at ten in winter."
OTHER = "Tickets are sold in the harbour office on weekdays."
ROWS = [
    {"question": "When does the ferry to Vennick leave in winter?", "contexts": [OTHER, HOLDS], "answer": "At ten.",
     "ground_truth": "at ten"},
    {"question": "When does the ferry to Vennick leave in winter?", "contexts": [OTHER], "answer": "At six.",
     "ground_truth": "at ten"},
    {"question": "Where are tickets sold?", "contexts": [OTHER], "answer": "In the office."},
    {"question": "Is the crane inspected?", "contexts": [OTHER], "ground_truth": "yes"},
    {"question": "Who bakes the bread?", "contexts": [], "ground_truth": "Ada Fenn"},
]  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    return Workbench(Config(home=tmp_path / "home"))


@pytest.fixture
def imported(bench: Workbench) -> retrieval_logs.Imported:
    content = "".join(f"{json.dumps(row)}\n" for row in ROWS).encode()
    return retrieval_logs.keep(read_log(content), "winter log.jsonl", bench)


def test_records_are_labelled_by_what_is_right_and_the_others_wait(imported: retrieval_logs.Imported) -> None:
    assert imported.labelled is not None
    labels = [(one.expected, one.note, one.record) for one in imported.labelled.questions]
    assert labels == [
        (Expected.CORRECT, "chunk 2 holds the right answer", "row 1"),
        (Expected.UNANSWERABLE, "no chunk holds the right answer", "row 2"),
        (Expected.UNANSWERABLE, "no chunk holds the right answer", "row 5"),
    ]
    assert [one.record for one in imported.unlabelled] == ["row 3", "row 4"]
    assert all(one.origin is Origin.LOG and one.log == imported.log.name for one in imported.labelled.questions)
    first, second, _ = imported.labelled.questions
    assert first.question == second.question and first.key != second.key, "other chunks make another question"


def test_a_set_of_a_log_is_the_same_after_it_was_written_and_an_old_set_stays_as_it_was() -> None:
    asked = LabelledQuestion("When?", Expected.CORRECT, ("ten",), log="winter", record="row 1")
    for written in (write_questions([asked]), write_csv([asked])):
        assert read_questions("q", written.encode()).questions == (asked,)
    plain = LabelledQuestion("When?", Expected.CORRECT)
    assert '"log"' not in write_questions([plain]) and "record" not in write_csv([plain])
    assert LabelledSet("a", (plain,)).fingerprint != LabelledSet("a", (asked,)).fingerprint


def test_everything_works_without_an_index(bench: Workbench, imported: retrieval_logs.Imported) -> None:
    assert imported.labelled is not None
    questions, policy = imported.labelled.questions, find_policy("paper", bench.config)
    engine = bench.engine(Choice(policy, "heuristic"), observed=False)
    conditions = bench.conditions(engine, questions)
    book = bench.experiments.scores(conditions)
    done = score(questions, engine, book, Clock(), recorded=bench.recorded(questions))
    assert (done.done, done.failed) == (3, 0) and bench.store.count() == 0
    graded = cases(questions, book.load())
    assert [len(one.scored.passages) for one in graded] == [2, 1, 0]
    assert len(Board(policy, graded, engine.settings.evaluator, writer=False)) == 3
    traces = book.records({one.key for one in questions})
    assert {trace.logged.record for trace in traces.values() if trace.logged} == {"row 1", "row 2", "row 5"}
    assert all(len(trace.strips or ()) for key, trace in traces.items() if trace.passages)  # of every chunk
    outcomes = bench.experiments.outcomes(bench.setup(Choice(policy, "heuristic"), bench.corpus_of(questions, "")))
    run_set(questions, [Contender(engine, outcomes)], Clock(), recorded=bench.recorded(questions))
    assert len(outcomes.load()) == 3


def test_grades_of_a_log_hold_whatever_is_indexed_and_not_for_another_log(
    bench: Workbench, imported: retrieval_logs.Imported
) -> None:
    asked = imported.log.gradable
    before = bench.corpus_of(asked, "")
    bench.store.ingest([("ferries.md", HOLDS.encode())])
    assert bench.corpus_of(asked, "") == before != bench.corpus_of((), "")
    mixed = (*asked, UnlabelledQuestion("Of the index?"))
    assert bench.corpus_of(mixed, "") not in (before, bench.corpus_of((), ""))
    other = RetrievalLog("other", "table", (LogRecord("row 1", 1, "When?", (Context("Else."),)),))
    kept = bench.experiments.keep_log(other)
    assert bench.corpus_of(kept.gradable, "") != before


def test_a_record_that_is_gone_is_told_and_the_others_are_graded(
    bench: Workbench, imported: retrieval_logs.Imported
) -> None:
    gone = UnlabelledQuestion("When?", imported.log.name, "row 99")
    questions = (*imported.log.gradable, gone)
    engine = bench.engine(Choice(find_policy("paper", bench.config), "heuristic"), observed=False)
    book = bench.experiments.scores(bench.conditions(engine, questions))
    done = score(questions, engine, book, Clock(), recorded=bench.recorded(questions))
    assert (done.done, done.failed) == (5, 1)
    with pytest.raises(UnknownName, match="log"):
        bench.recorded((UnlabelledQuestion("When?", "no such log", "row 1"),))


def test_the_same_log_again_is_the_same_one_and_another_gets_a_number(bench: Workbench) -> None:
    log = RetrievalLog("mine", "table", (LogRecord("1", 1, "When?"),))
    assert bench.experiments.keep_log(log).name == bench.experiments.keep_log(log).name == "mine"
    assert bench.experiments.keep_log(RetrievalLog("mine", "table", ())).name == "mine 2"
    assert bench.experiments.log_names() == ("mine", "mine 2")
    assert bench.experiments.load_log("mine") is bench.experiments.load_log("mine")
    bench.experiments._save(LOGS, "damaged", '{"shape": "table"}\n{"id": 7}\n')
    with pytest.raises(BadRecord, match="cannot be read"):
        bench.experiments.load_log("damaged")


def test_an_opened_log_has_its_set_with_corrections_and_a_deleted_one_takes_it_along(
    bench: Workbench, imported: retrieval_logs.Imported
) -> None:
    name, third = imported.log.name, imported.unlabelled[0]
    made = LabelledQuestion(third.question, Expected.CORRECT, log=third.log, record=third.record)
    bench.experiments.change_set(name, lambda there: there.having(made))
    again = retrieval_logs.opened(name, bench)
    assert again.labelled is not None and len(again.labelled.questions) == 4 and len(again.unlabelled) == 1
    retrieval_logs.delete(name, bench)
    assert bench.experiments.log_names() == bench.experiments.set_names() == ()


def test_chunks_that_are_known_to_hold_the_answer_label_without_a_right_answer(bench: Workbench) -> None:
    chunks = (Context(OTHER, "o"), Context(HOLDS, "h"))
    records = (
        LogRecord("1", 1, "When?", chunks, reference_contexts=(f"{HOLDS} Not in summer.",)),
        LogRecord("2", 2, "When?", chunks[:1], reference_contexts=(HOLDS,)),
        LogRecord("3", 3, "When?", chunks, reference_ids=("h",)),
        LogRecord("4", 4, "When?", chunks, expected=Expected.AMBIGUOUS, references=("at ten",)),
    )
    found, _ = questions_of(RetrievalLog("l", "table", records), bench.support("words"))
    labels = [Expected.CORRECT, Expected.UNANSWERABLE, Expected.CORRECT, Expected.AMBIGUOUS]
    assert [one.expected for one in found] == labels

"""The Logs page: a file is looked at, imported, graded, and its records are opened by the stage that failed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from tests.ui.conftest import Start, choose, finished, press, put_labels, settle, shown

GOLD = "Ferries leave Vennick at ten in winter. Dogs travel free."
OTHER = "Tickets are sold in the harbour office. It opens on weekdays."
ROWS = [
    {"question": "When do ferries leave Vennick in winter?", "contexts": [OTHER, GOLD], "answer": "At ten.",
     "ground_truth": "at ten"},
    {"question": "When do ferries leave Vennick in winter?", "contexts": [OTHER], "answer": "On weekdays.",
     "ground_truth": "at ten"},
    {"question": "Where are tickets sold?", "contexts": [{"text": OTHER, "score": 0.87}], 
     "answer": "<b>Here</b> $1$ _x_"},
]  # fmt: skip


def log(*rows: object) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def open_page(start: Start, own: Path) -> AppTest:
    app = start("pages/logs.py", CRAG_HOME=str(own))
    assert not app.exception
    choose(app, evaluator="heuristic")
    return app


def upload(app: AppTest, content: bytes, name: str = "winter.jsonl") -> AppTest:
    app.file_uploader[0].upload(name, content, "application/json").run()
    assert not app.exception
    return app


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs") / "home"


@pytest.fixture
def graded(start: Start, own: Path, kept: Path) -> AppTest:
    """The page after a log was imported and graded: once, in a home that every test has a copy of."""
    if not kept.exists():
        app = upload(open_page(start, own), log(*ROWS, {"question": "No chunks"}))
        press(app, "Import 3 records")
        press(app, "Grade 3 records")
        finished(app, "log_grading")
        shutil.copytree(own, kept)
    shutil.rmtree(own)
    shutil.copytree(kept, own)
    app = open_page(start, own)
    press(app, "Open")
    return app


def test_a_file_is_looked_at_before_anything_is_kept(start: Start, own: Path) -> None:
    app = upload(open_page(start, own), log(*ROWS, {"question": "No chunks"}))
    said = shown(app)
    assert "3 records, 4 chunks, 1 row refused" in said and "right\u00a0answer\u00a0:gray[←]\u00a0ground_truth" in said
    assert "Row 4: Expected the chunks that were retrieved, found none" in app.warning[0].value.replace("\\", "")
    first = app.dataframe[0].value
    assert list(first["Question"])[:2] == [ROWS[0]["question"]] * 2 and first["Score"][2] == 0.87
    assert Workbench(Config(home=own)).experiments.log_names() == ()
    press(app, "Another file")
    assert app.file_uploader and "Import 3 records" not in labels(app)


def test_a_file_that_is_no_log_says_what_is_missing_and_a_sample_is_offered(start: Start, own: Path) -> None:
    app = press(open_page(start, own), "Try a sample log")
    assert "Import 10 records" in labels(app)
    app = upload(press(app, "Another file"), b"frage,kontext\na,b\n", "log.csv")
    assert "a column with the question" in app.error[0].value
    assert not any(label.startswith("Import") for label in labels(app))
    app.selectbox(key="log_shape").set_value("langsmith").run()
    assert not app.exception and "run_type" in app.error[0].value.replace("\\", "")


def test_an_imported_log_is_open_with_its_set_and_what_comes_next(start: Start, own: Path) -> None:
    app = upload(open_page(start, own), log(*ROWS))
    press(app, "Import 3 records")
    said = shown(app)
    assert "3 records: 2 labelled, 1 without a label" in said
    assert "Labels, by what the chunks hold: 1 answered, 1 not answered" in said
    assert {"Tune thresholds", "Compare configurations", "Label 1 record", "Grade 3 records"} <= {*labels(app)}
    assert Workbench(Config(home=own)).experiments.set_names() == ("winter",)


def test_the_stages_stand_in_a_picture_and_a_table(graded: AppTest) -> None:
    said = shown(graded)
    assert "Which stage failed?" in said and "3 records under" in said
    table = graded.dataframe[0].value
    assert table["Verdict"][0] == "wrong" and "Not retrieved" in list(table["Stage"])
    assert graded.get("plotly_chart")
    graded.segmented_control(key="log_stage").set_value("not retrieved").run()
    assert not graded.exception and "retrieval is at fault" in shown(graded)
    assert set(graded.dataframe[0].value["Stage"]) == {"Not retrieved"}


def test_the_stages_can_be_taken_along(graded: AppTest, offered: Callable[[AppTest], list[bytes]]) -> None:
    table, report = offered(graded)
    assert b"not retrieved" in table and b"Which stage failed?" in report


def test_the_set_of_a_log_is_tuned_on_its_own_chunks(graded: AppTest) -> None:
    app = press(graded, "Tune thresholds")
    assert not app.exception
    said = shown(app)
    assert "winter: 2 questions" in said and "Your thresholds" in said  # graded already, with the log
    said = shown(press(app.switch_page("pages/logs.py").run(), "Compare configurations"))
    assert not app.exception and "winter" in said and "2 questions" in said


def test_a_record_runs_on_ask_with_its_own_chunks_beside_the_answer_of_the_log(graded: AppTest) -> None:
    graded.session_state["LogsPage"].record = "row 3"  # as ticking its row does
    said = shown(graded.run())
    assert ":gray-badge[Retrieval: " in said and ":green-badge[" not in said, "what retrieval is judged to be, by name"
    assert "Answer in the log" in said and "in the log 0.87" in graded.expander[0].label.replace("\\", "")
    next(button for button in graded.button if button.label == "Open on Ask").click().run()
    assert graded.text_input(key="ask_question").value == "Where are tickets sold?", "the page is left"
    app = settle(graded.switch_page("pages/ask.py").run())
    trace = app.session_state["trace"]
    assert not app.exception and [passage.text for passage in trace.passages] == [OTHER]
    assert trace.logged.record == "row 3" and trace.question == "Where are tickets sold?"
    assert "Answer in the log" in shown(app) and "<b>Here</b> $1$ _x_" in shown(app)  # as it stands, and no markup
    choose(app, policy="worst-chunk")
    press(app, next(label for label in labels(app) if label.startswith(("Generate", "Grade"))))
    again = app.session_state["trace"]
    assert again.passages == trace.passages and again.logged == trace.logged


def test_all_policies_stand_side_by_side(start: Start, graded: AppTest) -> None:
    graded.session_state["log_policies"] = True
    app = graded.run()
    table = app.dataframe[1].value
    assert not app.exception and {"Policy", "CORRECT", "Not retrieved", "No fault found"} <= set(table.columns)
    assert len(table) > 5 and all(table["CORRECT"] + table["AMBIGUOUS"] + table["INCORRECT"] == 3)


def test_the_records_without_a_label_are_labelled_into_the_set_of_the_log(graded: AppTest, own: Path) -> None:
    press(graded, "Label 1 record")
    app = graded.switch_page("pages/tune.py").run()
    put_labels(app, {0: "answered"})  # it was graded with the log, so it is asked for at once
    questions = Workbench(Config(home=own)).experiments.load_set("winter").questions
    (found,) = (one for one in questions if one.record == "row 3")
    assert found.log == "winter" and found.expected.is_answerable

"""The Tune page, from an empty one to a kept preset; every figure after the grading without a model or a retrieval."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.text.display import readable
from crag_core.evaluators.embedding import EmbeddingEvaluator
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet
from crag_core.experiments.thresholds.objective import Objective, allowed, losses, surface
from crag_core.experiments.thresholds.recommend import recommend
from crag_core.experiments.thresholds.threshold_board import grid
from crag_core.retrieval.hybrid import HybridRetriever
from crag_core.trace.feedback import Mark, label_of
from tests.experiments.made_up_sets import drawn
from tests.ui.conftest import Start, ask, choose, finished, press, put_labels, put_thresholds, shown, thresholds
from ui.tune import charts
from ui.tune.charts import Point

ANSWERED = [
    "What does a yacht of up to ten metres pay a night?", "What do longer yachts pay?", "Where are dues paid?",
    "Before when are dues paid?", "Who keeps the harbour office?", "How much does the crane lift at most?",
    "When is the crane inspected?", "Who inspects the crane?", "Who may stand under a load?", "How long is berth A1?",
    "How deep is berth B4?", "How many pounds does a yacht pay?",
]  # fmt: skip
OTHERS = [f"{words}?" for words in (
    "How do I bake rye bread", "Who won the chess final", "Why is the sky blue", "How old is the oldest oak",
    "What is a haiku", "When do swallows return", "How many keys has a piano", "Who painted the night watch",
    "What does a kilo of saffron cost", "How far is the moon", "Who wrote the first novel", "What makes a magnet pull",
)]  # fmt: skip
FERRY = b"""The Saltmarsh ferry leaves Orrin Bay at 9:15 each morning. A return ticket costs 34 pounds for an adult.
The crossing takes 55 minutes. The company was founded in 1921. The largest vessel carries 310 passengers."""
QUESTIONS = tuple(
    [LabelledQuestion(one, Expected.CORRECT, ("14 pounds",) if one == ANSWERED[0] else ()) for one in ANSWERED]
    + [LabelledQuestion(one, Expected.INCORRECT) for one in OTHERS]
)


def tune(start: Start, own: Path, *, labelled: bool = True, **environment: str) -> AppTest:
    if labelled:
        Workbench(Config(home=own)).experiments.keep_set(LabelledSet("mine", QUESTIONS))
    app = start("pages/tune.py", CRAG_HOME=str(own), **environment)
    assert not app.exception
    return app


def grade(start: Start, own: Path) -> AppTest:
    app = tune(start, own)
    choose(app, evaluator="embedding")
    look(app, "tune_source", "Kept sets")
    press(app, "Use 24 questions")
    press(app, "Grade 24 questions")
    return finished(app, "tune_grading")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graded") / "home"


@pytest.fixture
def graded(start: Start, own: Path, kept: Path) -> AppTest:
    """The page after the set was graded: once, in a home that every test has a copy of."""
    if not kept.exists():
        grade(start, own)
        shutil.copytree(own, kept)
    shutil.rmtree(own)
    shutil.copytree(kept, own)
    app = tune(start, own, labelled=False)
    choose(app, evaluator="embedding")
    look(app, "tune_source", "Kept sets")
    press(app, "Use 24 questions")
    assert "Your thresholds" in texts(app)
    return app


def look(app: AppTest, key: str, value: Any) -> AppTest:
    app.segmented_control(key=key).set_value(value)
    app.run()
    assert not app.exception
    return app


def texts(app: AppTest) -> str:
    return shown(app)


def test_an_empty_page_says_what_is_needed_and_offers_the_sample(start: Start, own: Path) -> None:
    app = tune(start, own, labelled=False)
    assert "Add questions and say whether" in texts(app)
    look(app, "tune_source", "Sample questions")
    press(app, "Use 49 questions")
    assert "Sample questions: 49 questions" in texts(app)
    assert any(button.label == "Grade 49 questions" for button in app.button)
    assert "Your thresholds" not in texts(app)


def test_from_a_kept_set_to_a_kept_preset(start: Start, own: Path) -> None:
    app = grade(start, own)
    said = texts(app)
    assert "Your thresholds" in said and "AUROC" in said
    assert "Confidently wrong" in [metric.label for metric in app.metric]
    assert "Nothing better found: keep yours" in said and "On 12 held-out questions" in said
    lower, upper = thresholds(app)
    assert app.text_input(key="tune_preset_name").value == "mine paper"
    assert not any(button.label.startswith("Keep recommended") for button in app.button)
    app.text_input(key="tune_preset_name").set_value("careful").run()
    press(app, f"Keep mine: {lower:.2f} and {upper:.2f}")
    assert "Kept as “careful”" in texts(app)
    assert app.text_input(key="tune_preset_name").value == "careful"
    kept = Workbench(Config(home=own)).experiments.load_preset("careful")
    assert (kept.lower, kept.upper, kept.questions) == (lower, upper, 24) and kept.reason.startswith(
        "kept, no better pair found for the least cost of"
    )
    assert kept.conditions.evaluator == "embedding"

    app = start(CRAG_HOME=str(own))
    choose(app, evaluator="embedding")
    press(app, f"careful: {' and '.join(readable(lower, upper))}")
    assert thresholds(app) == (lower, upper)
    assert "Preset “careful”" in texts(app)


def test_what_is_kept_is_what_the_button_says(graded: AppTest, own: Path) -> None:
    app = graded
    put_thresholds(app, (0.0, 0.01)).run()  # nearly everything is CORRECT: far off
    press(app, "Keep mine: 0.00 and 0.01")
    label = next(button.label for button in app.button if button.label.startswith("Keep recommended: "))
    assert app.text_input(key="tune_preset_name").value == "mine paper 2"  # the first keeps its name
    assert "On 12 held-out questions: answered " in texts(app) and "(yours 100%)" in texts(app)
    press(app, label)
    kept = Workbench(Config(home=own)).experiments
    assert kept.load_preset("mine paper").lower == 0.0 and kept.load_preset("mine paper").reason == "set by hand"
    better = kept.load_preset("mine paper 2")
    assert label == f"Keep recommended: {better.lower:.2f} and {better.upper:.2f}" and better.reason != "set by hand"
    assert thresholds(app) == (better.lower, better.upper)  # and it is in use
    assert "Kept as “mine paper 2”" in texts(app) and "Nothing better found: keep yours" in texts(app)


def test_nothing_is_graded_or_retrieved_after_the_grading(graded: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    app = graded

    def fail(*anything: object, **more: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr(EmbeddingEvaluator, "grade", fail)
    monkeypatch.setattr(HybridRetriever, "retrieve", fail)
    for picture in ("Routes", "All policies", "Scores"):
        look(app, "tune_look", picture)
    look(app, "tune_way", "By a limit on wrong answers")
    choose(app, policy="signals")
    assert not app.exception


def test_a_number_of_the_table_lists_its_questions(graded: AppTest) -> None:
    app = graded
    look(app, "tune_look", "Routes")
    put_thresholds(app, (0.0, 0.0)).run()
    press(app, "12 · 100%")
    listed = app.dataframe[0].value["question"].tolist()
    assert listed == ANSWERED
    press(app, "12 · 100%")  # once more closes it
    assert app.session_state["SetInUse"].cell is None


def test_a_limit_that_so_few_cannot_certify_is_not_offered(graded: AppTest) -> None:
    """6 unanswerable questions are held out: at 90 % they certify 32 %, at 95 % 40 %, at 99 % nothing of use."""
    app = graded
    assert "24 questions are enough to find thresholds that are far off" in texts(app)
    look(app, "tune_way", "By a limit on wrong answers")
    confidence = next(one for one in app.selectbox if one.label == "The limit holds")
    assert confidence.options == ["for the questions of this set", "with 90% confidence", "with 95% confidence"]
    limit = next(one for one in app.number_input if one.label.startswith("Confidently wrong"))
    assert (limit.min, limit.value) == (39.5, 39.5)
    assert "39.5% is the smallest limit that 6 unanswerable held-out questions can certify" in texts(app)
    confidence.set_value("for the questions of this set").run()
    assert next(one for one in app.number_input if one.label.startswith("Confidently wrong")).min == 0.5


def put_file(app: AppTest, name: str, content: bytes) -> str:
    """What the page says then; questions with labels are graded at once."""
    app.file_uploader(key="tune_upload").set_value((name, content, "text/csv")).run()
    return texts(finished(app, "tune_grading"))


GOOD = b"question,expected\nHow?,correct\nWho?,incorrect\n"


def test_an_uploaded_set_is_saved_and_chosen_at_once(start: Start, own: Path) -> None:
    app = tune(start, own, labelled=False)
    look(app, "tune_source", "Upload")
    assert "my set: 2 questions" in put_file(app, "my/set.csv", GOOD)
    assert "Your thresholds" in texts(app)
    kept = Workbench(Config(home=own)).experiments
    assert kept.set_names() == ("my set",) and len(kept.load_set("my set").questions) == 2
    app = tune(start, own, labelled=False)
    look(app, "tune_source", "Kept sets")
    press(app, "Use 2 questions")


def test_a_file_with_a_bad_row_is_refused_and_changes_nothing(start: Start, own: Path) -> None:
    app = tune(start, own, labelled=False)
    look(app, "tune_source", "Upload")
    put_file(app, "first.csv", GOOD)
    said = put_file(app, "mine.csv", b"question,expected\nWhy?,perhaps\nHow?,correct\nWho?,incorrect\n")
    assert "Row 2: Expected one of" in said and "found 'perhaps'" in said
    assert "first: 2 questions" in said and Workbench(Config(home=own)).experiments.set_names() == ("first",)
    press(app, "Take the other 2 questions")
    assert "mine: 2 questions" in texts(app)


def test_drafts_are_of_what_is_searched_and_grading_them_elsewhere_asks_first(start: Start, own: Path) -> None:
    Workbench(Config(home=own)).store.ingest([("ferry.md", FERRY)], collection="ships")
    app = tune(start, own, labelled=False)
    choose(app, collection="ships")
    look(app, "tune_source", "Draft them")
    assert "From the documents of ships" in texts(app)
    press(app, "Draft")
    drafted = app.session_state["TunePage"].drafted
    assert {one.document for one in drafted if one.document} == {"ferry.md"}
    assert {one.collection for one in drafted} == {"ships"}
    press(app, next(button.label for button in app.button if button.label.startswith("Use ")))
    grade = f"Grade {len(drafted)} questions"
    assert grade in [button.label for button in app.button]
    choose(app, collection="main")
    away = f"Of {len(drafted)} questions {len(drafted)} are of the collection “ships”, and the collection “main”"
    assert away in texts(app) and f"{grade} all the same" in [button.label for button in app.button]
    choose(app, collection="ships")
    assert away not in texts(app)
    finished(press(app, grade), "tune_grading")
    assert grade not in [button.label for button in app.button]


def test_feedback_becomes_labelled_questions(start: Start, own: Path) -> None:
    app = start(CRAG_HOME=str(own))
    ask(app, ANSWERED[0])
    trace = app.session_state["trace"]
    history = Workbench(Config(home=own)).history
    policy, action = trace.settings.policy, trace.decision.action
    label = label_of(trace, policy, Mark.RIGHT, "2026-01-01T00:00:00+00:00", action=action)
    assert label is not None
    history.add_label(label)
    app = tune(start, own, labelled=False)
    look(app, "tune_source", "From feedback")
    press(app, "Use 1 question")
    assert "From feedback: 1 question" in texts(app)


def begin_labelling(app: AppTest) -> AppTest:
    look(app, "tune_source", "Upload")
    put_file(app, "waiting.csv", "\n".join(["question", *ANSWERED, *OTHERS]).encode())
    finished(app, "label_grading")
    assert not app.segmented_control(key="tune_source").proto.disabled
    return app


def test_the_nearest_to_the_thresholds_are_labelled_in_a_table(start: Start, own: Path) -> None:
    app = begin_labelling(tune(start, own, labelled=False))
    rows = app.session_state["Labelling"].rows
    asked, kept = [row["question"] for row in rows], Workbench(Config(home=own)).experiments
    assert len(rows) == 20 == len(set(asked)) and set(asked) <= {*ANSWERED, *OTHERS}
    assert all(row["label"] is None and row["best chunk"] and row["document"] and row["score"] >= 0 for row in rows)
    put_labels(app, {0: "answered", 2: "off topic"})
    labelled = {one.question: one.expected for one in kept.load_set("my questions").questions}
    assert labelled == {asked[0]: Expected.CORRECT, asked[2]: Expected.INCORRECT}  # kept at once
    put_labels(app, {0: "on topic only", 2: None})  # another label, and none
    labelled = {one.question: one.expected for one in kept.load_set("my questions").questions}
    assert labelled == {asked[0]: Expected.AMBIGUOUS}
    app.switch_page("pages/settings.py").run()
    app.switch_page("pages/tune.py").run()
    assert [row["label"] for row in app.session_state["Labelling"].rows][:2] == ["on topic only", None]
    press(app, "Finish")
    assert "my questions: 1 question" in texts(app)
    assert not [one for one in app.dataframe if "label_table" in one.proto.id]


# --- pictures --------------------------------------------------------------------------------------------------------


SEEN = drawn(200, seed=3)
SCORES, YES = SEEN.deciding().upper, SEEN.answerable


def test_both_kinds_stand_on_either_side_of_the_axis() -> None:
    figure = charts.histogram(SCORES, YES, [("lower", 0.3), ("upper", 0.745)], "score")
    above, below = figure.data
    assert sum(above.y) == YES.sum() and sum(below.y) == -(~YES).sum()
    assert [line.x0 for line in figure.layout.shapes] == [0.3, 0.745]
    assert [note.text for note in figure.layout.annotations] == ["lower 0.30", "upper 0.745"]


def test_a_click_on_the_map_names_its_thresholds_and_none_lies_where_lower_exceeds_upper() -> None:
    axis, objective = grid(11), Objective()
    costs = surface(SEEN, losses(SEEN, objective), axis, axis)
    found = recommend(SEEN, objective, steps=11)
    assert found.plateau is not None
    now = Point("now", 0.3, 0.745, "circle", "#000000")
    figure = charts.heat_map(axis, costs, allowed(SEEN, axis, axis), found.plateau.cells, [now], "cost")
    cells = next(trace for trace in figure.data if trace.name == "cells")
    assert len(cells.x) == 66 and all(lower <= upper for lower, upper in cells.customdata)
    assert cells.text[0] == f"{costs[0, 0]:.2f}"
    assert [tuple(pair) for pair in cells.customdata] == list(zip(cells.x, cells.y, strict=True))
    assert all(type(pair) is list for pair in figure.to_plotly_json()["data"][-2]["customdata"]), "as a click reads it"
    assert any(trace.name == "now 0.30, 0.745" for trace in figure.data)


def test_the_line_goes_around_the_plateau_and_is_closed_at_the_edge() -> None:
    axis = grid(11)
    cells = np.zeros((11, 11), dtype=bool)
    cells[0:4, 5:11] = True
    figure = charts.heat_map(axis, np.zeros((11, 11)), cells, cells, [], "cost")
    line = next(trace for trace in figure.data if trace.name == "plateau")
    assert (len(line.x), line.x[0], line.x[-1]) == (13, pytest.approx(-0.1), pytest.approx(1.1))
    assert np.array_equal(line.z[1:-1, 1:-1], cells.T)
    assert not line.z[0].any() and not line.z[-1].any() and not line.z[:, 0].any() and not line.z[:, -1].any()

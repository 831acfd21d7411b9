"""The Compare page: its configurations, one question under all of them, and a labelled set with its measures."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections.abc import Iterator
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.errors import EmbeddingUnavailable
from crag_core.evaluators.embedding import EmbeddingEvaluator
from crag_core.evaluators.policies import load_policies
from crag_core.experiments.comparison.run_configurations import QUESTION as WARMING_UP
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet
from crag_core.retrieval.hybrid import HybridRetriever
from tests.ui.conftest import Start, choose, job_named, press, put_thresholds, shown, thresholds
from ui.compare import compare_state
from ui.shell.text import plain

PRICE = "What does a yacht of up to ten metres pay a night?"
CHESS = "Who won the chess championship of 1972?"
POLICIES = load_policies()[0]
QUESTIONS = (
    LabelledQuestion(PRICE, Expected.CORRECT, ("14 pounds",), "harbour-dues.md"),
    LabelledQuestion("What do longer yachts pay?", Expected.CORRECT, ("21 pounds",), "harbour-dues.md"),
    LabelledQuestion("When is the crane inspected?", Expected.CORRECT, ("every March",), "crane.txt"),
    LabelledQuestion(CHESS, Expected.INCORRECT),
    LabelledQuestion("How do I bake rye bread?", Expected.INCORRECT),
)


def compare(start: Start, own: Path | None = None, **environment: str) -> AppTest:
    app = start("pages/compare.py", **({"CRAG_HOME": str(own)} if own else {}), **environment)
    assert not app.exception
    return app


def cards(app: AppTest) -> dict[str, str]:
    """By letter and name, what stands below it; of the configurations, which come before any run."""
    values = [(element.type, str(element.value).replace("\\", "")) for element in app.main if hasattr(element, "value")]
    found: dict[str, str] = {}
    for (kind, value), (_, below) in pairwise(values):
        if kind == "markdown" and re.match(r"\*\*[A-D] · ", value):
            found.setdefault(value.strip("*"), " ".join(below.split()))
    return found


def names(app: AppTest) -> list[str]:
    return list(cards(app))


def move(app: AppTest, lower: float, upper: float) -> AppTest:
    put_thresholds(app, (lower, upper)).run()
    assert not app.exception
    return app


def button(app: AppTest, key: str) -> Any:
    return app.button(key=key)


def has_button(app: AppTest, label: str) -> bool:
    return any(one.label == label for one in app.button)


def ask_all(app: AppTest) -> AppTest:
    """Ask, and wait until every configuration has answered, as the page's own timer would."""
    app.text_input(key="versus_question").set_value(PRICE)
    next(one for one in app.button if one.label == "Compare").click()
    return settled(app.run())


def settled(app: AppTest) -> AppTest:
    for name in ("compared_question", "compared_set"):
        if work := job_named(app, name):
            work.wait()
            app.run()
    return app


def look_at_sets(app: AppTest) -> AppTest:
    app.segmented_control(key="versus_what").set_value("Labelled set").run()
    assert not app.exception
    return app


def with_set(start: Start, own: Path, **environment: str) -> AppTest:
    """The page with a small labelled set on it, not yet run."""
    Workbench(Config(home=own)).experiments.keep_set(LabelledSet("mine", QUESTIONS))
    app = look_at_sets(compare(start, own, **environment))
    app.segmented_control(key="tune_source").set_value("Kept sets").run()
    return press(app, f"Use {len(QUESTIONS)} questions")


def run_set(app: AppTest, count: int = len(QUESTIONS)) -> AppTest:
    press(app, f"Run {count} question{'s' if count > 1 else ''}")
    return settled(app)


def sentences(app: AppTest) -> dict[str, str]:
    """Each sentence with "x" for every configuration that was given it."""
    (table,) = app.table
    letters = table.value.columns[:-1]
    return {
        str(row["Sentence"]).replace("\\", ""): "".join("-" if row[letter] == "–" else "x" for letter in letters)
        for _, row in table.value.iterrows()
        if row["A"]
    }


class Gate:
    """Before it is opened nobody retrieves, so that what is under way stays so; or nobody does something else.

    Warming up goes through, since nothing of a run is under way then.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, owner: type = HybridRetriever, method: str = "retrieve"
    ) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        whole = getattr(owner, method)

        def held(one: object, question: str, *arguments: Any, **options: Any) -> object:
            if question != WARMING_UP:
                self.reached.set()
                assert self.opened.wait(60)
            return whole(one, question, *arguments, **options)

        monkeypatch.setattr(owner, method, held)

    def reach(self, app: AppTest) -> AppTest:
        """Draw the page as it is while somebody waits here."""
        assert self.reached.wait(60)
        return app.run()

    def open(self, app: AppTest) -> AppTest:
        self.opened.set()
        return settled(app)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate(monkeypatch)
    yield made
    made.opened.set()


# --- the configurations ---------------------------------------------------------------------------------------------


def test_the_page_opens_with_plain_rag_and_the_sidebars_choice(start: Start) -> None:
    app = compare(start)
    assert names(app) == ["A · Plain RAG", "B · Paper"]
    assert cards(app)["A · Plain RAG"] == "No grading, no correction 6 chunks Quotations"
    lower, upper = thresholds(app)
    assert cards(app)["B · Paper"].startswith(f"Lower {lower:.2f}, upper {upper:.2f}, cut-off ")
    assert "Trained evaluator, 6 chunks, no web Quotations, show nearest if doubtful" in cards(app)["B · Paper"]
    assert shown(app).count("Follows the sidebar") == 1
    assert not has_button(app, "Stop") and "Evidence of each answer" not in shown(app)


def test_the_sidebar_moves_the_configuration_that_follows_it(start: Start) -> None:
    app = move(compare(start), 0.1, 0.9)
    assert names(app) == ["A · Plain RAG", "B · Paper, 0.10/0.90"]
    assert cards(app)["B · Paper, 0.10/0.90"].startswith("Lower 0.10, upper 0.90, ")
    choose(app, policy="signals", evaluator="heuristic")
    app.slider(key="strips").set_value(0.44).run()
    assert names(app) == ["A · Plain RAG", "B · Signals, cut-off 0.44, Heuristic"]
    press(app, "Back to the defaults")
    assert names(app) == ["A · Plain RAG", "B · Signals, Heuristic"]
    app.select_slider(key="sentences").set_value(3).run()
    assert names(app) == ["A · Plain RAG", "B · Signals, at most 3 sentences, Heuristic"]
    press(app, "Back to the defaults")
    app.segmented_control(key="doubtful").set_value("abstain").run()
    assert names(app) == ["A · Plain RAG", "B · Signals, abstain if doubtful, Heuristic"]


def test_what_is_kept_stays_whatever_the_sidebar_does_next(start: Start) -> None:
    app = press(compare(start), "Keep sidebar settings")
    assert names(app) == ["A · Plain RAG", "B · Paper"] and "Follows the sidebar" not in shown(app)
    assert button(app, "versus_keep").disabled, "it is kept already"
    move(app, 0.1, 0.9)
    assert names(app) == ["A · Plain RAG", "B · Paper", "C · Paper, 0.10/0.90"]
    assert not button(app, "versus_keep").disabled
    press(app, "Back to the defaults")
    assert names(app) == ["A · Plain RAG", "B · Paper"], "the same is not there twice"


def test_at_most_four_stand_side_by_side_and_a_fifth_is_never_drawn(start: Start) -> None:
    app = compare(start)
    for name in ("two-signal", "signals"):
        button(app, f"versus_add_{name}").click().run()
    assert names(app) == ["A · Plain RAG", "B · Two signals", "C · Signals", "D · Paper"]
    assert "At most 4 at a time." in shown(app) and "Remove one" not in shown(app)
    press(app, "Keep sidebar settings")
    button(app, "versus_add_heuristic").click().run()  # from the popover that was still open
    assert not app.exception and names(app)[-1] == "D · Paper"
    move(app, 0.1, 0.9)
    assert len(names(app)) == 4 and "D · Paper, 0.10/0.90" not in names(app)
    assert "At most 4 at a time. Remove one to compare the sidebar settings." in shown(app)
    button(app, "versus_remove_1").click().run()
    assert len(names(app)) == 4 and names(app)[-1] == "D · Paper, 0.10/0.90"


# --- one question ---------------------------------------------------------------------------------------------------


def test_one_question_has_verdict_answer_and_cost_of_each(start: Start) -> None:
    app = ask_all(compare(start))
    assert not app.exception
    said = shown(app)
    verdicts = [str(one.value) for one in app.subheader]
    assert verdicts[0] == ":gray[Not graded]", "where nobody judged there is no verdict"
    assert "CORRECT" in verdicts[1] and verdicts[2] == "Evidence of each answer"
    assert "Chunks used as retrieved, nothing graded." in said
    assert "Best chunk" in said and said.count("“A yacht of up to ten metres pays 14 pounds a night.” [1]") == 2
    assert said.count(":material/receipt: 0 LLM calls, ") == 2 and "words of 1 of 1 sentence found" in said
    assert [trace.settings.policy.name for _, trace in app.session_state["ComparePage"].traces] == ["plain", "paper"]
    assert [str(one.value) for one in app.header] == [plain(PRICE)] and has_button(app, "Open in Ask")


def test_every_sentence_stands_once_with_whoever_was_given_it(start: Start) -> None:
    app = ask_all(move(compare(start), 0.1, 0.2))
    found = sentences(app)
    assert found["Longer yachts pay 21 pounds."][0] == "x" and set("".join(found.values())) == {"x", "-"}
    assert all(marks[0] == "x" for marks in found.values()), "plain RAG is given everything"
    differing = [text for text, marks in found.items() if len(set(marks)) > 1]
    assert f"{len(found)} sentences, {len(differing)} of them not in every answer." in shown(app)
    app.toggle(key="versus_only").set_value(True).run()
    assert list(sentences(app)) == differing


def test_a_run_that_breaks_off_is_told_in_its_own_column(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*anything: object, **more: object) -> None:
        raise EmbeddingUnavailable("The evaluator is **away**.", hint="Bring it back.")

    monkeypatch.setattr(EmbeddingEvaluator, "grade", away)
    app = ask_all(choose(compare(start), evaluator="embedding"))
    assert not app.exception
    assert [str(error.value).replace("\\", "") for error in app.error] == ["The evaluator is **away**. Bring it back."]
    assert "**" not in str(app.error[0].value).replace("\\*", "")
    assert "“A yacht of up to ten metres" in shown(app), "the other one has answered"


def test_a_run_is_opened_on_the_ask_page_with_the_sidebar_where_it_was(start: Start) -> None:
    app = ask_all(move(compare(start), 0.2, 0.9))
    move(app, 0.1, 0.95)
    button(app, "versus_open_1").click().run()
    assert not app.exception
    assert app.session_state["thresholds"] == (0.2, 0.9) and app.session_state["policy"] == "paper"
    assert "Retrieval: " in shown(app)
    assert app.session_state["trace"].question == PRICE and app.session_state["ask_question"] == PRICE


# --- while it goes on -----------------------------------------------------------------------------------------------


def begin(app: AppTest, gate: Gate) -> AppTest:
    """A question on its way, as far as the gate."""
    app.text_input(key="versus_question").set_value(PRICE)
    next(one for one in app.button if one.label == "Compare").click()
    app.run()
    return gate.reach(app)


def test_while_a_question_is_under_way_nothing_else_is_begun(start: Start, gate: Gate) -> None:
    app = begin(compare(start), gate)
    assert not app.exception and ":shimmer[A: retrieve … " in shown(app)
    assert all(button(app, key).disabled for key in ("versus_keep", "versus_remove_0"))
    assert next(one for one in app.button if one.label == "Compare").disabled
    look_at_sets(app)
    assert ":shimmer[A: retrieve" in shown(app), "it is seen wherever one looks"
    gate.open(app)
    assert not button(app, "versus_keep").disabled
    app.segmented_control(key="versus_what").set_value("One question").run()
    assert "Evidence of each answer" in shown(app)


@pytest.mark.parametrize("name", ["compared_question", "compared_set"])
def test_two_clicks_faster_than_the_page_begin_one_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Running:
        is_running = True

    jobs = {name: Running()}
    monkeypatch.setattr(st, "session_state", {"jobs": jobs})
    before = dict(jobs)
    compare_state.start_question(PRICE)
    compare_state.start_set(LabelledSet("mine", QUESTIONS))
    assert jobs == before


# --- a labelled set -------------------------------------------------------------------------------------------------


def test_the_table_has_every_figure_and_the_files_the_same(
    start: Start, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: dict[str, Any] = {}
    whole = st.download_button

    def remember(label: str, data: Any, file_name: str, *more: Any, **options: Any) -> bool:
        files[file_name] = data()
        return whole(label, data, file_name, *more, **options)

    monkeypatch.setattr(st, "download_button", remember)
    app = run_set(with_set(start, own))
    rows = list(csv.DictReader(io.StringIO(files["mine.csv"])))
    (table,) = app.table
    assert list(table.value.columns) == ["Measure", "A · Plain RAG", "B · Paper"]
    titles = [str(cell).split(" :small")[0].strip("*") for cell in table.value["Measure"]]
    assert len([one for one in table.value["A · Plain RAG"] if one]) == len(rows) / 2 > 10
    assert {row["group"] for row in rows} < set(titles)
    assert "over **A · Plain RAG** on the same questions" in shown(app)
    report = files["mine.html"]
    assert all(unescape(report).count(name) for name in ("Plain RAG", "nothing is graded", "policy Paper", "mine"))


def test_a_set_on_the_way_can_be_stopped_and_is_taken_up(start: Start, own: Path, gate: Gate) -> None:
    app = with_set(start, own)
    press(app, "Run 5 questions")
    gate.reach(app)
    assert not app.exception and ":shimmer[Running] 0 of 5" in _progress(app)
    assert button(app, "versus_keep").disabled
    app.segmented_control(key="versus_what").set_value("One question").run()
    assert ":shimmer[Running]" in _progress(app), "it is seen wherever one looks"
    assert next(one for one in app.button if one.label == "Compare").disabled
    button(app, "compared_set_stop").click().run()
    assert button(app, "compared_set_stop").label == "Stopping…"
    gate.open(app)
    assert not app.exception and not app.error and not app.warning, "a stop is no fault"
    run_set(look_at_sets(app))
    assert "5 questions, 95%" in shown(app)


def _progress(app: AppTest) -> str:
    return " ".join(one.proto.text for one in app.get("progress"))

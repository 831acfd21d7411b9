"""What only administrators may do, where it is done: a button drawn for one does nothing for another visitor."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet
from tests.storage.history_parts import whole_run
from tests.ui.conftest import Start, ask, finished, job_named, press, shown
from ui.session import access, background
from ui.shell import sign_in

ANN, BOB = "ann@example.org", "bob@example.org"
SIGN_IN = {"CRAG_ADMINISTRATORS": ANN, "CRAG_SIGN_IN": "on"}
DENIED = f"Only {ANN} may do this."
PAGES = Path(__file__).parents[2] / "pages"


@dataclass
class Visitor:
    """Who is signed in; AppTest has no cookie."""

    address: str


@pytest.fixture
def visitor(monkeypatch: pytest.MonkeyPatch) -> Visitor:
    now = Visitor(ANN)
    monkeypatch.setattr(access, "is_known", lambda: bool(now.address))
    monkeypatch.setattr(access, "_entering", lambda: now.address)
    monkeypatch.setattr(sign_in, "check", lambda: None)
    return now


@pytest.fixture
def own(own: Path) -> Path:
    """With a kept set in it."""
    questions = tuple(LabelledQuestion(f"What is {number}?", Expected.INCORRECT) for number in range(3))
    Workbench(Config(home=own)).experiments.keep_set(LabelledSet("mine", questions))
    return own


def open_page(start: Start, own: Path, page: str = "") -> AppTest:
    app = start(page, CRAG_HOME=str(own), **SIGN_IN)
    assert not app.exception
    return app


def select_first(app: AppTest) -> AppTest:
    app.session_state["documents_table"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    return app.run()


def click_as_bob(app: AppTest, visitor: Visitor, label: str) -> AppTest:
    """The button is on Ann's page; the click comes when the session is Bob's, as after a right was taken away."""
    button = next(button for button in app.button if button.label == label)
    app.session_state["belongs_to"] = visitor.address = BOB
    return button.click().run()


def test_removing_and_moving_ask_for_the_right_when_they_are_done(start: Start, own: Path, visitor: Visitor) -> None:
    store = Workbench(Config(home=own)).store
    store.ingest([("ferry.md", b"The ferry sails at nine.")], collection="ships")
    before = store.listing()
    app = select_first(open_page(start, own, "pages/documents.py"))
    label = next(button.label for button in app.button if button.label.startswith("Remove"))
    click_as_bob(app, visitor, label)
    assert DENIED in shown(app).replace("`", "")
    visitor.address = app.session_state["belongs_to"] = ANN
    app = select_first(app.run())
    target = "main" if before[0].collection == "ships" else "ships"
    app.selectbox(key="documents_target").set_value(target).run()
    click_as_bob(app, visitor, "Move")
    assert store.listing() == before


def test_adding_asks_for_the_right_when_it_is_done(start: Start, own: Path, visitor: Visitor) -> None:
    before = Workbench(Config(home=own)).store.listing()
    app = open_page(start, own, "pages/documents.py")
    app.file_uploader[0].set_value([("ferry.md", b"The ferry sails at nine.", "text/markdown")])
    click_as_bob(app.run(), visitor, "Index 1 file")
    assert job_named(app, "indexing") is None
    assert not app.exception and DENIED in shown(app).replace("`", "")
    assert Workbench(Config(home=own)).store.listing() == before
    visitor.address = app.session_state["belongs_to"] = ANN
    app.run().file_uploader[0].set_value([("ferry.md", b"The ferry sails at nine.", "text/markdown")]).run()
    finished(press(app, "Index 1 file"), "indexing")
    assert len(Workbench(Config(home=own)).store.listing()) == len(before) + 1


def test_tuning_asks_for_the_right_when_it_is_done(start: Start, own: Path, visitor: Visitor) -> None:
    app = open_page(start, own, "pages/tune.py")
    app.segmented_control(key="tune_source").set_value("Kept sets").run()
    click_as_bob(app, visitor, "Delete this set")
    assert Workbench(Config(home=own)).experiments.set_names() == ("mine",)
    assert DENIED in shown(app).replace("`", "")
    visitor.address = app.session_state["belongs_to"] = ANN
    app.run()
    press(app, "Use 3 questions")
    click_as_bob(app, visitor, "Grade 3 questions")
    assert job_named(app, "tune_grading") is None


def test_a_server_is_changed_only_by_those_who_may(start: Start, own: Path, visitor: Visitor) -> None:
    app = open_page(start, own, "pages/settings.py")
    app.text_input[0].set_value("http://10.0.0.1:11434")
    next(one for one in app.number_input if one.label.startswith("Chunks")).set_value(9)
    app.session_state["belongs_to"] = visitor.address = BOB
    next(button for button in app.button if button.label == "Apply").click().run()
    assert app.session_state["config"].ollama_host == "127.0.0.1:9"
    assert "Ollama address" not in [one.label for one in app.text_input]
    next(one for one in app.number_input if one.label.startswith("Chunks")).set_value(8)
    next(button for button in app.button if button.label == "Apply").click().run()
    assert app.session_state["config"].top_k == 8  # his own session is his


@pytest.mark.parametrize(
    ("page", "gone", "line"),
    [
        ("documents", "Index", "add, move and remove documents"),
        ("tune", "Delete this set", "grade labelled sets and keep presets"),
    ],
)
def test_who_may_not_reads_who_may(start: Start, own: Path, visitor: Visitor, page: str, gone: str, line: str) -> None:
    visitor.address = BOB
    app = open_page(start, own, f"pages/{page}.py")
    assert f"Only {ANN} may {line}." in shown(app).replace("`", "")
    assert gone not in [button.label for button in app.button]


def test_a_session_that_becomes_somebody_elses_is_empty(start: Start, own: Path, visitor: Visitor) -> None:
    app = ask(open_page(start, own), "How much does the crane lift?")
    assert "crane" in shown(app) and app.session_state["trace"] is not None
    visitor.address = BOB
    app.run()
    assert not app.exception
    assert "trace" not in app.session_state and "runs" not in app.query_params
    assert "crane lifts" not in shown(app) and app.text_input(key="ask_question").value == ""
    assert "See why your RAG answered what it answered." in shown(app)


def test_a_session_of_nobody_has_a_button_to_sign_in_and_nothing_else(
    start: Start, own: Path, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = {
        "redirect_uri": "https://crag.example.org/oauth2callback", "cookie_secret": "0" * 32, "client_id": "x",
        "client_secret": "y", "server_metadata_url": "https://login.example.org/x",
    }  # fmt: skip
    monkeypatch.setattr(sign_in, "_auth", lambda: sign_in.read_auth(section))
    visitor.address = ""
    app = open_page(start, own)
    assert [button.label for button in app.button] == ["Sign in"]
    assert not app.sidebar.selectbox and not app.text_input and "login.example.org" in shown(app).replace("`", "")


def test_a_run_under_way_is_followed_by_its_owner_only(start: Start, own: Path, visitor: Visitor) -> None:
    app = ask(open_page(start, own), "How much does the crane lift?")
    found = app.session_state["trace"]

    @dataclass
    class UnderWay:
        owner: str
        is_running: bool = True

    background.live()["run", found.id] = UnderWay(BOB)  # type: ignore[assignment]
    later = AppTest.from_file(str(PAGES.parent / "app.py"), default_timeout=60)
    later.query_params["run"] = found.id
    later.run()
    assert "Another user's run is in progress." in shown(later)
    assert job_named(later, "run") is None and "trace" not in later.session_state

    background.live().clear()
    later = AppTest.from_file(str(PAGES.parent / "app.py"), default_timeout=60)
    later.query_params["run"] = found.id
    later.run()
    assert later.session_state["trace"].id == found.id


def test_another_person_reads_what_is_shared_changes_none_of_it_and_sees_no_run(
    start: Start, own: Path, visitor: Visitor
) -> None:
    workbench = Workbench(Config(home=own))
    app = ask(open_page(start, own), "How much does the crane lift?")
    id_ = app.session_state["trace"].id
    click_as_bob(open_page(start, own, "pages/history.py"), visitor, "Delete 1 run for good")
    assert [run.id for run in workbench.history.search()] == [id_]
    visitor.address = ANN
    app = press(open_page(start, own, "pages/logs.py"), "Try a sample log")
    press(app, next(button.label for button in app.button if button.label.startswith("Import ")))
    (log,) = workbench.experiments.log_names()
    click_as_bob(app, visitor, "Delete it")
    assert DENIED in shown(app).replace("`", "") and workbench.experiments.log_names() == (log,)

    listed = {
        page: {str(row) for table in open_page(start, own, f"pages/{page}.py").dataframe for row in table.value.values}
        for page in ("history", "metrics")
    }
    assert "How much does the crane lift?" not in str(listed)
    linked = start(address={"run": id_}, CRAG_HOME=str(own), **SIGN_IN)
    assert linked.session_state["trace"].id == id_, "a link opens a run for everybody"
    app = open_page(start, own, "pages/logs.py")
    assert app.selectbox(key="log_kept").options == [log] and not app.file_uploader
    assert "Delete it" not in [button.label for button in press(app, "Open").button]
    app = open_page(start, own, "pages/tune.py")
    assert "mine" in app.selectbox(key="tune_kept_name").options
    press(app, "Use 3 questions")
    assert not {"Grade 3 questions", "Delete this set"} & {button.label for button in app.button}

    app = ask(open_page(start, own), "How much does the crane lift?")
    kept = {run.id: run.asked_by for run in workbench.history.search()}
    assert kept == {id_: ANN, app.session_state["trace"].id: BOB}
    press(open_page(start, own, "pages/history.py"), "Delete 1 run for good")
    assert [run.id for run in workbench.history.search()] == [id_]


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.py")), ids=lambda path: path.stem)
def test_every_page_goes_through_the_gate_before_it_does_anything(path: Path) -> None:
    """A folder pages/ makes Streamlit serve a page by itself, until app.py has run once in the server's life."""
    statements = [
        node
        for node in ast.parse(path.read_text("utf-8")).body
        if not isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.Assign | ast.AnnAssign)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    assert ast.unparse(statements[0]) == f"page.enter('pages/{path.name}')"


def test_runs_that_are_taken_along_are_those_of_who_takes_them(
    start: Start,
    own: Path,
    visitor: Visitor,
    offered: Callable[[AppTest], list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(access, "is_known", lambda: get_script_run_ctx(suppress_warning=True) is not None)
    history = Workbench(Config(home=own)).history
    for who in ("", ANN, BOB):
        history.save(whole_run(f"run-of-{who}"), who)
    visitor.address = BOB
    (records,) = offered(open_page(start, own, "pages/history.py"))
    assert [f"run-of-{who}".encode() in records for who in (ANN, BOB)] == [False, True]

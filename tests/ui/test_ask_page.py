"""The Ask page through app.py: verdict, re-routing without calls, approval, honest degradation."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.data_files import DATA
from crag_core.base.types.decisions import Action
from crag_core.retrieval.index.store import PassageStore
from tests.stand_ins.duckduckgo_server import DuckDuckGoServer, WebResult
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.openai_server import OpenAIServer
from tests.ui.conftest import ask, choose, header, job_named, put_thresholds, settle, shown
from tests.ui.drawn import parts
from ui.session import startup

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "How many pounds does a yacht of ten metres pay a night?"


def test_a_question_shows_verdict_reason_passages_strips_and_quotations(start: Start) -> None:
    app = ask(start(), PRICE)
    text = shown(app)
    assert not app.exception
    assert "CORRECT" in header(app)
    assert "Best chunk 0." in text and "≥ upper 0." in text
    assert "AMBIGUOUS if upper ≥ 0." in text
    assert "harbour-dues.md" in text
    assert "14 pounds a night" in text and "Quoted word for word" in text
    sentences = [row["kept"] for card in parts(app, "sentences") for row in card["rows"]]
    assert True in sentences and False in sentences


def test_moving_a_slider_reroutes_without_any_call(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    app = ask(start(), PRICE)
    calls: list[str] = []
    from crag_core.retrieval.embedding import HuggingFaceEmbedder
    from crag_core.retrieval.index.store import PassageStore

    for owner, name in (
        (HuggingFaceEmbedder, "embed_question"),
        (HuggingFaceEmbedder, "embed_texts"),
        (PassageStore, "search_dense"),
        (PassageStore, "search_keyword"),
    ):
        monkeypatch.setattr(owner, name, lambda *args, name=name, **kwargs: calls.append(name))
    verdicts = []
    for thresholds in ((0.4, 0.99), (0.98, 0.99), (0.0, 0.1)):
        put_thresholds(app, thresholds)
        app.run()
        assert not app.exception
        verdicts.append(header(app))
    assert ["AMBIGUOUS" in verdicts[0], "INCORRECT" in verdicts[1], "CORRECT" in verdicts[2]] == [True] * 3
    assert calls == []
    assert job_named(app, "run") is None


def test_carrying_out_another_route_makes_a_new_run(start: Start) -> None:
    app = ask(start(), PRICE)
    first = app.session_state["trace"]
    choose(app, policy="heuristic")
    put_thresholds(app, (0.0, 1.0))  # AMBIGUOUS: retrieves again
    app.run()
    app.button(key="ask_carry_out").click().run()
    settle(app)
    second = app.session_state["trace"]
    assert second.id != first.id
    assert second.passages == first.passages and second.rounds and not first.rounds


def test_another_evaluator_decides_nothing_before_it_has_graded(start: Start) -> None:
    app = ask(start(), PRICE)
    first = app.session_state["trace"]
    for policy, evaluator, called in (("paper", "embedding", "Embedding similarity"), ("paper", "heuristic", "Heur")):
        choose(app, policy=policy, evaluator=evaluator)
        assert f"Not graded by {called}" in header(app)
        assert not any(action in header(app) for action in Action) and not parts(app, "crag_score_line")
        assert not parts(app, "answer")[0]["blocks"], "nor is the answer shown that the run has"
        assert [one.label for one in app.button if one.key == "ask_carry_out"] == ["Grade (0 LLM calls)"]
        app.button(key="ask_carry_out").click().run()
        settle(app)
        graded = app.session_state["trace"]
        assert graded.id == first.id and graded.grades == first.grades, "the record keeps the grades of both"
        assert "Retrieval: " in header(app) and parts(app, "crag_score_line")
    app.selectbox(key="evaluator").set_value("embedding").run()
    assert "Retrieval: " in header(app), "its grades are there"


def test_asking_first_sends_nothing_before_approval(start: Start) -> None:
    with DuckDuckGoServer([WebResult("Yacht dues", "https://example.org/dues", "A yacht pays dues.")]) as web:
        app = ask(start(CRAG_WEB="ask"), "Who won the chess championship of 1972?")
        assert "INCORRECT" in header(app)
        assert web.queries == []
        query = next(field for field in app.text_input if field.label == "Query")
        assert query.value
        query.set_value("chess championship 1972 winner")
        app.run()
        next(button for button in app.button if button.label == "Search with this").click()
        app.run()
        settle(app)
        assert web.queries == ["chess championship 1972 winner"]
        assert "edited by you" in shown(app)
        assert "Yacht dues" in [head["title"] for head in parts(app, "passage_head")]


def test_a_route_without_the_web_needs_no_approval(start: Start) -> None:
    app = start(CRAG_WEB="ask")
    put_thresholds(app, (0.1, 0.99)).run()
    ask(app, PRICE)
    assert "Search the web?" in shown(app)
    assert "14 pounds a night" in shown(app).split("Search the web?")[0], "what the documents say comes first"
    put_thresholds(app, (0.1, 0.2))
    app.run()
    assert "CORRECT" in header(app) and "Search the web?" not in shown(app)
    app.button(key="ask_carry_out").click().run()
    settle(app)
    assert "14 pounds a night" in shown(app) and "Quoted word for word" in shown(app)


def test_a_suggested_question_runs_once(start: Start) -> None:
    app = start()
    app.button(key="ask_suggestion_0").click().run()
    settle(app)
    first = app.session_state["trace"]
    assert first.question == app.text_input(key="ask_question").value
    for _ in range(3):
        settle(app.run())
    assert app.session_state["trace"] is first


def test_a_question_that_is_sent_with_a_moved_slider_is_asked(start: Start) -> None:
    """As when the page is late: the redraw that the slider asks for takes the place of the form's."""
    app = put_thresholds(ask(start(), PRICE), (0.2, 0.8))
    ask(app, "What does the crane lift?")
    assert app.session_state["trace"].question == "What does the crane lift?" and not app.exception


def test_a_question_asked_during_the_first_start_waits_for_the_documents(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one sample document, since `test_the_first_start_indexes_the_sample_documents` indexes all."""
    (tmp_path / "sample").mkdir()
    shutil.copy(DATA / "sample" / "company-history.txt", tmp_path / "sample")
    (tmp_path / "questions").symlink_to(DATA / "questions")
    monkeypatch.setattr(startup, "DATA", tmp_path)
    whole, let_go = PassageStore.ingest, threading.Event()

    def late(self: PassageStore, *files: Any, **options: Any) -> Any:
        assert let_go.wait(60)
        return whole(self, *files, **options)

    monkeypatch.setattr(PassageStore, "ingest", late)
    app = start(CRAG_HOME=str(tmp_path / "new"))
    app.text_input(key="ask_question").set_value("What did the founders pay for their first boat?")
    next(button for button in app.button if button.label == "Ask").click()
    app.run()
    assert job_named(app, "run").is_running
    let_go.set()
    assert "company-history.txt" in shown(settle(app))


def test_a_server_by_url_is_offered_but_never_chosen_for_the_user(start: Start) -> None:
    with OpenAIServer(ScriptedModel(["hello"])) as server:
        model = start(OPENAI_BASE_URL=server.api_base).selectbox(key="model")
    assert "openai: smollm2" in model.options
    assert model.value == "extractive"

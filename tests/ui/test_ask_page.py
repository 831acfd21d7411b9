"""The Ask page through app.py: verdict, re-routing without calls, approval, honest degradation."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from crag_core.base.data_files import DATA
from crag_core.base.types.decisions import Action
from crag_core.pipeline.model_calls import NotedModel
from crag_core.retrieval.index.store import PassageStore
from crag_core.storage.history import HistoryStore
from crag_core.storage.history.runs import Selection
from crag_core.trace.summary import Ending
from crag_core.trace.trace import Trace
from tests.fakes import QUESTION, Bench, FakeModel
from tests.stand_ins.duckduckgo_server import DuckDuckGoServer, WebResult
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.openai_server import OpenAIServer
from tests.ui.conftest import Start, ask, choose, header, job_named, press, put_thresholds, settle, shown
from tests.ui.drawn import drawn, parts, said
from ui.run.run_page import draw_model_calls
from ui.session import startup

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


def test_the_question_has_one_place_on_the_page_before_and_after_a_run(start: Start) -> None:
    """Streamlit would draw it twice for a moment."""

    def place(app: AppTest) -> list[int]:
        return [at for at, part in app.main.children.items() if isinstance(part, Block) and part.get("text_input")]

    app = start()
    before = place(app)
    assert len(before) == 1 and place(ask(app, PRICE)) == before


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


# --- model calls: each with what was sent and what came back, as text and nothing else -------------------------------


def page(run: Trace) -> None:
    draw_model_calls(run)


def opened(run: Trace, place: int = 0) -> AppTest:
    app = drawn(page, run=run)
    app.session_state["calls_drawer"] = True
    app.run()
    return app.selectbox[0].set_value(place).run() if place else app


def blocks(app: AppTest) -> list[str]:
    assert not app.exception
    return [str(block.value) for block in app.code]


def test_the_messages_of_a_fake_model_and_its_replies_appear_exactly() -> None:
    model = FakeModel()
    run = Bench("agentic", best=0.1, model=NotedModel(model)).pipeline.run(QUESTION)
    assert len(model.asked) > 1
    for place, ((_, messages), call) in enumerate(zip(model.asked, run.calls, strict=True)):
        app = opened(run, place)
        assert blocks(app) == [*(text for _, text in messages), call.reply]
        roles = [line.strip("*") for line in said(app).splitlines() if line.startswith("**")]
        assert roles == [*(role for role, _ in messages), "reply"]


# --- a record that is carried on: the same run, or one of its own beside it ------------------------------------------


CHESS = "Who won the chess championship of 1972?"


@pytest.fixture
def history(home: Path) -> HistoryStore:
    return HistoryStore(home / "crag.db")


@pytest.fixture
def waiting(start: Start) -> AppTest:
    return ask(start(CRAG_WEB="ask"), CHESS)


def refused(app: AppTest) -> Trace:
    press(app, "Do not search")
    found = app.session_state["trace"]
    assert isinstance(found, Trace) and found.answer is not None
    return found


def test_a_run_that_waited_is_one_run_in_the_history(waiting: AppTest, history: HistoryStore) -> None:
    before, first = history.count(), waiting.session_state["trace"]
    assert history.find(first.id).ending is Ending.WAITING
    done = refused(waiting)
    assert done.id == first.id and history.count() == before
    assert history.load(done.id) == done and history.find(done.id).ending is Ending.DONE
    assert [one.id for one in waiting.session_state["AskPage"].earlier].count(done.id) == 1


@pytest.mark.parametrize("whose", ["somebody else's", "from a file"])
def test_a_run_that_is_not_this_visitors_stays_as_it_is(waiting: AppTest, history: HistoryStore, whose: str) -> None:
    other = replace(waiting.session_state["trace"], id="of-another")
    if whose == "from a file":
        history.save_import(other)
    else:
        history.save(other, "eve@example.org")
    waiting.session_state["trace"] = other
    done = refused(waiting.run())
    assert done.id != other.id and history.load(other.id) == other
    assert history.find(done.id).asked_by == "" and not history.find(done.id).is_imported
    history.delete_all(Selection(ids=(other.id,)))

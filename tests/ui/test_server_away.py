"""A model server that is killed and comes back: what was chosen stays chosen, and a run goes on as it was begun."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.trace import Trace
from tests.judge import heard, judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import Start, ask, choose, press, shown
from ui.session import app_state
from ui.shell import sidebar

PRICE = "What does a yacht of nine metres pay for a night?"
SMALL, LARGE = "ollama/smollm2:135m", "ollama/other:1b"


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer(ScriptedModel(judging()), models=["other:1b", "smollm2:135m"]) as running:
        yield running


def look_again(app: AppTest) -> AppTest:
    """As after ten seconds, when the last look is too old."""
    app_state.look_for_models.clear()
    app_state.look_again.clear()
    return app.run()


def kill(server: OllamaServer, app: AppTest) -> AppTest:
    server.stop()
    return look_again(app)


def taken(app: AppTest) -> Trace:
    found = app.session_state["trace"]
    assert isinstance(found, Trace)
    return found


def test_a_chosen_model_that_is_away_stays_chosen_and_is_shown_as_away(start: Start, server: OllamaServer) -> None:
    app = choose(start(OLLAMA_HOST=server.url), model=SMALL)
    kill(server, app)
    box = app.selectbox(key="model")
    assert box.value == SMALL and "ollama: smollm2:135m (not reachable)" in shown(app)
    assert "Quotations, no model" in box.options and "stays chosen" in shown(app)
    app.run()
    assert app.selectbox(key="model").value == SMALL
    server.start()
    look_again(app)
    assert app.selectbox(key="model").value == SMALL and not app.exception
    assert app.selectbox(key="model").options[:2] == ["ollama: other:1b", "ollama: smollm2:135m"]


def test_continue_is_of_the_run_and_not_of_the_sidebar(start: Start, server: OllamaServer) -> None:
    app = choose(start("", "worst-chunk", OLLAMA_HOST=server.url, CRAG_TOP_K="3"), evaluator="llm", model=SMALL)
    server.faults.status = 500
    broken = taken(ask(app, PRICE))
    server.faults.clear()
    assert "ask_continue_otherwise" not in [button.key for button in app.button]
    choose(app, evaluator="embedding", model=EXTRACTIVE, policy="paper")
    assert "The run goes on as it was begun" in shown(app)
    press(app, "Continue from here")
    done = taken(app)
    assert not app.error and done.id == broken.id and heard(server)["answer"] == 1
    assert (done.settings.policy.name, done.settings.evaluator.name, done.settings.writer) == (
        *("worst-chunk", "llm", SMALL),
    )


def test_a_run_that_broke_off_goes_on_in_another_session_as_it_was_begun(start: Start, server: OllamaServer) -> None:
    """Its sidebar has the first model, and nothing pinned."""
    app = choose(start("", "worst-chunk", OLLAMA_HOST=server.url, CRAG_TOP_K="3"), evaluator="llm", model=SMALL)
    server.faults.status = 500
    broken = taken(ask(app, PRICE))
    server.faults.clear()
    other = AppTest.from_file(app._script_path, default_timeout=60)
    other.query_params["run"] = broken.id
    other.run()
    assert other.selectbox(key="model").value == LARGE
    press(other, "Continue from here")
    assert taken(other).settings.writer == SMALL and taken(other).failure is None


# --- noticed by itself ----------------------------------------------------------------------------------------------


def test_a_server_that_is_back_is_found_at_the_next_look_of_the_strip(start: Start, server: OllamaServer) -> None:
    """What its timer does every six seconds, without a click."""
    server.stop()
    app = start(OLLAMA_HOST=server.url)
    with_settings = app.session_state["config"]
    before = app_state.look_for_models(with_settings)
    assert not before.ollama.reachable and sidebar._LOOK_EVERY + 3 < 10
    server.start()
    assert not app_state.look_for_models(with_settings).ollama.reachable, "remembered for ten seconds"
    app_state.look_again.clear()
    assert app_state.look_again(with_settings).ollama.reachable
    assert app_state.look_for_models(with_settings).ollama.reachable


def test_a_session_begun_without_it_stays_with_quotations_until_the_model_is_taken(
    start: Start, server: OllamaServer
) -> None:
    server.stop()
    app = start(OLLAMA_HOST=server.url)
    server.start()
    look_again(app)
    assert app.selectbox(key="model").value == EXTRACTIVE
    app.button(key="writer_best").click().run()
    assert app.selectbox(key="model").value == LARGE and not app.exception

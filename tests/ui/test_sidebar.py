"""The sidebar: presets, policy files of one's own and broken ones, and what it says of what does not work."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from tests.judge import judging
from tests.policy_files import paper_with, use_folder
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import Start, ask, choose, header, press, shown
from tests.ui.drawn import parts, popovers
from ui.session import app_state

PRICE = "How many pounds does a yacht of ten metres pay a night?"


# --- the cost of a question -----------------------------------------------------------------------------------------


def test_budget_is_told_by_route_and_holds(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = choose(start(OLLAMA_HOST=server.url, CRAG_TOP_K="3"), policy="worst-chunk")
        assert "LLM calls: :green[Correct] 4 · :orange[Ambiguous] 7 · :red[Incorrect]" in shown(app)
        ask(app, PRICE)
        assert "CORRECT" in header(app) and server.chat_calls == 4
    assert app.session_state["trace"].usage.calls == 4


def test_the_legend_says_what_no_score_can_bring_about(start: Start) -> None:
    app = choose(start(), policy="astute-rag")
    assert "nothing retrieved" in shown(app) and "below 0.00" not in shown(app)
    assert "nothing retrieved" not in shown(choose(app, policy="paper"))


def test_a_collection_stays_in_the_address_for_a_reload(start: Start, own: Path) -> None:
    Workbench(Config(home=own)).store.ingest([("boats.md", b"The ferry sails at nine.")], collection="Boats")
    app = start(CRAG_HOME=str(own), address={"collection": "Boats"})
    assert app.selectbox(key="collection").value == app.session_state["collection"] == "Boats" and not app.exception


@pytest.mark.parametrize(("said", "setting"), [("Off", "off"), ("Auto", "ask"), ("Nonsense", "ask")])
def test_a_link_sets_the_web_no_more_freely_than_the_settings(start: Start, said: str, setting: str) -> None:
    app = start(CRAG_WEB="ask", address={"web": said})
    assert app.session_state["web"] == setting and not app.exception


def test_one_click_takes_a_local_model_as_writer_and_tells_its_calls(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = start(OLLAMA_HOST=server.url)
        app.session_state["model"] = "extractive"
        app.run()
        assert "LLM calls of a run then: CORRECT 1 · AMBIGUOUS 1 · INCORRECT 0" in shown(app)
        app.button(key="writer_best").click().run()
        assert app.session_state["model"].startswith("ollama/") and "LLM calls of a run then" not in shown(app)


def test_sliders_are_told_again_what_they_hold_after_a_connection_was_made_anew(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser may have forgotten it with a page that was cut off in the middle."""
    app = start()
    told = [app.slider(key="strips").set_value(0.07).run().slider(key="strips").proto.set_value]
    monkeypatch.setattr(app_state, "_connection", lambda: "another")
    for held_for in (30.0, 0.0):
        monkeypatch.setattr(app_state, "_HELD_FOR", held_for)
        slider = app.run().slider(key="strips")
        told.append(slider.proto.set_value)
        assert slider.value == 0.07
    assert told == [False, True, False]


# --- presets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "label", "thresholds", "cutoff"),
    [
        ("worst-chunk", "Conservative: 0.40 and 0.80", (0.4, 0.8), None),
        ("paper", "Popqa: 0.005 and 0.795", (0.005, 0.795), 0.25),
    ],
)
def test_preset_moves_the_sliders(
    start: Start, policy: str, label: str, thresholds: tuple[float, float], cutoff: float | None
) -> None:
    app = choose(start(), policy=policy)
    if policy == "worst-chunk":  # whose presets are for scores of the evaluator that it was described with
        choose(app, evaluator="llm")
    before, start_from = app.slider(key="strips").value, app.slider(key="thresholds").value
    press(app, label)
    assert not app.exception
    assert app.slider(key="thresholds").value == thresholds
    assert app.slider(key="strips").value == (before if cutoff is None else cutoff)
    press(app, "Back to the defaults")
    assert app.slider(key="thresholds").value == start_from, "those of the evaluator"


@pytest.mark.usefixtures("unfolded")
def test_the_limit_of_sentences_is_seen_moved_and_decides_again_at_once(start: Start) -> None:
    app = ask(start(), "What do yachts pay a night?")
    trace = app.session_state["trace"]
    slider = app.select_slider(key="sentences")
    assert slider.label == "Sentences kept, at most" and slider.value == trace.settings.policy.refinement.top == 5
    slider.set_value(1).run()
    assert not app.exception and app.session_state["trace"] is trace
    assert "Changed: at most 1 sentence instead of 5" in popovers(app)
    cutoff = app.slider(key="strips").value
    app.slider(key="strips").set_value(0.0).run()  # every sentence is good enough
    assert any("over the 1-sentence limit" in part["note"] for part in parts(app, "sentences"))
    app.select_slider(key="sentences").set_value(0).run()
    assert not any("-sentence limit" in part["note"] for part in parts(app, "sentences"))
    app.slider(key="strips").set_value(cutoff).run()
    assert "Changed: no sentence limit instead of 5" in popovers(app)
    press(app, "Back to the defaults")
    assert app.session_state["sentences"] == 5


# --- files in data/policies -----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return use_folder(tmp_path / "policies", monkeypatch)


def test_broken_policy_files_are_told_and_the_app_works_without_them(start: Start, folder: Path) -> None:
    (folder / "mine.toml").write_text(paper_with("upper =", "uper ="), "utf-8")
    (folder / "theirs.toml").write_bytes(b"\xff\xfe")
    app = ask(start(), PRICE)
    assert not app.exception
    assert app.selectbox(key="policy").options == ["Paper"]
    text = shown(app)
    assert "policy mine.uper: unknown key. Did you mean 'upper'?" in text
    assert "Policy 'theirs' cannot be read" in text
    assert "CORRECT" in header(app)


def test_without_any_usable_policy_the_app_says_so(start: Start, folder: Path) -> None:
    (folder / "paper.toml").write_text("upper", "utf-8")
    app = start()
    assert not app.exception
    assert "No policy can be used" in shown(app)
    assert "Policy 'paper' is not valid TOML" in app.code[0].value


def test_own_policy_file_can_be_chosen_and_decides(start: Start, folder: Path) -> None:
    own = paper_with('"Paper"', '"My own"').replace('"Correct"', '"Good enough"').replace("0.55", "0.50")
    (folder / "mine.toml").write_text(own, "utf-8")
    app = choose(start(), policy="mine")
    assert app.selectbox(key="policy").options == ["My own", "Paper"]
    assert app.slider(key="thresholds").value == (0.4, 0.5)
    ask(app, PRICE)
    assert not app.exception
    assert "CORRECT · Good enough" in header(app)
    assert app.session_state["trace"].settings.policy.name == "mine"
    app.switch_page("pages/policies.py").run().run()
    assert not app.exception and "**My own**" in list(app.table[0].value["Policy"])


# --- what does not work ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"CRAG_CACHE": "rediss"}, "CRAG_CACHE"),
        ({"CRAG_WEB_PROVIDERS": "searxng", "CRAG_SEARXNG_URL": "nonsense", "CRAG_WEB": "ask"}, "found 'nonsense'"),
        ({"KB_AGENT_MAX_ITERATION": "3"}, "Did you mean KB_AGENT_MAX_ITERATIONS?"),
    ],
)
def test_wrong_setting_is_told_on_the_page(start: Start, environment: dict[str, str], words: str) -> None:
    app = start(**environment)
    assert not app.exception
    assert words in shown(app) + "".join(str(code.value) for code in app.code)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (["0.4", "0.9"], (0.4, 0.9)),
        (["0.9", "0.4"], (0.4, 0.9)),
        *((wrong, (0.5, 0.75)) for wrong in ([], ["0.4"], ["nan", "1"], ["x", "1"], ["0.5", "2"])),
    ],
)
def test_thresholds_of_the_address(said: list[str], found: tuple[float, float]) -> None:
    def script() -> None:
        import streamlit as st

        from ui.session import app_state

        st.session_state["found"] = app_state._in_address("thresholds", (0.5, 0.75))

    app = AppTest.from_function(script)
    if said:
        app.query_params["thresholds"] = said
    assert app.run().session_state["found"] == found

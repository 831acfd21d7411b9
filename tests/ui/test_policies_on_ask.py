"""What single policies ask of the Ask page: plain RAG, two scores, further rounds, and the model's own knowledge."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.report import render
from tests.judge import heard, judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import Start, ask, choose, header, press, put_thresholds, shown, thresholds
from tests.ui.drawn import parts, popovers

PRICE = "How many pounds does a yacht of ten metres pay a night?"
CHESS = "Who won the chess championship of 1972?"
VERDICTS = ("CORRECT", "AMBIGUOUS", "holds up", "Overall score", "Best chunk 0.", "AMBIGUOUS if")

# --- plain RAG: nothing is graded, and the page makes up no verdict ---------------------------------------------------


def switch(app: AppTest, on: bool) -> AppTest:
    return app.toggle(key="ask_plain").set_value(on).run()


def plainly(app: AppTest) -> AppTest:
    return ask(switch(app, True), PRICE)


def test_the_page_shows_no_verdict_no_score_and_no_threshold_of_a_plain_run(start: Start) -> None:
    app = plainly(start())
    text = shown(app)
    assert header(app) == ":gray-badge[Not graded]"
    assert not [word for word in VERDICTS if word in text], text
    assert "no score to compare with a threshold" in text and not parts(app, "crag_score_line")
    assert all(not head["action"] and not head["chips"] for head in parts(app, "passage_head"))
    assert "Was this route right?" not in text and "Was this answer right?" in text


def test_the_switch_shows_the_same_record_as_crag_would_and_back(start: Start) -> None:
    app = plainly(start())
    switch(app, False)
    text = shown(app)
    assert "Changed: policy Paper instead of Plain…" in popovers(app), "and no threshold, for plain RAG has none"
    assert "Not graded by Trained evaluator yet" in text and "instead of cross-encoder" not in text
    press(app, next(button.label for button in app.button if "Generate (" in button.label))
    assert "CORRECT" in header(app) and app.session_state["trace"].grades is not None
    assert app.session_state["trace"].settings.policy.name == "paper"
    switch(app, True)
    assert "Not graded" in header(app) and any("policy Plain RAG" in one for one in popovers(app))


def test_an_earlier_run_is_opened_as_it_was_asked(start: Start, own: Path) -> None:
    app = plainly(start(CRAG_HOME=str(own)))
    plain = app.session_state["trace"]
    again = start(address={"run": plain.id}, CRAG_HOME=str(own))
    assert again.session_state["ask_plain"] and "Not graded" in header(again)
    assert "not to be had here" not in shown(again)


# --- others -----------------------------------------------------------------------------------------------------------


def test_every_round_is_shown_with_query_finds_and_verdict(start: Start) -> None:
    app = ask(choose(start(), policy="agentic"), CHESS)
    (told,) = (str(element.value) for element in app.markdown if str(element.value).startswith("**1** · "))
    first, second, third = told.replace("\\", "").split("\n\n")
    assert first.startswith("**1** · first retrieval, meaning and words together · 3 chunks → :red[")
    assert f"**2** · keyword: “{CHESS}”, the question, by its words alone, keyword · 0 chunks →" in second
    assert second.endswith("nothing was retrieved")
    assert "**3** · rewritten: “won chess championship 1972”" in third and "by meaning, dense · 3 chunks" in third
    assert "INCORRECT · Re-retrieve" in header(app)


@pytest.mark.usefixtures("unfolded")
def test_what_the_model_knows_stands_beside_the_evidence_with_their_conflict_on_page_and_in_the_report(
    start: Start,
) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = choose(start(OLLAMA_HOST=server.url, CRAG_TOP_K="3"), policy="astute-rag")
        assert ":green[Found] 2–3 · :orange[Uncertain] 2–3 · :red[Not found] 0–3" in shown(app)
        ask(app, PRICE)
        assert dict(heard(server)) == {"recall": 1, "consolidate": 1, "answer": 1} and not app.exception
    trace = app.session_state["trace"]
    for text in (shown(app), html.unescape(render(trace, trace.settings.policy))):
        assert "The model's own knowledge" in text and "A night is free, as far as I know." in text
        assert "Conflict: [1] against the model's memory." in text and "No evidence: it is not graded" in text
        assert "Only the model's own knowledge says: " in text
    choose(app, policy="paper")
    assert "The model's own knowledge" not in shown(app)


def test_thresholds_of_two_scores_have_sliders_that_cross_and_others_one_range(start: Start) -> None:
    app = ask(choose(start(), policy="two-signal"), PRICE)
    put_thresholds(app, (0.9, 0.4)).run()
    assert [slider.label for slider in app.slider][:2] == ["Bar for an answer", "Bar for the subject"]
    (picture,) = parts(app, "crag_score_line")
    assert [(mark["name"], mark["value"]) for mark in picture["marks"]] == [("lower", 0.9), ("upper", 0.4)]
    choose(app.run(), policy="paper")
    assert not app.exception and app.slider(key="thresholds").label == "Thresholds, lower and upper"
    assert {slider.key for slider in app.slider}.isdisjoint({"lower", "upper"})
    choose(app, policy="two-signal")
    assert not app.exception and thresholds(app)[0] <= thresholds(app)[1], "those to start from"

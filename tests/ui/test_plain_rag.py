"""Plain RAG for one question on the Ask page: nothing is graded, and the page makes up no verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.conftest import ask, header, press, shown
from tests.ui.drawn import parts, popovers

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "How many pounds does a yacht of ten metres pay a night?"
VERDICTS = ("CORRECT", "AMBIGUOUS", "holds up", "Overall score", "Best chunk 0.", "AMBIGUOUS if")


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

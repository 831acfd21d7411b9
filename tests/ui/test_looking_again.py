"""Policies that retrieve more than once: every iteration is shown, and so is what each retrieval brought."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.judge import heard, judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import ask, choose, header, put_thresholds, settle, shown

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "What does a yacht of nine metres pay for a night?"
CHESS = "Who won the chess championship of 1972?"


def decision_path(app: AppTest) -> list[str]:
    """The lines of the card "Looked again"; empty without it."""
    told = [str(element.value) for element in app.markdown if str(element.value).startswith("**1** · ")]
    return told[0].replace("\\", "").split("\n\n") if told else []


def test_every_iteration_is_shown_with_query_finds_and_verdict(start: Start) -> None:
    app = ask(choose(start(), policy="agentic"), CHESS)
    first, second, third = decision_path(app)
    assert first.startswith("**1** · first retrieval, meaning and words together · 3 chunks → :red[")
    assert f"**2** · keyword: “{CHESS}”, the question, by its words alone, keyword · 0 chunks →" in second
    assert second.endswith("nothing was retrieved")
    assert "**3** · rewritten: “won chess championship 1972”" in third and "by meaning, dense · 3 chunks" in third
    assert "INCORRECT · Re-retrieve" in header(app)


def test_round_that_a_slider_asks_for_is_offered_and_then_made_without_grading_again(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging(0.8))) as server:
        app = ask(choose(start(policy="", OLLAMA_HOST=server.url), policy="agentic"), PRICE)
        assert decision_path(app) == [] and heard(server) == {"list": 1, "answer": 1}
        put_thresholds(app, (0.3, 0.9)).run()
        assert "AMBIGUOUS · Refine" in header(app)
        assert heard(server) == {"list": 1, "answer": 1}, "moving a slider asks nobody"
        assert "another round of retrieval" in shown(app)
        app.button(key="ask_carry_out").click().run()
        settle(app)
        assert len(decision_path(app)) == 3
        assert heard(server) == {"list": 1, "keywords": 2, "answer": 2}, "all chunks were graded before"

"""Policies of newer papers on the pages: what the sidebar says, what a run shows, and what is missing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.report import render
from crag_core.trace.trace import Trace
from tests.judge import heard, judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.ui.conftest import ask, choose, header, press, shown
from tests.ui.drawn import parts

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "How many pounds does a yacht of ten metres pay a night?"


def stage(app: AppTest, name: str) -> dict[str, object]:
    (path,) = parts(app, "crag_path")
    return next(one for one in path["stages"] if one["id"] == name)


@pytest.mark.usefixtures("unfolded")
def test_not_enough_together_is_no_answer_on_page_and_in_the_report(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging(0.1))) as server:
        app = choose(start(OLLAMA_HOST=server.url, CRAG_TOP_K="3"), policy="sufficient-context")
        assert "No language model:" not in shown(app)
        assert ":green[Sufficient] 2 · :orange[Insufficient] 1 · :red[Nothing to use] 0 to 1" in shown(app)
        ask(app, PRICE)
        assert dict(heard(server)) == {"sufficient": 1}
        trace: Trace = app.session_state["trace"]
        page, report = shown(app), render(trace, trace.settings.policy)
        for text in (page, report):
            assert "Insufficient" in text and "sufficiency 0.00 between lower 0.00 and upper" in text
        assert "AMBIGUOUS" in header(app) and "3 chunks read together: not sufficient. as told" in page
        tip = str(stage(app, "grade")["tip"])
        assert "3 graded" in tip and tip.endswith(f". Read together by {MODEL}: not enough")
        cards = [one for one in trace.grades or () if one.score is not None]
        assert len(cards) == 3, "no card is blank"


def test_without_a_language_model_the_page_says_what_decides_instead(start: Start) -> None:
    app = choose(start(), policy="sufficient-context")
    told = "No language model: The best chunk decides in place of the whole context."
    assert shown(app).count(told) == 1
    ask(app, PRICE)
    assert shown(app).count(told) >= 2, "in the sidebar, and as a note of the run"
    assert "best chunk" in shown(app).lower() and not app.exception


def test_a_run_of_another_policy_lacks_the_judgement_and_supplies_it_at_one_press(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging(0.9))) as server:
        app = ask(start(OLLAMA_HOST=server.url, CRAG_TOP_K="3"), PRICE)
        choose(app, policy="sufficient-context")
        assert "a judgement of the whole context" in shown(app) and "nobody has judged" in shown(app).lower()
        asked = heard(server)["sufficient"]
        press(app, "Generate (about 2 LLM calls)")
        assert (asked, heard(server)["sufficient"]) == (0, 1)
        assert "CORRECT" in header(app) and not app.exception

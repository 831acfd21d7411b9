"""Policies of newer papers on the pages: what the sidebar says, what a run shows, and what is missing."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.report import render
from crag_core.trace.trace import Trace
from tests.judge import heard, judging
from tests.stand_ins.engines import Message, Reply, ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.ui.conftest import ask, choose, header, shown
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
        assert ":green[Sufficient] 2 · :orange[Insufficient] 1 · :red[Nothing to use] 0–1" in shown(app)
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


def sorting(letter: str) -> Callable[[Sequence[Message]], Reply]:
    replies = judging()

    def reply(messages: Sequence[Message]) -> Reply:
        is_sorting = str(messages[0]["content"]).startswith("You sort")
        return {"verdict": letter} if is_sorting else replies(messages)

    return reply


@pytest.mark.usefixtures("unfolded")
def test_what_the_model_knows_stands_beside_the_evidence_with_their_conflict_on_page_and_in_the_report(
    start: Start,
) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = choose(start(OLLAMA_HOST=server.url, CRAG_TOP_K="3"), policy="astute-rag")
        assert ":green[Found] 2–3 · :orange[Uncertain] 2–3 · :red[Not found] 0–3" in shown(app)
        ask(app, PRICE)
        assert dict(heard(server)) == {"recall": 1, "consolidate": 1, "answer": 1} and not app.exception
        trace: Trace = app.session_state["trace"]
        for text in (shown(app), html.unescape(render(trace, trace.settings.policy))):
            assert "The model's own knowledge" in text and "A night is free, as far as I know." in text
            assert "Conflict: [1] against the model's memory." in text and "No evidence: it is not graded" in text
            assert "Only the model's own knowledge says: " in text
        assert str(stage(app, "assemble")["tip"]).startswith("Consolidate: 3 excerpts and memory") or str(
            stage(app, "assemble")["tip"]
        ).startswith("Consolidate, 3 excerpts and memory")
        choose(app, policy="paper")
        assert "The model's own knowledge" not in shown(app)


# --- beside the others ------------------------------------------------------------------------------------------------

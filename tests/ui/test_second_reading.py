"""A policy that asks a second evaluator, on the Ask page and in the report: who was asked, and what counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.report import render
from crag_core.trace.trace import Trace
from tests.judge import heard, judging
from tests.policy_files import paper_with, use_folder
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import ask, choose, shown
from tests.ui.drawn import parts

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "How many pounds does a yacht of ten metres pay a night?"


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """The one policy, graded by embedding, asks this evaluator about every chunk."""

    def asking(evaluator: str) -> None:
        folder = use_folder(tmp_path / "policies", monkeypatch)
        wanted = f'second_opinion = {{ evaluator = "{evaluator}", band = [0.0, 1.0] }}\nrefine_web'
        (folder / "paper.toml").write_text(paper_with("refine_web", wanted), "utf-8")

    return asking


def graded(app: AppTest) -> str:
    """What the path says of the grades."""
    (path,) = parts(app, "crag_path")
    return next(str(stage["tip"]) for stage in path["stages"] if stage["id"] == "grade")


@pytest.mark.usefixtures("unfolded")
def test_the_trained_evaluator_reads_after_cosine_and_page_and_report_say_so(
    start: Start, second: Callable[[str], None]
) -> None:
    second("cross-encoder")
    app = ask(choose(start(), evaluator="embedding"), PRICE)
    trace: Trace = app.session_state["trace"]
    count = len(trace.grades or ())
    assert all(grade.second and grade.second.evaluator == "cross-encoder" for grade in trace.grades or ())
    assert graded(app).endswith(
        f". by Embedding similarity. Second opinion: {count} of {count} chunks, by Trained evaluator"
    )
    page, report = shown(app), render(trace, trace.settings.policy)
    for text in (page, report):
        assert text.count("second opinion by Trained evaluator: ") >= count and ", counts as " in text
    assert "by Trained evaluator" in report and trace.usage.calls == 0


def test_a_language_model_is_asked_second_and_what_it_cost_is_told(start: Start, second: Callable[[str], None]) -> None:
    second("llm")
    with OllamaServer(ScriptedModel(judging())) as server:
        app = choose(start(OLLAMA_HOST=server.url, CRAG_TOP_K="3"), evaluator="embedding")
        assert ":green[Correct] 1–4 · :orange[Ambiguous] 1–4" in shown(app), "three chunks at most, and the answer"
        ask(app, PRICE)
        assert heard(server)["judge"] == 3 and app.session_state["trace"].usage.calls == 4
    assert graded(app).endswith("Second opinion: 3 of 3 chunks, by Language model")


def test_without_a_language_model_the_page_says_that_the_first_scores_stay(
    start: Start, second: Callable[[str], None]
) -> None:
    second("llm")
    app = ask(choose(start(), evaluator="embedding"), PRICE)
    told = "by Embedding similarity. Second opinion: no language model to ask; first scores kept"
    assert graded(app).endswith(told) and "second opinion by" not in shown(app)
    trace = app.session_state["trace"]
    assert told in render(trace, trace.settings.policy)
    assert not app.exception and trace.failure is None


def test_a_model_that_goes_away_leaves_the_first_scores_and_an_answer(
    start: Start, second: Callable[[str], None]
) -> None:
    second("llm")
    with OllamaServer(ScriptedModel(judging())) as server:
        app = choose(start(OLLAMA_HOST=server.url, CRAG_TOP_K="3"), evaluator="embedding")
    ask(app, PRICE)
    assert "first score kept for 3" in graded(app), graded(app)
    assert app.session_state["trace"].decision.score == max(one.score for one in app.session_state["trace"].grades)

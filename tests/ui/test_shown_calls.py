"""The model calls of a run on its page: each with what was sent and what came back, as text and nothing else."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from crag_core.pipeline.model_calls import NotedModel
from crag_core.trace.trace import Trace
from tests.fakes import QUESTION, Bench, FakeModel
from tests.ui.drawn import drawn, said
from ui.run.run_page import draw_model_calls


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

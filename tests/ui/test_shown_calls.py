"""The model calls of a run on its page: each with what was sent and what came back, as text and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.types.steps import ModelCall
from crag_core.pipeline.model_calls import NotedModel
from crag_core.trace.trace import Trace
from tests.builders import policy, trace
from tests.fakes import QUESTION, Bench, FakeModel
from tests.judge import judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import ask, choose
from tests.ui.drawn import drawn, said
from ui.run.run_page import draw_model_calls

HOSTILE = (
    "</code><script>alert(1)</script> **bold** ``` \u202eevil\ud800\x00\n# heading\n\t:red[x] [x](javascript:alert(1))"
)
SHOWN = HOSTILE.replace("\u202e", "").replace("\ud800", "").replace("\x00", "")


def page(run: Trace) -> None:
    draw_model_calls(run)


def opened(run: Trace, place: int = 0) -> AppTest:
    app = drawn(page, run=run)
    app.session_state["calls_drawer"] = True
    app.run()
    return app.selectbox[0].set_value(place).run() if place else app


def run_with(*calls: ModelCall) -> Trace:
    return trace(policy("paper"), calls=calls)


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


@pytest.mark.embedding
def test_the_ask_page_shows_what_the_server_was_sent(start: Callable[..., AppTest]) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = choose(start(OLLAMA_HOST=server.url, CRAG_TOP_K="3"), policy="worst-chunk")
        ask(app, "How many pounds does a yacht of ten metres pay a night?")
        sent = [body["messages"] for path, body in server.requests if path == server.chat_path]
    run = app.session_state["trace"]
    assert len(run.calls) == len(sent) == run.usage.calls
    as_sent = Counter(tuple((one["role"], one["content"]) for one in messages) for messages in sent)
    assert as_sent == Counter(call.messages for call in run.calls)
    app.session_state["calls_drawer"] = True
    app.run()
    (drawer,) = (one for one in app.expander if one.label == f"Model calls ({len(sent)})")
    assert [str(block.value) for block in drawer.code] == [
        *(text for _, text in run.calls[0].messages),
        run.calls[0].reply,
    ]

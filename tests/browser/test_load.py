"""Many sessions at once on one process: nobody sees another's run, nothing is lost, the line is empty after."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.browser import crowd
from tests.browser.conftest import PATIENCE, ROOT, ask, find_port, serve, stop_button
from tests.matrix import mostly
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer

pytestmark = [pytest.mark.browser, pytest.mark.embedding]

ROUNDS = 2
ALLOWED = 1.5
"""Times the memory that one visitor leaves behind; 25 sessions with their runs take a few megabytes each."""


@pytest.mark.parametrize("sessions", mostly(8, 25))
def test_a_crowd_with_a_slow_model_that_stops_reloads_and_leaves_loses_nothing(tmp_path: Path, sessions: int) -> None:
    """They have each way to end a run once with a model and once without; two run at a time, the others wait."""
    port = find_port()
    reply = "It leaves at nine [1]."
    with OllamaServer(ScriptedModel(lambda messages: reply, delay_s=0.05)) as server:
        settings = {"OLLAMA_HOST": server.url, "CRAG_MODEL": f"ollama/{MODEL}", "CRAG_METRICS_PORT": str(port)}
        with serve(tmp_path, ROOT / "app.py", **settings) as url:
            process = crowd.process_at(url)
            alone = asyncio.run(crowd.visit(url, 1, 1, has_model=True))
            before = crowd.size_of(process)
            tally = asyncio.run(crowd.visit(url, sessions, ROUNDS, is_mixed=True, has_model=True, first=1))
            assert crowd.wait_until_idle(port), "somebody still waits in line"
            after = crowd.size_of(process)
            later = asyncio.run(crowd.visit(url, 1, 1, first=100))
        tally.asked += alone.asked + later.asked
        tally.errors += alone.errors + later.errors
        assert crowd.problems(tally, tmp_path) == []
        assert len(tally.asked) == sessions * ROUNDS + 2
        assert {asked.ending for asked in tally.asked} == set(crowd.ENDINGS)
        assert max(tally.places) > 0, "the line was seen, with places"
        assert after.now < ALLOWED * before.now, (before, after)
        assert server.active == 0 and server.chat_calls > 0


def test_a_page_whose_ticks_have_stopped_is_drawn_anew(page: Page, tmp_path: Path) -> None:
    """Nothing that Streamlit's own timers send gets through; the question that was typed meanwhile does."""

    def pass_on(route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        route.on_message(lambda sent: None if is_tick(sent) else server.send(sent))

    def is_tick(sent: str | bytes) -> bool:
        return isinstance(sent, bytes) and BackMsg.FromString(sent).rerun_script.is_auto_rerun

    page.route_web_socket(re.compile("_stcore/stream"), pass_on)
    with (
        OllamaServer(ScriptedModel(lambda messages: "It leaves at nine [1].", delay_s=2.5)) as server,
        serve(tmp_path, OLLAMA_HOST=server.url, CRAG_MODEL=f"ollama/{MODEL}") as url,
    ):
        page.goto(url)
        question, stop = page.get_by_label("Your question"), stop_button(page)
        for asked, typed in (
            ("When does the first boat leave?", "Who founded it?"),
            ("Which vessels are there?", "Why?"),
        ):
            ask(page, asked)
            expect(stop).to_be_visible()
            question.fill(typed)
            # The first one waits for the documents.
            expect(page.get_by_role("heading", name="Retrieval:")).to_be_visible(timeout=5 * PATIENCE)
            expect(stop).to_have_count(0)
        expect(question).to_be_focused()
        question.press("Enter")
        expect(stop).to_be_visible()

"""A connection that drops in the middle of a run and comes back, as that of a phone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.storage.history import HistoryStore
from tests.browser.conftest import PATIENCE, ask, serve, settled, stop_button
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import wait_until
from tests.stand_ins.ollama_server import MODEL, OllamaServer

pytestmark = [pytest.mark.browser, pytest.mark.embedding]

QUESTION, NEXT = "Where are dues paid?", "Who keeps the office on weekdays?"
ANSWER = "Dues are paid to the harbourmaster, at the harbour office, every evening [1]."


class Line:
    """What a page reaches the server by."""

    def __init__(self, page: Page) -> None:
        self.opened = 0
        self._is_cut = False
        self._ends: list[WebSocketRoute] = []
        page.route_web_socket(re.compile("_stcore/stream"), self._connect)
        page.route(re.compile("_stcore/"), self._answer)

    def cut(self) -> None:
        self._is_cut = True
        for end in self._ends:
            end.close()

    def mend(self) -> None:
        self._is_cut = False

    def _connect(self, browser: WebSocketRoute) -> None:
        if self._is_cut:
            browser.close()
            return
        self.opened += 1
        self._ends = [browser.connect_to_server(), browser]

    def _answer(self, route: Route) -> None:
        if self._is_cut:
            route.abort()
        else:
            route.continue_()


@pytest.mark.parametrize("is_session_kept", [True, False])
def test_a_run_goes_on_without_its_page_which_finds_it_again(page: Page, tmp_path: Path, is_session_kept: bool) -> None:
    """In mid-run, where Streamlit keeps the session; after the end of the run, where it has forgotten it."""
    (tmp_path / "sample-indexed").touch()
    text = b"Dues are paid at the harbour office before eight in the evening. Dr. Ames keeps the office on weekdays."
    Workbench(Config(home=tmp_path)).store.ingest([("dues.txt", text)])
    history, line = HistoryStore(tmp_path / "crag.db"), Line(page)
    kept_for = "600" if is_session_kept else "0"
    with (
        OllamaServer(engine := ScriptedModel(lambda messages: ANSWER, delay_s=0.5)) as server,
        serve(
            tmp_path, OLLAMA_HOST=server.url, CRAG_MODEL=f"ollama/{MODEL}",
            STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL=kept_for,
        ) as url,
    ):  # fmt: skip
        page.goto(url)
        ask(page, QUESTION)
        stop, question = stop_button(page), page.get_by_label("Your question")
        expect(page.get_by_text("Dues").first).to_be_visible(timeout=5 * PATIENCE)
        slider = page.get_by_test_id("stSlider").filter(has_text="Sentence cut-off").get_by_role("slider")
        slider.press("ArrowRight")
        slider.press("ArrowRight")
        expect(page).to_have_url(re.compile("strips=0.07"))
        settled(page)  # text that is only typed is the browser's, and lost with a page that is cut off in the middle
        question.fill(NEXT)
        line.cut()
        if is_session_kept:
            line.mend()
            expect(page.get_by_text("harbourmaster")).to_be_visible()
            expect(stop).to_be_visible()
            engine.delay_s = 0.0
        else:
            engine.delay_s = 0.0
            assert wait_until(lambda: history.count() == 1, PATIENCE / 1000)
            line.mend()
        expect(page.get_by_text("Written by")).to_be_visible()
        expect(stop).to_have_count(0)
        settled(page)
        expect(page.get_by_role("heading", name="Retrieval:")).to_have_count(1)
        for name in ("Ask", "Share", "New"):
            expect(page.get_by_role("button", name=name, exact=True)).to_have_count(1)
        expect(slider).to_have_value("0.07")
        expect(question).to_have_value(NEXT)
        assert (history.count(), server.chat_calls, line.opened) == (1, 1, 2)
        question.press("Enter")
        assert wait_until(lambda: history.count() == 2, PATIENCE / 1000)

"""A connection that drops in the middle of a run and comes back, as that of a phone, or loses messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from crag_core.storage.history import HistoryStore
from tests.browser.conftest import PATIENCE, QUICK, ask, index_texts, serve, settled, stop_button
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import wait_until
from tests.stand_ins.ollama_server import MODEL, OllamaServer

pytestmark = pytest.mark.browser

QUESTION, NEXT = "Where are dues paid?", "Who keeps the office on weekdays?"
ANSWER = "Dues are paid to the harbourmaster, at the harbour office, every evening [1]."


@dataclass(frozen=True)
class Served:
    url: str
    home: Path
    engine: ScriptedModel
    server: OllamaServer


@contextmanager
def served(home: Path, kept_for: str) -> Iterator[Served]:
    """`kept_for`: seconds for which Streamlit keeps the session of a page that is away."""
    text = "Dues are paid at the harbour office before eight in the evening. Dr. Ames keeps the office on weekdays."
    index_texts(home, dues=text)
    given = {"CRAG_MODEL": f"ollama/{MODEL}", "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": kept_for}
    engine = ScriptedModel(lambda messages: ANSWER)
    with OllamaServer(engine) as server, serve(home, program=QUICK, OLLAMA_HOST=server.url, **given) as url:
        yield Served(url, home, engine, server)


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A page that is away is forgotten at once."""
    with served(tmp_path_factory.mktemp("forgetful"), "0") as app:
        yield app


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


def go_on(page: Page, app: Served, is_session_kept: bool) -> None:
    history, line, engine = HistoryStore(app.home / "crag.db"), Line(page), app.engine
    engine.delay_s = 0.25
    page.goto(app.url)
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
    expect(page.get_by_text(re.compile("Written by"))).to_be_visible()
    expect(stop).to_have_count(0)
    settled(page)
    expect(page.get_by_role("heading", name="Retrieval:")).to_have_count(1)
    for name in ("Ask", "Share", "New"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(1)
    expect(slider).to_have_value("0.07")
    expect(question).to_have_value(NEXT)
    assert (history.count(), app.server.chat_calls, line.opened) == (1, 1, 2)
    question.press("Enter")
    assert wait_until(lambda: history.count() == 2, PATIENCE / 1000)


def test_a_run_goes_on_without_its_page_which_finds_it_again(page: Page, forgetful: Served) -> None:
    """After the end of the run, where Streamlit has forgotten the session."""
    go_on(page, forgetful, is_session_kept=False)


@pytest.mark.exhaustive
def test_a_page_that_is_back_in_mid_run_sees_the_rest_of_it(page: Page, tmp_path: Path) -> None:
    """Where Streamlit keeps the session."""
    with served(tmp_path, "600") as app:
        go_on(page, app, is_session_kept=True)


def test_a_page_whose_ticks_have_stopped_is_drawn_anew(page: Page, forgetful: Served) -> None:
    """Nothing that Streamlit's own timers send gets through; the question that was typed meanwhile does."""

    def pass_on(route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        route.on_message(lambda sent: None if is_tick(sent) else server.send(sent))

    def is_tick(sent: str | bytes) -> bool:
        return isinstance(sent, bytes) and BackMsg.FromString(sent).rerun_script.is_auto_rerun

    forgetful.engine.delay_s = 0.25
    page.route_web_socket(re.compile("_stcore/stream"), pass_on)
    page.goto(forgetful.url)
    question, stop = page.get_by_label("Your question"), stop_button(page)
    for asked, typed in (("When are dues paid?", "Who founded it?"), ("Which dues are there?", "Why?")):
        ask(page, asked)
        expect(stop).to_be_visible()
        question.fill(typed)
        expect(page.get_by_role("heading", name="Retrieval:")).to_be_visible()
        expect(stop).to_have_count(0)
    expect(question).to_be_focused()
    question.press("Enter")
    expect(stop).to_be_visible()

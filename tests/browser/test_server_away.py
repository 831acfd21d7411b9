"""A model server that is killed and comes back while somebody types: the box keeps its choice, the strip notices."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import serve
from tests.judge import judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer

pytestmark = [pytest.mark.browser, pytest.mark.embedding]

SMALL = "ollama: smollm2:135m"


@pytest.mark.exhaustive
def test_a_server_that_is_back_is_noticed_without_a_click_while_somebody_types(page: Page, tmp_path: Path) -> None:
    (tmp_path / "sample-indexed").touch()
    names = ["other:1b", "smollm2:135m"]
    with (
        OllamaServer(ScriptedModel(judging()), models=names) as server,
        serve(tmp_path, OLLAMA_HOST=server.url) as url,
    ):
        page.goto(url)
        sidebar = page.get_by_test_id("stSidebar")
        box = page.get_by_role("combobox", name="Answers written by")
        box.click()
        page.get_by_role("option", name=SMALL).click()
        expect(box).to_have_value(SMALL)
        server.stop()
        page.wait_for_timeout(11_000)  # a look is remembered for ten seconds
        page.get_by_text("Auto", exact=True).click()
        expect(sidebar).to_contain_text("stays chosen")
        expect(box).to_have_value(SMALL)
        expect(sidebar.get_by_text(f"{SMALL} (not reachable)").first).to_be_visible()
        page.get_by_text("Off", exact=True).first.click()
        expect(box).to_have_value(SMALL)
        expect(sidebar.get_by_text(f"{SMALL} (not reachable)").first).to_be_visible()

        question = page.get_by_label("Your question")
        question.click()
        question.press_sequentially("What does a yacht")
        server.start()
        page.wait_for_timeout(3_000)
        question.press_sequentially(" pay for a night?")
        expect(sidebar).to_contain_text("2 available", timeout=10_000)
        expect(box).to_have_value(SMALL)
        expect(question).to_have_value("What does a yacht pay for a night?")
        expect(question).to_be_focused()
        expect(sidebar).not_to_contain_text("not reachable")
        page.get_by_text("Auto", exact=True).click()
        expect(box).to_have_value(SMALL)

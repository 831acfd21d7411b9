"""The program is ended in mid-answer, as by `docker stop` or a new version: what was done is kept, and goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from crag_core.storage.history import HistoryStore
from crag_core.trace.summary import Ending
from tests.browser.conftest import QUICK, index_texts, serve
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer

pytestmark = pytest.mark.browser

ANSWER = "Dues are paid at the harbour office [1]. " * 12
QUESTION = "Where are dues paid?"


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer(ScriptedModel(lambda messages: ANSWER, delay_s=0.2)) as running:
        yield running


@pytest.mark.exhaustive
def test_a_run_under_way_is_kept_as_stopped_and_goes_on_after_the_next_start(
    page: Page, tmp_path: Path, server: OllamaServer
) -> None:
    index_texts(tmp_path, dues="Dues are paid at the harbour office before eight in the evening.")
    history = HistoryStore(tmp_path / "crag.db")
    chosen = {"OLLAMA_HOST": server.url, "CRAG_WEB": "off"}
    with serve(tmp_path, program=QUICK, **chosen) as url:
        page.goto(url)
        page.get_by_label("Question").fill(QUESTION)
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.get_by_text("Dues are paid at the harbour office [1]", exact=False).first).to_be_visible()
        asked = page.url
        assert history.count() == 0, "it is under way"
    (kept,) = history.search()
    assert kept.ending is Ending.STOPPED and kept.question == QUESTION
    found = history.load(kept.id)
    assert found is not None and found.failure is not None and found.failure.summary == "The program was ended."
    assert found.grades and found.decision is not None

    server.engine.delay_s = 0.0
    with serve(tmp_path, program=QUICK, **chosen) as url:
        page.goto(url + asked[asked.index("?") - 1 :])
        expect(page.get_by_text("The program was ended.").first).to_be_visible()
        page.get_by_role("button", name="Continue from here").click()
        expect(page.get_by_text("The program was ended.")).to_have_count(0)
        expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()
        expect(page.get_by_text(re.compile("Written by"))).to_be_visible()
    (kept,) = history.search()
    assert kept.id == found.id and kept.ending is Ending.DONE, "one question, one run"
    done = history.load(kept.id)
    assert done is not None and done.grades == found.grades

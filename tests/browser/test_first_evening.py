"""What a newcomer does on the first evening, in a real browser: upload, ask, look, slide, stop."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ask, settled, upload
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer

pytestmark = [pytest.mark.browser, pytest.mark.embedding]


def slide(page: Page, thumb: int, key: str) -> None:
    """The threshold for answering, that for the subject, or the strip cut-off, with a key of the keyboard."""
    page.get_by_role("slider").nth(thumb).focus()
    page.keyboard.press(key)


def test_upload_ask_and_slide(page: Page, empty_app: str, lighthouse: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.pdf"
    bad.write_bytes(b"")
    upload(page, empty_app, lighthouse, bad)
    expect(page.get_by_text("indexed, 2 chunks")).to_be_visible()
    expect(page.get_by_text(re.compile("bad.pdf.*empty", re.DOTALL)).first).to_be_visible()

    page.get_by_role("link", name="Ask").click()
    ask(page, "How high is the tower of the lighthouse?")
    verdict = page.locator("h2").first
    expect(verdict).to_contain_text(re.compile(r"\bCORRECT|AMBIGUOUS"))
    expect(page.get_by_role("heading", name="lighthouse.pdf, page 2")).to_be_visible()
    expect(page.get_by_text("42 metres").first).to_be_visible()

    # A citation leads to the card of its passage.
    page.locator("a", has_text=re.compile(r"\[\d\]")).first.click()
    expect(page).to_have_url(re.compile("#passage-"))

    # The thresholds by keyboard, between their ends, where every score leads to the same; then the strip cut-off.
    slide(page, 0, "Home")
    slide(page, 1, "Home")
    expect(verdict).to_contain_text(re.compile(r"\bCORRECT"))
    slide(page, 0, "End")
    expect(verdict).to_contain_text("AMBIGUOUS")
    slide(page, 2, "End")
    expect(page.locator("del", has_text="42 metres")).to_be_visible()
    slide(page, 1, "End")
    expect(verdict).to_contain_text("INCORRECT")
    expect(page.get_by_text(re.compile(r"^\d changes$"))).to_be_visible()
    expect(page).to_have_url(re.compile("upper="))

    # The link with these thresholds opens with them, in another session.
    shared = page.url.split("#")[0]
    page.goto(shared)
    expect(page.locator("input[type=range]").nth(1)).to_have_value("1")  # the marks of the picture come before


def test_stop_really_stops(page: Page, empty_app: str, lighthouse: Path) -> None:
    engine = ScriptedModel(lambda messages: "word " * 400, delay_s=0.1)
    upload(page, empty_app, lighthouse)
    with OllamaServer(engine) as server:
        page.get_by_role("link", name="Settings").click()
        page.get_by_role("textbox", name="Ollama address").fill(server.url)
        page.get_by_role("button", name="Apply").click()
        expect(page.get_by_text("Ollama, 1 model")).to_be_visible()
        page.get_by_role("link", name="Ask").click()
        settled(page)
        page.get_by_role("combobox", name="Answers written by").click()
        page.get_by_role("option", name="smollm2").click()
        ask(page, "How high is the tower of the lighthouse?")
        expect(page.get_by_text("word word").first).to_be_visible()
        page.get_by_role("button", name="Stop", exact=False).last.click()
        expect(page.get_by_text("Stopped by you. This is what was written until then, unchecked.")).to_be_visible()
        assert server.wait_for_disconnects()
        written = server.pieces_sent
        assert written < 400
        expect(page.get_by_text("What was done is kept")).to_be_visible()
        assert server.pieces_sent == written

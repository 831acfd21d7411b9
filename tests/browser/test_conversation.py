"""A conversation in a real browser: understood as, edited, carried on by the link of another person, begun anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ask, settled, upload

pytestmark = [pytest.mark.browser, pytest.mark.embedding]

QUESTION = "How high is the tower of the lighthouse?"


def above_scores(page: Page) -> float:
    """Pixels from the top of the page to the picture of the scores, without those of the answer."""
    scores, answer = (
        page.locator(one).first.bounding_box() for one in (".st-key-scores", "[class*=st-key-answer_card]")
    )
    assert scores is not None and answer is not None
    return float(scores["y"] - answer["height"])


def test_a_conversation_is_seen_changed_shared_and_begun_anew(
    page: Page, other_page: Page, empty_app: str, lighthouse: Path
) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    upload(page, empty_app, lighthouse)
    page.get_by_role("link", name="Ask").click()
    ask(page, QUESTION)
    expect(page.get_by_text("Original run")).to_be_visible()
    expect(page.locator(".st-key-scores").get_by_text("decides").last).to_be_visible()
    alone = above_scores(page)
    ask(page, "And who built it?")
    understood = page.get_by_label("Understood as")
    expect(understood).to_have_value("And who built it?")  # the tower or the lighthouse: not guessed
    understood.fill("Who built the tower of the lighthouse first?")
    understood.press("Enter")
    settled(page)
    page.get_by_role("button", name="Ask this").click()
    expect(page.get_by_text("Original run")).to_be_visible()
    expect(page.get_by_text("Who built the tower of the lighthouse first?").first).to_be_visible()
    expect(page.get_by_text("· edited by you")).to_be_visible()
    turns = page.locator(".st-key-turns")
    expect(turns.get_by_role("button")).to_have_count(1)
    box = turns.bounding_box()
    assert box is not None and box["height"] < 60, "one line"
    expect(page.locator(".st-key-scores").get_by_text("decides").last).to_be_visible()
    assert above_scores(page) <= alone + 20, "the picture stands where it does for a first question"

    page.get_by_role("button", name="Share").click()
    link = page.locator("[data-testid=stCode] code").filter(has_text="run=").inner_text()
    other_page.goto(link)
    expect(other_page.get_by_text("· edited by you")).to_be_visible()
    expect(other_page.get_by_label("Your question")).to_have_value("And who built it?")
    other_page.locator(".st-key-turns").get_by_role("button").click()
    settled(other_page)  # two fields while the page moves
    expect(other_page.get_by_label("Your question")).to_have_value(QUESTION)

    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("New$")).click()
    expect(page.get_by_label("Your question")).to_have_value("")
    ask(page, "And how high is it?")
    expect(page.get_by_text("Asks back")).to_be_visible()

"""The first screen of Ask: few words, nothing jumps, everything that matters at 1440 by 900."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ask, settled, upload

pytestmark = pytest.mark.browser

_WORDS = """() => {
  const found = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const range = document.createRange();
      range.selectNodeContents(node);
      const box = range.getBoundingClientRect();
      const around = node.parentElement ?? node.getRootNode().host;
      const isIcon = around.closest(".unseen, style, script, [data-testid=stIconMaterial], [translate=no]");
      if (box.width > 1 && box.top < innerHeight && !isIcon) found.push(...node.textContent.split(/\\s+/));
      return;
    }
    [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes].forEach(walk);
  };
  walk(document.querySelector("[data-testid=stMain]"));
  return found.filter((word) => /[a-zA-Z]/.test(word));
}"""
QUESTION = "How high is the tower of the lighthouse?"


@pytest.fixture
def screen(page: Page) -> Page:
    page.set_viewport_size({"width": 1440, "height": 900})
    return page


def words(page: Page) -> list[str]:
    """Seen in the main area without scrolling, numbers left out."""
    found: list[str] = page.evaluate(_WORDS)
    return found


def test_welcome_is_short_shows_the_thresholds_and_slash_leads_to_the_question_and_is_a_letter_in_it(
    screen: Page, empty_app: str
) -> None:
    screen.goto(empty_app)
    expect(screen.get_by_role("button", name="Play")).to_have_count(3)
    settled(screen)
    assert len(words(screen)) <= 120
    expect(screen.get_by_test_id("stSidebar").get_by_role("slider").first).to_be_visible()

    question = screen.get_by_label("Your question")
    expect(screen.locator(".st-key-shortcuts")).to_be_attached()
    while not question.evaluate("field => field === document.activeElement"):  # until its script is there
        screen.keyboard.press("/")
        screen.wait_for_timeout(300)
    screen.keyboard.type("km/h")
    expect(question).to_have_value("km/h")


def test_answer_verdict_path_and_scores_fit_one_screen(screen: Page, empty_app: str, lighthouse: Path) -> None:
    upload(screen, empty_app, lighthouse)
    screen.get_by_role("link", name="Ask").click()
    expect(screen.get_by_test_id("stSidebar").get_by_role("slider").first).to_be_visible()
    ask(screen, QUESTION)
    expect(screen.get_by_text("Original run")).to_be_visible()
    order = ["[class*=st-key-answer_card]", ".st-key-verdict", ".st-key-path", ".st-key-scores"]
    tops = [screen.locator(one).first.bounding_box()["y"] for one in order]  # type: ignore[index]
    assert tops == sorted(tops)
    last = screen.locator(order[-1]).bounding_box()
    assert last is not None and last["y"] + last["height"] <= 900
    expect(screen.locator(".st-key-scores").get_by_text("decides").last).to_be_visible()  # drawn, in its whole height
    settled(screen)
    assert len(words(screen)) <= 110
    for width in (800, 400):
        screen.set_viewport_size({"width": width, "height": 900})
        settled(screen)
        assert screen.get_by_test_id("stMain").evaluate("one => one.scrollWidth - one.clientWidth") == 0
        menu = screen.get_by_test_id("stMainMenu").bounding_box()
        assert menu is not None and menu["x"] + menu["width"] <= width

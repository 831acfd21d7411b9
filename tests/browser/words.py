"""The words that somebody sees on the first screen of a page, without scrolling."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.conftest import settled
from tests.browser.test_accessibility import SETTLED

_SEEN = """() => {
  const found = [];
  const main = document.querySelector("[data-testid=stMain]");
  const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const one = texts.currentNode, parent = one.parentElement;
    if (!one.textContent.trim() || !parent.checkVisibility({ visibilityProperty: true })) continue;
    if (parent.closest("style, script, [data-testid=stIconMaterial], [role=img][translate=no]")) continue;
    const range = document.createRange();
    range.selectNodeContents(one);
    const box = range.getBoundingClientRect();
    const is_in = box.width && box.height && box.top < innerHeight && box.bottom > 0 && box.left < innerWidth;
    if (is_in) found.push(one.textContent);
  }
  return found.join(" ");
}"""
"""Text of the main area within the window; icons are letters of a font, and no words."""


def words_seen(page: Page) -> list[str]:
    """At 1440 by 900; what has no letter or digit is no word."""
    page.set_viewport_size({"width": 1440, "height": 900})
    settled(page)
    page.evaluate(SETTLED)
    return [word for word in str(page.evaluate(_SEEN)).split() if any(sign.isalnum() for sign in word)]

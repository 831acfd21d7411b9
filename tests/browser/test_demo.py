"""A story on the Demo page in a real browser: keys, links to a step, the whole window, and the way back."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import check
from tests.browser.conftest import LOOKS, look_at, settled
from tests.matrix import diagonal
from ui.session.demos import demos

pytestmark = pytest.mark.browser

SAVED = demos()[1]


def lead_by_keys(page: Page) -> None:
    """To the last of eight steps, which is there again after a reload; the address names the step."""
    count = page.locator(".story .count")
    expect(count).to_have_text("Step 1 of 8")
    for key, at in (("ArrowRight", 2), ("Space", 3), ("PageDown", 4), ("ArrowLeft", 3), ("Home", 1), ("End", 8)):
        page.keyboard.press(key)
        expect(count).to_have_text(f"Step {at} of 8")
        assert page.url.endswith(f"/demo?run={SAVED.trace.id}&step={at}")
    page.reload()
    expect(page.locator(".story h1")).to_have_text("Now move the bar")


@pytest.mark.parametrize(("shown", "look"), diagonal([1, 4], LOOKS))
def test_nothing_grave_on_any_step_which_fits_into_the_width_and_keys_lead_through_it(
    page: Page, empty_app: str, shown: int, look: tuple[str, int]
) -> None:
    look_at(page, *look)
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{empty_app}/demo?run={demos()[shown].trace.id}")
    expect(page.locator(".story h1")).to_be_visible()
    settled(page)
    if demos()[shown] is SAVED:
        lead_by_keys(page)
    for dot in page.locator(".story .dots button").all():
        dot.click()
        title = page.locator(".story h1").inner_text()
        check(page, title)
        for width in (400, look[1]):
            look_at(page, look[0], width)
            assert page.get_by_test_id("stMain").evaluate("one => one.scrollWidth - one.clientWidth") == 0, title
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Demo", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Ask")).to_be_visible()

"""Pages that no other file walks: nothing serious or critical for axe-core, and the menu names the page one is on."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import check
from tests.browser.conftest import DARK, PATIENCE, look_at, one_look

pytestmark = pytest.mark.browser

PAGES = [("policies", "One run, every policy"), ("settings", "Settings"), ("logs", "Open retrieval log")]


@pytest.mark.parametrize(("theme", "width"), one_look(DARK))
@pytest.mark.parametrize(("name", "title"), PAGES)
def test_nothing_grave_on_the_other_pages_which_the_menu_names_in_a_narrow_window_too(
    page: Page, empty_app: str, theme: str, width: int, name: str, title: str
) -> None:
    look_at(page, theme, width)
    page.goto(f"{empty_app}/{name}")
    expect(page.get_by_role("heading", name=title)).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_test_id("stTopNav").get_by_role("link", name=name.capitalize())).to_be_visible()
    check(page, name)

"""axe-core in the real browser finds nothing serious or critical on the pages that no other file walks."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import check
from tests.browser.conftest import DARK, PATIENCE, look_at, one_look

pytestmark = pytest.mark.browser

PAGES = [("policies", "One run, every policy"), ("settings", "Settings"), ("logs", "Open retrieval log")]


@pytest.mark.parametrize(("theme", "width"), one_look(DARK))
@pytest.mark.parametrize(("name", "title"), PAGES)
def test_nothing_grave_on_the_other_pages(
    page: Page, empty_app: str, theme: str, width: int, name: str, title: str
) -> None:
    look_at(page, theme, width)
    page.goto(f"{empty_app}/{name}")
    expect(page.get_by_role("heading", name=title)).to_be_visible(timeout=PATIENCE)
    check(page, name)

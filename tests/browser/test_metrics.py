"""The Metrics page in a real browser: bars are drawn, another time and policy change all of it at once."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE
from tests.browser.test_accessibility import SETTLED, check
from tests.browser.test_history import history, home, url  # noqa: F401  # fixtures: 30 runs of three kinds, a day apart

NAMES = (
    *("Routed CORRECT", "Searched the web", "Best score rose after correction"),
    *("Decision time", "Evidence time", "LLM calls", "Not graded"),
)


def open_page(page: Page, url: str) -> None:  # noqa: F811
    page.goto(f"{url}/metrics")
    for name in NAMES:
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible(timeout=PATIENCE)


def test_time_and_policy_change_figures_charts_and_table(page: Page, url: str) -> None:  # noqa: F811
    open_page(page, url)
    bars = page.get_by_role("img", name="Runs by action over time").locator("> div")
    expect(bars).to_have_count(8)
    page.get_by_role("radio", name="All").click()
    expect(page.get_by_text("30 runs", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile("^[0-9]+ of 30 decided runs$"))).to_have_count(2)
    expect(page.get_by_text("target")).to_have_count(0)
    expect(bars).to_have_count(30)
    drawn = bars.evaluate_all("bars => bars.filter(one => one.firstElementChild.offsetHeight > 20).length")
    assert drawn == 30, "one run a day"
    check(page, "metrics")
    page.get_by_role("button", name="What counts").click()
    expect(page.get_by_text("Imported runs, comparisons and graded sets are left out.")).to_be_visible()
    check(page, "what counts")
    page.keyboard.press("Escape")
    page.get_by_text("In numbers, by day").click()
    expect(page.get_by_test_id("stDataFrame")).to_have_count(1)
    policy = page.get_by_role("combobox", name="Policy").last
    policy.scroll_into_view_if_needed()
    page.evaluate(SETTLED)
    page.wait_for_timeout(500)  # an open list closes when the page is scrolled, which changes no element
    policy.click()
    choices = page.get_by_role("option")
    expect(choices.first).to_have_text("All policies")
    policy.press("ArrowDown")  # a click on a choice may scroll the page, which closes the list
    policy.press("Enter")
    expect(page.get_by_text("30 runs", exact=True)).to_have_count(0)
    expect(page.get_by_test_id("stMain").get_by_text("CORRECT").first).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)

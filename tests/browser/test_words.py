"""How many words the first screens of Policies and Metrics have."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_history import history, home, url  # noqa: F401  # fixtures: 30 runs of three kinds, a day apart
from tests.browser.words import words_seen

MOST = 120


def test_policies_in_few_words_with_an_example_and_with_a_run(page: Page, url: str) -> None:  # noqa: F811
    page.goto(f"{url}/policies")
    expect(page.get_by_role("table", name="Verdicts")).to_be_visible()
    for example in ("Mixed", "Answered", "On topic", "Off topic"):
        page.get_by_role("button", name=example, exact=True).or_(page.get_by_role("radio", name=example)).first.click()
        seen = words_seen(page)
        assert 60 < len(seen) <= MOST, f"{example}: {len(seen)} words: {' '.join(seen)}"
    for run in ("run-29", "run-28", "run-27"):
        page.goto(f"{url}/?run={run}")
        expect(page.locator("h2").first).to_be_visible()
        page.get_by_role("link", name="Policies", exact=True).click()
        expect(page.get_by_role("table", name="Verdicts")).to_be_visible()
        seen = words_seen(page)
        assert 60 < len(seen) <= MOST, f"{run}: {len(seen)} words: {' '.join(seen)}"


@pytest.mark.parametrize("period", ["7 days", "All"])
def test_metrics_in_few_words(page: Page, url: str, period: str) -> None:  # noqa: F811
    page.goto(f"{url}/metrics")
    page.get_by_role("radio", name=period).click()
    expect(page.get_by_text("30 runs" if period == "All" else re.compile("^[67] runs$"), exact=True)).to_be_visible()
    seen = words_seen(page)
    assert 40 < len(seen) <= MOST, f"{len(seen)} words: {' '.join(seen)}"

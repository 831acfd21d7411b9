"""Tuning in a real browser: a file is pinned, a preset tried, all policies compared, on scores of one's own too."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import ask, upload

pytestmark = [pytest.mark.browser, pytest.mark.embedding]

HEAD, ROW = 35, 35  # pixels of the grid


def row(page: Page, policy: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=policy, exact=True))


def edit(page: Page, row: int, score: str) -> None:
    """Put a score into the grid, which is drawn on a canvas: by its place, with the keyboard; "" empties the cell."""
    page.get_by_test_id("stDataFrame").click(position={"x": 120, "y": HEAD + ROW * row - ROW // 2})
    if not score:
        page.keyboard.press("Delete")
        return
    page.keyboard.press("Enter")
    field = page.locator("#portal input")
    field.fill(score)
    field.press("Enter")


@pytest.mark.exhaustive
def test_pin_a_file_try_a_preset_and_compare_the_policies(
    page: Page, empty_app: str, lighthouse: Path, metrics_port: int
) -> None:
    upload(page, empty_app, lighthouse)
    page.get_by_role("link", name="Ask").click()
    page.get_by_role("button", name="Pin files").click()
    page.get_by_role("combobox", name="Read these files whole").click()
    page.get_by_role("option", name="lighthouse.pdf").click()
    page.keyboard.press("Escape")  # closes the list, and then the popover
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="1 pinned file")).to_be_visible()
    expect(page.get_by_text(re.compile(r"\b0 LLM calls$"))).to_be_visible()  # behind an icon
    page.get_by_role("combobox", name="Policy").click()
    page.get_by_role("option", name="Paper", exact=True).click()
    ask(page, "When was the lighthouse of Skerry Point built?")
    verdict = page.locator("h2").first
    expect(verdict).to_contain_text(re.compile("CORRECT|AMBIGUOUS"))
    expect(page.get_by_role("heading", name=re.compile(r"^1 lighthouse\.pdf "))).to_be_visible()

    page.get_by_role("button", name="Presets").click()
    page.get_by_role("button", name="Biography: 0.045 and 0.975").click()
    expect(page.get_by_role("slider").nth(1)).to_have_value("0.975")
    score = float(
        page.get_by_test_id("stMetric")
        .filter(has_text="Overall score")
        .locator("[data-testid=stMetricValue]")
        .inner_text()
    )
    action = r"\bCORRECT" if score >= 0.975 else "AMBIGUOUS" if score >= 0.045 else "INCORRECT"
    expect(verdict).to_contain_text(re.compile(action))
    page.keyboard.press("Escape")

    page.get_by_role("link", name="Policies").click()
    expect(page.get_by_text("1 chunk, trained evaluator")).to_be_visible()
    expect(row(page, "Agentic")).to_contain_text("Rule read_file: every chunk is a whole file that you pinned")

    page.get_by_role("radio", name="Example").click()
    worst = row(page, "Worst chunk")
    expect(worst).to_contain_text(re.compile("INCORRECT.*worst chunk 0.25"))
    page.get_by_text("Edit scores").click()
    edit(page, 3, "0.95")
    expect(worst).to_contain_text(re.compile("AMBIGUOUS.*worst chunk 0.50"))
    edit(page, 1, "")
    expect(row(page, "Paper")).to_contain_text("0.95")
    expect(page.get_by_test_id("stException")).to_have_count(0)

    with urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=5) as reply:
        assert b"crag_retrieval_latency_seconds_count" in reply.read()

"""The Tune page in the real browser: from an uploaded table to thresholds that the Ask page uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import check
from tests.browser.conftest import ask, download, settled, upload

SUBJECTS = ("rye bread", "chess", "the moon", "swallows", "saffron", "oaks", "haiku", "magnets", "volcanoes", "cheese")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Ten that the lighthouse answers, four that it nearly answers, and ten about something else."""
    answered = [
        f"{start} {rest}?"
        for rest in ("the lighthouse of Skerry Point built", "its lamp electrified")
        for start in ("When was", "In which year was", "What year was")
    ] + [
        "How high is the tower?",
        "How many steps has the tower?",
        "What is the keeper paid?",
        "How many crowns a week?",
    ]
    near = [f"Who {did} the lighthouse of Skerry Point?" for did in ("painted", "designed", "owns", "sold")]
    rows = [f"{one},correct" for one in answered] + [f"{one},ambiguous" for one in near]
    rows += [f"What is known about {one}?,incorrect" for one in SUBJECTS]
    file = tmp_path / "lighthouse questions.csv"
    file.write_text("\n".join(["question,expected", *rows]), "utf-8")
    return file


def graded(page: Page, url: str, lighthouse: Path, questions: Path) -> None:
    upload(page, url, lighthouse)
    page.get_by_role("link", name="Tune").click()
    page.get_by_role("radio", name="Upload").click()
    page.locator("input[type=file]").set_input_files(str(questions))
    expect(page.get_by_text("lighthouse questions: 24 questions")).to_be_visible()
    recommended = page.get_by_text(re.compile("(Nothing better found: keep yours|Recommended: )")).first
    grade = page.get_by_role("button", name="Grade 24 questions")
    expect(grade.or_(recommended)).to_be_visible()
    if grade.is_visible():
        grade.click()
    expect(recommended).to_be_visible()


def test_from_an_uploaded_table_and_a_click_on_the_map_to_a_preset_in_use(
    page: Page, empty_app: str, lighthouse: Path, questions: Path
) -> None:
    page.set_viewport_size({"width": 1440, "height": 2600})
    graded(page, empty_app, lighthouse, questions)
    expect(page.get_by_text("of pairs")).to_be_visible()
    check(page, "thresholds")
    told = page.get_by_role("button", name=re.compile("Keep mine: "))
    before = told.inner_text()
    area = page.locator(".js-plotly-plot").last.locator(".nsewdrag").first.bounding_box()
    assert area is not None
    page.mouse.click(area["x"] + 0.2 * area["width"], area["y"] + 0.55 * area["height"])
    expect(told).not_to_have_text(before)
    expect(told).to_have_text(re.compile(r"Keep mine: 0\.[12]\d* and 0\.[34]"))
    page.get_by_role("textbox", name="Name of the preset").fill("harbour")
    page.keyboard.press("Enter")
    settled(page)  # else the old name is kept
    page.get_by_role("button", name=re.compile("^.*Keep (recommended|mine): ")).first.click()
    expect(page.get_by_text("Preset “harbour”")).to_be_visible()
    page.get_by_role("button", name="Export").click()
    assert "harbour" in Path(download(page, "Report").path()).read_text("utf-8")
    page.get_by_role("link", name="Ask").click()
    ask(page, "How high is the tower?")
    expect(page.get_by_text("Retrieval: ").first).to_be_visible()

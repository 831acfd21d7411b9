"""The Compare page in the real browser: one question under two configurations, and a labelled set with its table."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import check
from tests.browser.conftest import PATIENCE, download, upload

pytestmark = pytest.mark.browser

QUESTION = "How high is the tower of the lighthouse?"


def compare(page: Page, question: str = QUESTION) -> None:
    page.get_by_label("Question for all of them").fill(question)
    page.get_by_test_id("stFormSubmitButton").get_by_role("button").click()
    expect(page.get_by_text("Evidence of each answer")).to_be_visible()


def cell(page: Page, name: str) -> Locator:
    """What a configuration came to: the last thing that bears its name."""
    return page.get_by_test_id("stVerticalBlock").filter(has=page.get_by_text(name, exact=True)).last


def run_questions(page: Page, count: int) -> None:
    run, table = page.get_by_role("button", name=f"Run {count} questions"), page.get_by_text("Results by measure")
    expect(run.or_(table)).to_be_visible()
    if run.is_visible():  # else another test has run them in this home
        run.click()
    expect(table).to_be_visible(timeout=4 * PATIENCE)


def test_one_question_side_by_side_the_run_behind_it_and_a_labelled_set_with_its_table(
    page: Page, empty_app: str, lighthouse: Path, tmp_path: Path
) -> None:
    upload(page, empty_app, lighthouse)
    page.get_by_role("link", name="Compare").click()
    page.get_by_role("combobox", name="Policy").click()
    page.get_by_role("option", name="Paper", exact=True).click()
    expect(page.get_by_text("B · Paper")).to_be_visible()
    compare(page)
    expect(cell(page, "A · Plain RAG")).to_contain_text("Not graded")
    expect(cell(page, "A · Plain RAG")).to_contain_text("nothing graded")
    expect(cell(page, "B · Paper")).to_contain_text("Best ")
    for name in ("A · Plain RAG", "B · Paper"):
        expect(cell(page, name)).to_contain_text("42 metres high")
        expect(cell(page, name)).to_contain_text("0 LLM calls, ")

    check(page, "one question")
    every = page.get_by_test_id("stTable").locator("tbody tr")
    count = every.count()
    assert page.get_by_test_id("stTable").locator("img, a, script").count() == 0, "what documents say is text"
    expect(every.filter(has_text="<img src=x onerror=alert(1)>")).to_have_count(1)
    page.get_by_text("Only what differs").click()
    expect(every).not_to_have_count(count)
    assert 0 < every.count() < count

    cell(page, "B · Paper").get_by_role("button", name="Open in Ask").click()
    expect(page.get_by_text("Retrieval: ").first).to_be_visible()
    expect(page.get_by_label("Your question")).to_have_value(QUESTION)
    page.get_by_role("link", name="Compare").click()
    expect(cell(page, "B · Paper")).to_contain_text("42 metres high")

    file = tmp_path / "Sample questions.csv"
    asked = [f"{QUESTION},correct", *(f"What is known about {one}?,incorrect" for one in ("chess", "saffron", "oaks"))]
    file.write_text("\n".join(["question,expected", *asked]), "utf-8")
    page.get_by_role("radio", name="Labelled set").click()
    page.get_by_role("radio", name="Upload").click()
    page.locator("input[type=file]").set_input_files(str(file))
    run_questions(page, 4)
    table = page.get_by_test_id("stTable")
    expect(table.locator("thead th")).to_have_text(["Measure", "A · Plain RAG", "B · Paper"])
    expect(page.get_by_text("4 questions, 95% intervals.")).to_be_visible()
    check(page, "table")
    figures = download(page, "Figures (CSV)")
    found = list(csv.DictReader(io.StringIO(Path(figures.path()).read_text("utf-8"))))
    assert {row["configuration"] for row in found} == {"Plain RAG", "Paper"}
    assert figures.suggested_filename == "Sample-questions.csv"

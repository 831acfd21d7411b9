"""The Compare page in the real browser: one question under two configurations, and a labelled set with its table."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import LOOKS, PATIENCE, download, look_at, upload
from tests.browser.test_accessibility import check

pytestmark = [pytest.mark.browser, pytest.mark.embedding]

QUESTION = "How high is the tower of the lighthouse?"


def enter(page: Page, url: str) -> None:
    page.goto(f"{url}/compare")
    expect(page.get_by_text("A · Plain RAG")).to_be_visible()


def compare(page: Page, question: str = QUESTION) -> None:
    page.get_by_label("Question for all of them").fill(question)
    page.get_by_test_id("stFormSubmitButton").get_by_role("button").click()
    expect(page.get_by_text("Evidence of each answer")).to_be_visible()


def cell(page: Page, name: str) -> Locator:
    """What a configuration came to: the last thing that bears its name."""
    return page.get_by_test_id("stVerticalBlock").filter(has=page.get_by_text(name, exact=True)).last


def sentences(page: Page) -> Locator:
    return page.locator(".versus td.text")


def run_sample(page: Page) -> None:
    page.get_by_role("radio", name="Labelled set").click()
    page.get_by_role("radio", name="Sample questions").click()
    page.get_by_role("button", name="Use 49 questions").click()
    run_questions(page, 49)


def run_questions(page: Page, count: int) -> None:
    run, table = page.get_by_role("button", name=f"Run {count} questions"), page.get_by_text("Results by measure")
    expect(run.or_(table)).to_be_visible()
    if run.is_visible():  # else another test has run them in this home
        run.click()
    expect(table).to_be_visible(timeout=4 * PATIENCE)
    expect(page.locator(".versus.figures")).to_be_visible()


def test_one_question_side_by_side_and_the_run_behind_it(page: Page, empty_app: str, lighthouse: Path) -> None:
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
    every = sentences(page).count()
    assert every > sentences(page).locator("xpath=..").and_(page.locator("tr.differs")).count() > 0
    assert page.locator(".versus img, .versus a, .versus script").count() == 0, "what documents say is text"
    expect(sentences(page).filter(has_text="<img src=x onerror=alert(1)>")).to_have_count(1)
    given, left = page.get_by_role("img", name="given", exact=True), page.get_by_role("img", name="not given")
    assert given.count() + left.count() == 2 * every and left.count() > 0
    page.get_by_text("Only what differs").click()
    expect(sentences(page).locator("xpath=..").and_(page.locator("tr:not(.differs)"))).to_have_count(0)
    assert 0 < sentences(page).count() < every

    cell(page, "B · Paper").get_by_role("button", name="Open in Ask").click()
    expect(page.get_by_text("Retrieval: ")).to_be_visible()
    expect(page.get_by_label("Your question")).to_have_value(QUESTION)
    page.get_by_role("link", name="Compare").click()
    expect(cell(page, "B · Paper")).to_contain_text("42 metres high")


def test_a_configuration_is_kept_while_the_sidebar_goes_on(page: Page, empty_app: str) -> None:
    enter(page, empty_app)
    page.get_by_role("button", name="Keep sidebar settings").click()
    expect(page.get_by_text("Follows the sidebar")).to_have_count(0)
    page.get_by_role("combobox", name="Policy").click()
    page.get_by_role("option", name="Heuristic", exact=True).click()
    expect(page.get_by_text("C · Heuristic")).to_be_visible()
    page.get_by_role("button", name="Add a policy").click()
    page.get_by_role("button", name="Worst chunk").click()
    expect(page.get_by_text("D · Heuristic")).to_be_visible()
    expect(page.get_by_text("At most 4 at a time.")).to_be_visible()
    keep = page.get_by_role("button", name="Keep sidebar settings")
    keep.click()
    expect(keep).to_be_disabled()  # else both come as one message, and what is kept has the slider at its end
    page.get_by_role("slider").nth(1).focus()
    page.keyboard.press("End")
    expect(page.get_by_text("Remove one to compare the sidebar settings.")).to_be_visible()
    page.get_by_role("button", name="Remove").first.click()
    expect(page.get_by_text("D · Heuristic,")).to_be_visible()
    expect(page.get_by_text("A · Plain RAG")).to_have_count(0)


def test_a_labelled_set_is_run_and_its_table_can_be_taken_along(
    page: Page, empty_app: str, lighthouse: Path, tmp_path: Path
) -> None:
    file = tmp_path / "Sample questions.csv"
    asked = [f"{QUESTION},correct", *(f"What is known about {one}?,incorrect" for one in ("chess", "saffron", "oaks"))]
    file.write_text("\n".join(["question,expected", *asked]), "utf-8")
    upload(page, empty_app, lighthouse)
    enter(page, empty_app)
    page.get_by_role("radio", name="Labelled set").click()
    page.get_by_role("radio", name="Upload").click()
    page.locator("input[type=file]").set_input_files(str(file))
    run_questions(page, 4)
    table = page.locator(".versus.figures")
    expect(table.locator("thead th")).to_have_text(["Measure", "A · Plain RAG", "B · Two signals"])
    expect(page.get_by_text("4 questions, 95% intervals.")).to_be_visible()
    check(page, "table")
    rows = table.locator("tbody tr:has(th[scope=row])").count()
    figures = download(page, "Figures (CSV)")
    found = list(csv.DictReader(io.StringIO(Path(figures.path()).read_text("utf-8"))))
    assert len(found) == 2 * rows and {row["configuration"] for row in found} == {"Plain RAG", "Two signals"}
    assert figures.suggested_filename == "Sample-questions.csv"


@pytest.mark.exhaustive  # the other tests look at what stands on the page when a run has ended
@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_nothing_grave_on_the_compare_page(
    page: Page, empty_app: str, lighthouse: Path, theme: str, width: int
) -> None:
    look_at(page, theme, width)
    upload(page, empty_app, lighthouse)
    enter(page, empty_app)
    check(page, "nothing asked")
    for name in ("Signals", "Heuristic"):  # a narrow page scrolls then
        page.get_by_role("button", name="Add a policy").click()
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.get_by_text(f" · {name}", exact=False)).to_be_visible()
        page.keyboard.press("Escape")
    compare(page)
    for fold in page.locator(".versus details:not([open]) summary").all():
        fold.click()
    check(page, "one question")
    page.get_by_text("Only what differs").click()
    check(page, "only what differs")
    page.get_by_role("radio", name="Labelled set").click()
    expect(page.get_by_text("Where the questions come from")).to_be_visible()
    check(page, "no questions")
    run_sample(page)
    check(page, "table")

"""A walk through one run as a user takes it: move a mark, drop a passage, look it up, share, send and open again."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import ask, download, upload

QUESTION = "How high is the tower of the lighthouse?"


def asked(page: Page, app: str, lighthouse: Path) -> None:
    upload(page, app, lighthouse)
    page.get_by_role("link", name="Ask").click()
    ask(page, QUESTION)
    expect(page.get_by_text("Retrieval: ")).to_be_visible()


def test_sidebar_and_verdict_follow_a_mark_that_is_moved_in_the_picture(
    page: Page, empty_app: str, lighthouse: Path
) -> None:
    asked(page, empty_app, lighthouse)
    mark = page.get_by_role("slider", name=re.compile("^bar for an answer"))
    mark.focus()
    page.keyboard.press("End")
    expect(mark).to_have_attribute("aria-valuenow", "1")
    expect(page.get_by_test_id("stSidebar").get_by_role("slider", name="Bar for an answer")).to_have_value("1")
    expect(page.locator("h2").first).not_to_contain_text("CORRECT")
    expect(page.get_by_text(re.compile("^Changed: "))).to_be_visible()
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(mark).not_to_have_attribute("aria-valuenow", "1")
    expect(page.get_by_test_id("stSidebar").get_by_role("slider", name="Bar for an answer")).not_to_have_value("1")


def test_dropped_passage_stays_dropped_in_a_link_that_a_second_session_opens(
    page: Page, other_page: Page, empty_app: str, lighthouse: Path
) -> None:
    asked(page, empty_app, lighthouse)
    page.get_by_role("button", name="Drop").first.click()
    expect(page.get_by_text("dropped by you").first).to_be_visible()
    verdict = page.locator("h2").first.inner_text()
    page.get_by_role("button", name="Share").click()
    link = page.locator("[data-testid=stCode] code").filter(has_text="run=").inner_text()
    other_page.goto(link)
    expect(other_page.get_by_text("dropped by you").first).to_be_visible()
    assert other_page.locator("h2").first.inner_text() == verdict
    expect(other_page.get_by_label("Your question")).to_have_value(QUESTION)


def test_reload_comes_back_to_the_run_and_its_file_opens_again(
    page: Page, empty_app: str, lighthouse: Path, tmp_path: Path
) -> None:
    upload(page, empty_app, lighthouse)
    page.get_by_role("link", name="Ask").click()
    page.get_by_role("button", name="Examples").click()
    listed = page.get_by_test_id("stPopoverBody")
    listed.get_by_role("button").first.click()
    expect(listed).to_have_count(0)  # a list closes once something of it is chosen
    ask(page, QUESTION)
    expect(page.get_by_text("Retrieval: ")).to_be_visible()
    verdict = page.locator("h2").first.inner_text()
    page.reload()
    expect(page.get_by_text("Retrieval: ")).to_be_visible()
    assert page.locator("h2").first.inner_text() == verdict
    page.get_by_role("button", name="Share").click()
    record = tmp_path / "run.json"
    download(page, "Record (JSON)").save_as(record)
    page.goto(empty_app)
    page.get_by_test_id("stMain").get_by_role("button", name="Open", exact=True).click()
    page.locator("input[type=file]").set_input_files(record)
    expect(page.get_by_text("Retrieval: ")).to_be_visible()
    assert page.locator("h2").first.inner_text() == verdict


INK = """(mark) => {
  const picture = mark.parentElement.querySelector("img"), canvas = document.createElement("canvas");
  canvas.width = picture.naturalWidth; canvas.height = picture.naturalHeight;
  const drawn = canvas.getContext("2d"); drawn.drawImage(picture, 0, 0);
  const part = (name, whole) => Math.round(parseFloat(mark.style[name]) / 100 * whole);
  const [left, top] = [part("left", canvas.width), part("top", canvas.height)];
  const {data} = drawn.getImageData(left, top, part("width", canvas.width), part("height", canvas.height));
  let dark = 0;
  for (let at = 0; at < data.length; at += 4) dark += data[at] < 128;
  return dark / (data.length / 4);
}"""
"""The share of dark points of the page's picture under a mark."""


def test_passage_is_marked_where_it_stands_on_the_page_of_its_pdf(page: Page, empty_app: str, lighthouse: Path) -> None:
    asked(page, empty_app, lighthouse)
    page.get_by_role("button", name="Show in the document").first.click()
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_text("page 2 of 2")).to_be_visible()
    marks = drawer.locator(".box")
    expect(marks.first).to_be_visible()
    told = [mark.get_attribute("title") or "" for mark in marks.all()]
    assert any(words.startswith("Kept, score") for words in told), told
    assert all(0.03 < mark.evaluate(INK) < 0.5 for mark in marks.all()), "there is writing under every mark"
    drawer.get_by_role("button", name="Previous").click()
    expect(drawer.get_by_text("page 1 of 2")).to_be_visible()
    expect(drawer.get_by_text("Nothing of the chunk is on this page: it stands on page 2.")).to_be_visible()
    drawer.get_by_role("button", name="Close").click()
    expect(drawer).not_to_be_visible()
    expect(page.get_by_text("Retrieval: ")).to_be_visible()

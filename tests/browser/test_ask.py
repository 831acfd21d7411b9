"""A newcomer's evening on Ask, in a real browser: upload, ask, slide, look up, share, reload, and stop; few words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import check
from tests.browser.conftest import DARK, ask, download, look_at, settled, upload
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer

pytestmark = pytest.mark.browser
QUESTION = "How high is the tower of the lighthouse?"


def test_what_is_uploaded_is_asked_and_decided_again_by_keyboard(
    page: Page, empty_app: str, lighthouse: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.pdf"
    bad.write_bytes(b"")
    upload(page, empty_app, lighthouse, bad)
    expect(page.get_by_text("indexed, 2 chunks")).to_be_visible()
    expect(page.get_by_text(re.compile("bad.pdf.*empty", re.DOTALL)).first).to_be_visible()

    page.get_by_role("link", name="Ask").click()
    page.get_by_role("button", name="Examples").click()
    listed = page.get_by_test_id("stPopoverBody")
    listed.get_by_role("button").first.click()
    expect(listed).to_have_count(0)  # a list closes once something of it is chosen
    expect(page.get_by_label("Your question")).not_to_have_value("")
    ask(page, QUESTION)
    verdict = page.locator("h2").first
    expect(verdict).to_contain_text(re.compile(r"\bCORRECT|AMBIGUOUS"))
    expect(page.get_by_role("heading", name="lighthouse.pdf, page 2")).to_be_visible()
    expect(page.get_by_text("42 metres").first).to_be_visible()
    page.locator("a", has_text=re.compile(r"\[\d\]")).first.click()
    expect(page).to_have_url(re.compile("#passage-"))

    # A mark of the picture, the sidebar after it, and the way back.
    mark = page.get_by_role("slider", name=re.compile("^bar for an answer"))
    slider = page.get_by_test_id("stSidebar").get_by_role("slider", name="Bar for an answer")
    mark.focus()
    page.keyboard.press("End")
    expect(mark).to_have_attribute("aria-valuenow", "1")
    expect(slider).to_have_value("1")
    expect(verdict).not_to_contain_text("CORRECT")
    expect(page.get_by_text(re.compile("^Changed: "))).to_be_visible()
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(mark).not_to_have_attribute("aria-valuenow", "1")
    expect(slider).not_to_have_value("1")

    # The sliders of the sidebar, between their ends, where every score leads to the same.
    for thumb, key, told in (
        (0, "Home", "Retrieval"),
        (1, "Home", r"\bCORRECT"),
        (0, "End", "AMBIGUOUS"),
        (2, "End", "Retrieval"),
    ):
        page.get_by_role("slider").nth(thumb).focus()
        page.keyboard.press(key)
        expect(verdict).to_contain_text(re.compile(told))
    expect(page.locator("del", has_text="42 metres")).to_be_visible()
    page.get_by_role("slider").nth(1).focus()
    page.keyboard.press("End")
    expect(verdict).to_contain_text("INCORRECT")
    expect(page.get_by_text(re.compile(r"^\d changes$"))).to_be_visible()
    expect(page).to_have_url(re.compile("upper="))
    page.goto(page.url.split("#")[0])  # a link with these thresholds
    expect(page.locator("input[type=range]").nth(1)).to_have_value("1")  # the marks of the picture come before


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

WORDS = """() => {
  const found = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const range = document.createRange();
      range.selectNodeContents(node);
      const box = range.getBoundingClientRect();
      const around = node.parentElement ?? node.getRootNode().host;
      const isIcon = around.closest(".unseen, style, script, [data-testid=stIconMaterial], [translate=no]");
      if (box.width > 1 && box.top < innerHeight && !isIcon) found.push(...node.textContent.split(/\\s+/));
      return;
    }
    [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes].forEach(walk);
  };
  walk(document.querySelector("[data-testid=stMain]"));
  return found.filter((word) => /[a-zA-Z]/.test(word));
}"""
"""Those seen in the main area without scrolling, numbers left out."""


def look_at_welcome(page: Page) -> None:
    """Few words, the thresholds, and a slash that leads to the question and is a letter in it."""
    expect(page.get_by_role("button", name="Play")).to_have_count(3)
    settled(page)
    assert len(page.evaluate(WORDS)) <= 120
    expect(page.get_by_test_id("stSidebar").get_by_role("slider").first).to_be_visible()
    question = page.get_by_label("Your question")
    expect(page.locator(".st-key-shortcuts")).to_be_attached()
    while not question.evaluate("field => field === document.activeElement"):  # until its script is there
        page.keyboard.press("/")
        page.wait_for_timeout(300)
    page.keyboard.type("km/h")
    expect(question).to_have_value("km/h")


def look_at_first_screen(page: Page) -> None:
    """Answer, verdict, path and scores fit one of 1440 by 900, in few words, and nothing is wider than a window."""
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(page.get_by_text("Original run")).to_be_visible()
    order = ["[class*=st-key-answer_card]", ".st-key-verdict", ".st-key-path", ".st-key-scores"]
    tops = [page.locator(one).first.bounding_box()["y"] for one in order]  # type: ignore[index]
    assert tops == sorted(tops)
    expect(page.locator(".st-key-scores").get_by_text("decides").last).to_be_visible()  # drawn, in its whole height
    settled(page)
    last = page.locator(order[-1]).bounding_box()
    assert last is not None and last["y"] + last["height"] <= 900
    assert len(page.evaluate(WORDS)) <= 110
    for width in (800, 400, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        settled(page)
        assert page.get_by_test_id("stMain").evaluate("one => one.scrollWidth - one.clientWidth") == 0
        menu = page.get_by_test_id("stMainMenu").bounding_box()
        assert menu is not None and menu["x"] + menu["width"] <= width


def test_a_run_is_looked_up_in_its_pdf_dropped_from_shared_sent_and_found_after_a_reload(
    page: Page, other_page: Page, empty_app: str, lighthouse: Path, tmp_path: Path
) -> None:
    upload(page, empty_app, lighthouse)
    check(page, "documents")
    page.get_by_role("link", name="Ask").click()
    expect(page.get_by_label("Your question")).to_be_visible()
    look_at_welcome(page)
    check(page, "welcome")
    ask(page, QUESTION)
    expect(page.get_by_text("Retrieval: ").first).to_be_visible()
    look_at_first_screen(page)
    verdict = page.locator("h2").first.inner_text()
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_text("A link to this decision")).to_be_visible()
    check(page, "share")
    record = tmp_path / "run.json"
    download(page, "Record (JSON)").save_as(record)
    page.reload()
    expect(page.get_by_text("Retrieval: ").first).to_be_visible()
    assert page.locator("h2").first.inner_text() == verdict

    page.get_by_role("button", name="Show in the document").first.click()
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_text("page 2 of 2")).to_be_visible()
    marks = drawer.locator(".box")
    expect(marks.first).to_be_visible()
    check(page, "document")
    told = [mark.get_attribute("title") or "" for mark in marks.all()]
    assert any(words.startswith("Kept, score") for words in told), told
    assert all(0.03 < mark.evaluate(INK) < 0.5 for mark in marks.all()), "there is writing under every mark"
    drawer.get_by_role("button", name="Previous").click()
    expect(drawer.get_by_text("Nothing of the chunk is on this page: it stands on page 2.")).to_be_visible()
    drawer.get_by_role("button", name="Close").click()
    expect(drawer).not_to_be_visible()

    page.get_by_role("button", name="Drop").first.click()
    expect(page.get_by_text("dropped by you").first).to_be_visible()
    changed = page.locator("h2").first.inner_text()
    for closed in page.locator("[data-testid=stExpander] summary").all():
        closed.click()
    check(page, "changed run, everything open")
    page.get_by_role("button", name="Share").click()
    other_page.goto(page.locator("[data-testid=stCode] code").filter(has_text="run=").inner_text())
    expect(other_page.get_by_text("dropped by you").first).to_be_visible()
    assert other_page.locator("h2").first.inner_text() == changed
    expect(other_page.get_by_label("Your question")).to_have_value(QUESTION)

    other_page.goto(empty_app)
    other_page.get_by_test_id("stMain").get_by_role("button", name="Open", exact=True).click()
    other_page.locator("input[type=file]").set_input_files(record)
    expect(other_page.get_by_text("Retrieval: ").first).to_be_visible()
    assert other_page.locator("h2").first.inner_text() == verdict


def test_stop_really_stops(page: Page, empty_app: str, lighthouse: Path) -> None:
    engine = ScriptedModel(lambda messages: "word " * 400, delay_s=0.1)
    upload(page, empty_app, lighthouse)
    with OllamaServer(engine) as server:
        page.get_by_role("link", name="Settings").click()
        page.get_by_role("textbox", name="Ollama address").fill(server.url)
        page.get_by_role("button", name="Apply").click()
        expect(page.get_by_text("Ollama, 1 model")).to_be_visible()
        page.get_by_role("link", name="Ask").click()
        settled(page)
        page.get_by_role("combobox", name="Answers written by").click()
        page.get_by_role("option", name="smollm2").click()
        ask(page, QUESTION)
        expect(page.get_by_text("word word").first).to_be_visible()
        page.get_by_role("button", name="Stop", exact=False).last.click()
        expect(page.get_by_text("Stopped by you. This is what was written until then, unchecked.")).to_be_visible()
        assert server.wait_for_disconnects()
        written = server.pieces_sent
        assert written < 400
        expect(page.get_by_text("What was done is kept")).to_be_visible()
        assert server.pieces_sent == written


@pytest.mark.exhaustive
def test_nothing_grave_in_the_dark(page: Page, empty_app: str, lighthouse: Path) -> None:
    look_at(page, *DARK)
    upload(page, empty_app, lighthouse)
    check(page, "documents")
    page.goto(empty_app)
    ask(page, QUESTION)
    expect(page.get_by_text("Retrieval: ").first).to_be_visible()
    page.get_by_role("button", name="Drop").first.click()
    expect(page.get_by_text("dropped by you").first).to_be_visible()
    for closed in page.locator("[data-testid=stExpander] summary").all():
        closed.click()
    check(page, "changed run, everything open")
    page.get_by_role("button", name=re.compile("^2 lighthouse.pdf")).click()  # the one that was open is dropped
    page.get_by_role("button", name="Show in the document").first.click()
    expect(page.get_by_role("dialog").get_by_text("lighthouse.pdf").first).to_be_visible()
    check(page, "document")

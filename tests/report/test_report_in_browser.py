"""The report in a real browser that is offline and runs no script: what somebody sees who was sent the file."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from crag_core.base.types.answers import Support
from crag_core.base.types.grades import Opinion
from crag_core.report import render
from crag_core.trace.trace import Trace
from tests.browser.conftest import BROWSERS, FLAGS
from tests.made_up_runs import JUDGE
from tests.matrix import mostly
from tests.report.pages import answered, found_online, recorded, two_pages
from tests.report.test_report_hostile import evil_run

pytestmark = pytest.mark.browser

Opened = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Opens the report of a run from disk; nothing may be asked of the network, and nothing be complained about."""
    contexts, asked, complaints = [], [], []

    def open_run(run: Trace, width: int = 1440, **options: Any) -> Page:
        path = tmp_path / "report.html"
        path.write_text(render(run), "utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 1000}, offline=True, **{"java_script_enabled": False} | options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(path.as_uri())
        return page

    yield open_run
    for context in contexts:
        context.close()
    assert {url.rpartition("/")[2] for url in asked} == {"report.html"}
    assert complaints == []


def rich_run() -> Trace:
    """A run with a bit of everything."""
    run = recorded("paper", 0.55, None, 0.1, web=found_online(*two_pages()))
    support = (Support(0, 26, 0.92, ("p1#0",), (1,)), Support(27, 45, 0.4), Support(46, 60, 0.02))
    return answered(replace(run, support=support, opinions=(Opinion(JUDGE, "ollama/llama", run.grades or ()),)))


def style(page: Page, css: str, name: str) -> str:
    """Playwright looks into the page without any script of the page's own."""
    return str(page.locator(css).first.evaluate(f"element => getComputedStyle(element).{name}"))


@pytest.mark.parametrize("made", [rich_run, evil_run], ids=["rich", "evil"])
@pytest.mark.parametrize("width", mostly(800, 400, 1440))
def test_it_opens_offline_in_every_width_with_nothing_cut_off(
    opened: Opened, width: int, made: Callable[[], Trace]
) -> None:
    page = opened(made(), width)
    assert page.locator("#verdict h2").is_visible()
    assert style(page, ".verdict", "borderRadius") != "0px", "the style sheet is let in"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#scores .strip").first.is_visible()


def test_a_script_could_not_run_even_if_one_were_allowed_to(opened: Opened) -> None:
    page = opened(evil_run(), java_script_enabled=True)
    assert page.title().startswith("AMBIGUOUS: <script>alert(1)</script>")


def test_a_citation_leads_to_its_passage_and_a_sentence_to_its_evidence(opened: Opened) -> None:
    page = opened(rich_run())
    page.locator(".answer .cite").first.click()
    expect(page).to_have_url(re.compile("#passage-1$"))
    page.locator(".answer .support").first.click()
    expect(page).to_have_url(re.compile("#support-1$"))
    page.locator("#support-1 a").click()
    expect(page).to_have_url(re.compile("#passage-1-0$"))
    assert style(page, "#passage-1-0", "outlineStyle") == "solid"


def test_the_keyboard_folds_and_leads(opened: Opened) -> None:
    page = opened(rich_run())
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#answers$"))
    page.locator(".card:has(#passage-3) > summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#passage-3 .text")).to_be_visible()


def test_on_paper_everything_is_unfolded_and_inside_the_page(opened: Opened, tmp_path: Path) -> None:
    page = opened(rich_run(), color_scheme="dark")
    page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True, print_background=True)
    with pypdfium2.PdfDocument(tmp_path / "report.pdf") as pdf:
        width, height = pdf[0].get_size()
        assert (round(width), round(height)) == (595, 842)
        told = " ".join(sheet.get_textpage().get_text_range() for sheet in pdf)
        corner = pdf[0].render().to_pil().getpixel((3, 3))
    assert "Bake it at 220 degrees." in told, "a chunk that is folded on the screen"
    assert corner == (255, 255, 255), "paper is white, whatever the screen is"

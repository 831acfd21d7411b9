"""The report in a real browser that is offline and runs no script: what somebody sees who was sent the file."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pypdfium2
import pytest
from playwright.sync_api import Page, expect

from crag_core.base.types.answers import Support
from crag_core.base.types.grades import Opinion
from crag_core.report import render
from crag_core.trace.trace import Trace
from tests.made_up_runs import JUDGE
from tests.matrix import mostly
from tests.report import test_comparison_page, test_thresholds_report
from tests.report.conftest import Opened
from tests.report.pages import answered, found_online, recorded, two_pages
from tests.report.test_report_hostile import evil_run

pytestmark = pytest.mark.browser
NO_SCRIPT = {"java_script_enabled": False}


def rich_run() -> Trace:
    """A run with a bit of everything."""
    run = recorded("paper", 0.55, None, 0.1, web=found_online(*two_pages()))
    support = (Support(0, 26, 0.92, ("p1#0",), (1,)), Support(27, 45, 0.4), Support(46, 60, 0.02))
    judged = Opinion(JUDGE, "ollama/llama", run.grades or ())
    return answered(replace(run, support=support, opinions=(*run.opinions, judged)))


def style(page: Page, css: str, name: str) -> str:
    """Playwright looks into the page without any script of the page's own."""
    return str(page.locator(css).first.evaluate(f"element => getComputedStyle(element).{name}"))


PAGES = {
    "rich": lambda: render(rich_run()),
    "evil": lambda: render(evil_run()),
    "thresholds": lambda: test_thresholds_report.page_of().html,
    "comparison": lambda: test_comparison_page.evil_page().html,
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", mostly(800, 400, 1440))
def test_it_opens_offline_in_every_width_with_nothing_cut_off(opened: Opened, width: int, name: str) -> None:
    page = opened(PAGES[name](), width, color_scheme="dark", **NO_SCRIPT)
    assert page.locator("h1").is_visible()
    assert style(page, ".verdict", "borderRadius") != "0px", "the style sheet is let in"
    assert style(page, "body", "backgroundColor") == "rgb(17, 22, 27)"
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_script_could_not_run_even_if_one_were_allowed_to(opened: Opened) -> None:
    page = opened(render(evil_run()))
    assert page.title().startswith("AMBIGUOUS: <script>alert(1)</script>")


def test_a_citation_leads_to_its_passage_and_a_sentence_to_its_evidence(opened: Opened) -> None:
    page = opened(render(rich_run()), **NO_SCRIPT)
    page.locator(".answer .cite").first.click()
    expect(page).to_have_url(re.compile("#passage-1$"))
    page.locator(".answer .support").first.click()
    expect(page).to_have_url(re.compile("#support-1$"))
    page.locator("#support-1 a").click()
    expect(page).to_have_url(re.compile("#passage-1-0$"))
    assert style(page, "#passage-1-0", "outlineStyle") == "solid"


def test_the_keyboard_folds_and_leads(opened: Opened) -> None:
    page = opened(render(rich_run()), **NO_SCRIPT)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#answers$"))
    page.locator(".card:has(#passage-3) > summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#passage-3 .text")).to_be_visible()


def test_on_paper_everything_is_unfolded_and_inside_the_page(opened: Opened, tmp_path: Path) -> None:
    page = opened(render(rich_run()), color_scheme="dark", **NO_SCRIPT)
    page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True, print_background=True)
    with pypdfium2.PdfDocument(tmp_path / "report.pdf") as pdf:
        width, height = pdf[0].get_size()
        assert (round(width), round(height)) == (595, 842)
        told = " ".join(sheet.get_textpage().get_text_range() for sheet in pdf)
        corner = pdf[0].render().to_pil().getpixel((3, 3))
    assert "Bake it at 220 degrees." in told, "a chunk that is folded on the screen"
    assert corner == (255, 255, 255), "paper is white, whatever the screen is"

"""A story as one HTML file: it plays in a browser that is offline, and other people's text in it stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Page, expect

from crag_core.report.story import render_story
from crag_core.trace.trace import Trace
from crag_core.view.run_view import view_run
from crag_core.view.story.steps import Story
from crag_core.view.story.story import tell
from tests.report.conftest import Opened
from tests.report.test_report_hostile import DISGUISED, EVIL, SHOWN, evil_run
from ui.session.demos import demos


def story_of(run: Trace, **more: Any) -> Story:
    return tell(view_run(run), **more)


def evil_story(text: str = EVIL) -> Story:
    return story_of(evil_run(text), title=text, notes={"question": text}, about=text, web_note=text)


def soup_of(story: Story) -> BeautifulSoup:
    return BeautifulSoup(render_story(story), "html.parser")


# --- the file ---------------------------------------------------------------------------------------------------------


def test_the_page_allows_its_own_script_and_style_and_nothing_else() -> None:
    soup = soup_of(evil_story())
    (said,) = soup.select('meta[http-equiv="Content-Security-Policy"]')
    (sheet,), (code,) = soup.select("style"), soup.select('script[type="module"]')
    digests = (hashlib.sha256(part.get_text().encode()).digest() for part in (sheet, code))
    style, script = (f"sha256-{base64.b64encode(digest).decode()}" for digest in digests)
    assert said["content"] == (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"url\(|@import|expression", sheet.get_text())
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(|import\(", code.get_text())
    assert not soup.select("[style], [src], [srcset], link, base, form, iframe, img, a")


def test_no_text_gets_out_of_the_data() -> None:
    soup = soup_of(evil_story())
    assert len(soup.select("script")) == 2 and soup.select("h1, svg") == []
    (data,) = soup.select("#story")
    assert not re.search("[<>&\u2028\u2029]", data.get_text())
    assert SHOWN in json.loads(data.get_text())["title"]
    assert soup.title is not None and soup.title.get_text().startswith(SHOWN)


def test_no_text_can_disguise_itself_or_break_the_file() -> None:
    page = render_story(evil_story(DISGUISED))
    page.encode()
    data = soup_of(evil_story(DISGUISED)).select("#story")[0].get_text()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]", page)
    assert not re.search(r"\\u(00[01]|202[a-e]|206[6-9]|d8)", data)


# --- in a browser -----------------------------------------------------------------------------------------------------


def open_story(opened: Opened, story: Story, width: int = 1440, **options: Any) -> Page:
    return opened(render_story(story), width, has_clock=True, **options)


CALM = {"reduced_motion": "reduce"}


@pytest.mark.browser
def test_it_plays_by_itself_to_the_end_and_moves_the_bar(opened: Opened) -> None:
    page = open_story(opened, story_of(demos()[1].trace, title="A ship"))
    titles = [dot.get_attribute("title") for dot in page.locator(".dots button").all()]
    for number, title in enumerate(titles, start=1):
        expect(page.locator("h1")).to_have_text(str(title))
        expect(page.locator(".count")).to_have_text(f"Step {number} of {len(titles)}")
        if number < len(titles):
            page.clock.run_for(_reading_time(page))
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.clock.run_for(_reading_time(page) + 2_000)
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.locator(".now h2")).to_contain_text("Now: bar at")
    expect(page.locator(".now b").first).not_to_have_text(page.locator(".outcomes section b").first.inner_text())


def _reading_time(page: Page) -> int:
    """As the script reckons: a little longer than this step, and shorter than two."""
    text = " ".join(page.locator("h1, .caption, .note").all_inner_texts())
    return 2_400 + 260 * len(text.split()) + 300


@pytest.mark.browser
def test_the_bar_is_moved_by_hand_and_by_keys(opened: Opened) -> None:
    page = open_story(opened, story_of(demos()[0].trace), **CALM)
    page.keyboard.press("End")
    bar = page.get_by_role("slider", name="bar for an answer")
    bar.focus()
    page.keyboard.press("End")
    expect(page.locator(".now h2")).to_have_text("Now: bar at 1.00")
    expect(page.locator(".now b")).to_have_text("AMBIGUOUS")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".now h2")).to_have_text("Now: bar at 0.99")
    box = bar.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".now h2")).to_have_text("Now: bar at 0.50")
    expect(page.locator(".now b")).to_have_text("CORRECT")
    line, area = page.locator(".movable").bounding_box(), page.locator(".area").bounding_box()
    assert line and area and abs(line["x"] + 2 - (area["x"] + area["width"] / 2)) < 2


@pytest.mark.browser
@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1024, 768)])
def test_every_step_fits_into_the_window(opened: Opened, width: int, height: int) -> None:
    page = open_story(opened, story_of(demos()[1].trace), width, **CALM)
    page.set_viewport_size({"width": width, "height": height})
    for _ in range(page.locator(".dots button").count()):
        assert page.evaluate("document.documentElement.scrollHeight") <= height, page.locator("h1").inner_text()
        page.keyboard.press("ArrowRight")


@pytest.mark.browser
def test_hostile_text_shows_as_text_on_every_step(opened: Opened) -> None:
    page = open_story(opened, evil_story(), **CALM)
    seen = []
    for _ in range(page.locator(".dots button").count()):
        seen.append(page.locator("body").inner_text())
        assert page.locator(".story :is(script, img, svg, a, iframe, [onerror], [onload])").count() == 0
        page.keyboard.press("ArrowRight")
    assert sum("<script>alert(1)</script>" in one for one in seen) >= 4

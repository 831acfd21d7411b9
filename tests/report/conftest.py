"""Opens reports in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import open_browser

Opened = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as chromium:
        yield chromium


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Opens HTML from disk; nothing may be asked of the network, and nothing be complained about."""
    contexts, asked, complaints = [], [], []

    def open_page(html: str, width: int = 1440, has_clock: bool = False, **options: Any) -> Page:
        path = tmp_path / "page.html"
        path.write_text(html, "utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        if has_clock:
            page.clock.install()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert {url.rpartition("/")[2] for url in asked} == {"page.html"}
    assert complaints == []

"""What holds for every report that is made of tables."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pypdfium2

from tests.browser.conftest import open_browser
from tests.report.pages import Page
from tests.report.test_report_hostile import ATTRIBUTES, TAGS

DISGUISE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


class Nesting(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_sound(page: Page) -> None:
    nesting = Nesting()
    nesting.feed(page.html)
    assert nesting.open == []
    ids = [tag["id"] for tag in page.soup.select("[id]")]
    assert len(ids) == len(set(ids))
    assert {tag["aria-labelledby"] for tag in page.soup.select("[aria-labelledby]")} <= set(ids)
    levels = [int(tag.name[1]) for tag in page.soup.select("h1, h2, h3, h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    tags = page.soup.find_all(True)
    assert {tag.name for tag in tags} <= set(TAGS.split())
    assert {name.lower() for tag in tags for name in tag.attrs} <= set(ATTRIBUTES.split())
    assert all(tag.get("scope") for tag in page.soup.select("th"))
    assert all(tag.parent["tabindex"] == "0" for tag in page.soup.select("table")), "a box that scrolls"
    assert not page.soup.select("a, [style], [src], [srcset], link, base, form, script, iframe")
    (policy_of,) = page.soup.select('meta[http-equiv="Content-Security-Policy"]')
    (sheet,) = page.soup.select("style")
    key = base64.b64encode(hashlib.sha256(sheet.get_text().encode()).digest()).decode()
    assert policy_of["content"] == f"default-src 'none'; style-src 'sha256-{key}'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\(|@import|expression", sheet.get_text())
    assert not DISGUISE.search(page.html.encode().decode())


def assert_opens_offline(pages: Mapping[str, Page], folder: Path) -> None:
    """Nothing cut off at any width, dark where the reader wants that, and on white paper."""
    asked: list[str] = []
    complaints: list[str] = []
    with open_browser() as browser:
        for name, made in pages.items():
            path = folder / f"{name}.html"
            path.write_text(made.html, "utf-8")
            for width in (360, 800, 1440):
                context = browser.new_context(
                    viewport={"width": width, "height": 1000},
                    offline=True,
                    java_script_enabled=False,
                    color_scheme="dark",
                )
                page = context.new_page()
                page.on("request", lambda request: asked.append(request.url))
                page.on("console", lambda message: complaints.append(message.text))
                page.goto(path.as_uri())
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
                assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 22, 27)"
                page.pdf(path=folder / "sheet.pdf", prefer_css_page_size=True, print_background=True)
                context.close()
            with pypdfium2.PdfDocument(folder / "sheet.pdf") as pdf:
                assert tuple(map(round, pdf[0].get_size())) == (595, 842)
                assert pdf[0].render().to_pil().getpixel((3, 3)) == (255, 255, 255)
    assert {url.rpartition("/")[2] for url in asked} == {f"{name}.html" for name in pages}
    assert complaints == []

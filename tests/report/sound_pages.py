"""What holds for every report, whatever it tells."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

from tests.report.pages import Page

TAGS = """
html head meta title style body header nav main section footer h1 h2 h3 h4 p a span b em s small q br bdi ul ol li dl
dt dd div details summary code pre figure figcaption table caption thead tbody tfoot tr th td svg path rect circle
line text
"""
ATTRIBUTES = """
lang dir charset http-equiv content name class id href rel title role tabindex open scope aria-label aria-labelledby
aria-hidden viewbox colspan d x y x1 x2 y1 y2 r cx cy rx width height overflow
"""
"""Every kind of element and attribute that a report is made of."""
DISGUISE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
EMPTY = {"meta", "br", "rect", "line", "path", "circle"}
"""Elements without an end."""


class Nesting(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag


def assert_sound(page: Page) -> None:
    """It is made of our own elements, runs and loads nothing, hides no sign, and every link leads somewhere."""
    nesting = Nesting()
    nesting.feed(page.html)
    assert nesting.open == []
    ids = [tag["id"] for tag in page.soup.select("[id]")]
    assert len(ids) == len(set(ids))
    assert {tag["aria-labelledby"] for tag in page.soup.select("[aria-labelledby]")} <= set(ids)
    links = [str(tag["href"]) for tag in page.soup.select("a")]
    assert {link for link in links if not link.startswith("https://")} <= {f"#{id_}" for id_ in ids}
    assert len(page.soup.select('a[href^="https:"]')) == len(page.soup.select('a[rel~="noreferrer"]'))
    levels = [int(tag.name[1]) for tag in page.soup.select("h1, h2, h3, h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    tags = page.soup.find_all(True)
    assert {tag.name for tag in tags} <= set(TAGS.split())
    assert {name.lower() for tag in tags for name in tag.attrs} <= set(ATTRIBUTES.split())
    assert all(tag.get("scope") for tag in page.soup.select("th"))
    assert all(tag.parent["tabindex"] == "0" for tag in page.soup.select("table")), "a box that scrolls"
    assert not page.soup.select("[style], [src], [srcset], link, base, form, script, iframe")
    (policy_of,) = page.soup.select('meta[http-equiv="Content-Security-Policy"]')
    (sheet,) = page.soup.select("style")
    key = base64.b64encode(hashlib.sha256(sheet.get_text().encode()).digest()).decode()
    assert policy_of["content"] == f"default-src 'none'; style-src 'sha256-{key}'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\(|@import|expression", sheet.get_text())
    assert not DISGUISE.search(page.html.encode().decode())

"""robots.txt as RFC 9309 has it."""

from __future__ import annotations

import pytest

from crag_core.websearch.robots import may_read

ROBOTS = """\ufeff# for all
User-agent: Other
User-agent: *   # everybody else
Disallow: /private
Allow: /private/open
Disallow: /*.pdf$
Disallow: /*?id=
Disallow:
Sitemap: https://example.org/map.xml

User-Agent: CRAG-Explorer/1.0
disallow: /ours

user-agent: crag-explorer
DISALLOW: /a%7Eb
"""


@pytest.mark.parametrize(
    ("agent", "target", "may"),
    [
        ("Somebody", "/", True),
        ("Somebody", "/private", False),
        ("Somebody", "/private/open/x", True),
        ("other", "/privately", False),
        ("Somebody", "/a/b.pdf", False),
        ("Somebody", "/a/b.pdf?x", True),
        ("Somebody", "/list?x=1&y?id=2", False),
        ("CRAG-Explorer", "/private", True),
        ("CRAG-Explorer", "/ours/too", False),
        ("CRAG-Explorer", "/a~b", False),
    ],
)
def test_longest_rule_of_the_agents_own_groups_decides(agent: str, target: str, may: bool) -> None:
    assert may_read(ROBOTS, agent, target) is may


@pytest.mark.parametrize(
    ("rule", "target", "may"),
    [("/a*b*c", "/a-b-c", False), ("/a*bc*bc$", "/abc", True), ("/a*$", "/abc", False), ("/$", "/x", True)],
)
def test_stars_and_ends(rule: str, target: str, may: bool) -> None:
    assert may_read(f"User-agent: *\nDisallow: {rule}", "any", target) is may


@pytest.mark.parametrize("robots", ["", "<html>", "Disallow: /", ":::", "User-agent: *", "User-agent: *\nDisallow"])
def test_what_says_nothing_allows_all(robots: str) -> None:
    assert may_read(robots, "any", "/x")

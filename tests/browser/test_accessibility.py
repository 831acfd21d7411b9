"""axe-core in the real browser finds nothing serious or critical, whatever is open, in both themes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import DARK, LIGHT, PATIENCE, ask, look_at, one_look, settled, upload

GRAVE = ("serious", "critical")
SETTLED = """() => new Promise((done) => {
  let last = performance.now();
  const watch = new MutationObserver(() => { last = performance.now(); });
  watch.observe(document.body, { subtree: true, childList: true, attributes: true });
  const fades = (one) => one.playState === "running" && one.effect.getComputedTiming().endTime !== Infinity;
  const rests = () => performance.now() - last > 500 && !document.getAnimations().some(fades);
  const look = () => rests() ? (watch.disconnect(), done()) : setTimeout(look, 50);
  look();
})"""
"""Half a second without a change, and nothing that fades in or out."""


def check(page: Page, where: str) -> None:
    page.mouse.move(1, 1)
    settled(page)  # else it is faded
    page.evaluate(SETTLED)
    found = Axe().run(page).response["violations"]
    told = [
        f"{where}: {one['id']} at {node['target']}: {node['failureSummary']}"
        for one in found
        if one["impact"] in GRAVE
        for node in one["nodes"]
    ]
    assert not told, "\n".join(told)


@pytest.mark.parametrize(("theme", "width"), one_look(LIGHT))
def test_nothing_grave_on_the_ask_page(page: Page, empty_app: str, lighthouse: Path, theme: str, width: int) -> None:
    look_at(page, theme, width)
    upload(page, empty_app, lighthouse)
    check(page, "documents")
    page.goto(empty_app)
    expect(page.get_by_label("Your question")).to_be_visible()
    check(page, "welcome")
    ask(page, "How high is the tower of the lighthouse?")
    expect(page.get_by_text("Retrieval: ")).to_be_visible()
    check(page, "run")
    page.get_by_role("button", name="Drop").first.click()
    expect(page.get_by_text("dropped by you").first).to_be_visible()
    for closed in page.locator("[data-testid=stExpander] summary").all():
        closed.click()
    check(page, "changed run, everything open")
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_text("A link to this decision")).to_be_visible()
    check(page, "share")
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("^2 lighthouse.pdf")).click()  # the one that was open is dropped
    page.get_by_role("button", name="Show in the document").first.click()
    expect(page.get_by_role("dialog").get_by_text("lighthouse.pdf").first).to_be_visible()
    check(page, "document")


PAGES = [
    ("policies", "One set of scores, every policy"),
    ("settings", "Settings"),
    ("logs", "Open retrieval log"),
]


@pytest.mark.parametrize(("theme", "width"), one_look(DARK))
@pytest.mark.parametrize(("name", "title"), PAGES)
def test_nothing_grave_on_the_other_pages(
    page: Page, empty_app: str, theme: str, width: int, name: str, title: str
) -> None:
    look_at(page, theme, width)
    page.goto(f"{empty_app}/{name}")
    expect(page.get_by_role("heading", name=title)).to_be_visible(timeout=PATIENCE)
    check(page, name)

"""What axe-core finds on a page that has come to rest."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.conftest import settled

GRAVE = ("serious", "critical")
SETTLED = """() => new Promise((done) => {
  let last = performance.now();
  const watch = new MutationObserver(() => { last = performance.now(); });
  watch.observe(document.body, { subtree: true, childList: true, attributes: true });
  const fades = (one) => one.playState === "running" && one.effect.getComputedTiming().endTime !== Infinity;
  const rests = () => performance.now() - last > 250 && !document.getAnimations().some(fades);
  const look = () => rests() ? (watch.disconnect(), done()) : setTimeout(look, 50);
  look();
})"""
"""A quarter of a second without a change, and nothing that fades in or out."""


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

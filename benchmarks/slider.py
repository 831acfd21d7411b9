"""From a pressed key on a threshold slider to the changed verdict on the screen, in a real Chromium at 20 passages.

Beside it the same for the smallest Streamlit page with a slider and a line of text: what the framework itself takes.

Run: python benchmarks/slider.py (needs requirements-dev.txt and a Chromium; a minute)
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Locator, Page

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.browser.conftest import PATIENCE, ask, open_browser, serve

QUESTION = "How many days of paid leave do full-time staff receive?"
PASSAGES, TIMES = 20, 20
SMALLEST = """
import streamlit as st
st.header(f"At {st.slider('Threshold', 0.0, 1.0, 0.5, 0.005):.3f}")
"""

WATCH = """(told) => {
  const text = () => document.querySelector(told)?.textContent;
  const before = text();
  let start = 0;
  addEventListener("keydown", () => { start = performance.now(); }, { once: true, capture: true });
  window.taken = new Promise((done) => {
    const watch = new MutationObserver(() => {
      if (!start || text() === before) return;
      watch.disconnect();
      requestAnimationFrame(() => done(performance.now() - start));
    });
    watch.observe(document.body, { subtree: true, childList: true, characterData: true });
  });
}"""
"""Milliseconds from the next key to the frame that draws another text in an element."""


def measure(page: Page, slider: Locator, told: str) -> list[float]:
    """Milliseconds of `TIMES` keys, one way and back; the first two warm up."""
    slider.focus()
    taken = []
    for turn in range(TIMES + 2):
        page.evaluate(WATCH, told)
        page.keyboard.press("ArrowLeft" if turn % 4 < 2 else "ArrowRight")
        taken.append(float(page.evaluate("window.taken")))
        page.wait_for_timeout(1000)
    return taken[2:]


def measure_smallest(browser: Browser, home: Path) -> list[float]:
    script = home / "smallest.py"
    script.write_text(SMALLEST, "utf-8")
    with serve(home, script) as url:
        page = browser.new_page()
        page.goto(url)
        return measure(page, page.get_by_role("slider"), "h2")


def measure_ours(browser: Browser, home: Path) -> dict[str, list[float]]:
    with serve(home, CRAG_TOP_K=str(PASSAGES)) as url:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(PATIENCE)
        page.goto(url)
        ask(page, QUESTION)  # waits until the sample documents are indexed
        page.get_by_text("Original run").wait_for()
        page.wait_for_timeout(5000)
        verdict = ".st-key-verdict"
        sidebar = page.get_by_test_id("stSidebar").get_by_role("slider", name="Bar for an answer")
        mark = page.get_by_role("slider", name=re.compile("^bar for an answer"))
        return {
            "slider in the sidebar": measure(page, sidebar, verdict),
            "mark in the picture": measure(page, mark, verdict),
        }


def main() -> None:
    with open_browser() as browser, tempfile.TemporaryDirectory() as folder:
        floor = measure_smallest(browser, Path(folder))
        rows = {"smallest Streamlit page": floor, **measure_ours(browser, Path(folder))}
    print(f"key to changed verdict, {PASSAGES} passages, {TIMES} keys, milliseconds")
    print(f"{'':<26}{'median':>8}{'largest':>9}{'ratio of medians':>18}")
    for name, taken in rows.items():
        print(f"{name:<26}{median(taken):>8.0f}{max(taken):>9.0f}{median(taken) / median(floor):>18.1f}")


if __name__ == "__main__":
    main()

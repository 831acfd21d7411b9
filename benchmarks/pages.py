"""From a click on a page's name to the page as a whole, in a real Chromium, with a history of many runs.

Beside it the processor time of the server for it, and the same between two of the smallest Streamlit pages: what the
framework itself takes.

Run: python benchmarks/pages.py [RUNS] (2,000 unless told otherwise; needs requirements-dev.txt and a Chromium; two
minutes)
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

from playwright.sync_api import Page

sys.path.insert(0, str(Path(__file__).parent.parent))

from crag_core.base.data_files import DATA
from crag_core.evaluators.policies import load_policies
from crag_core.storage.history import HistoryStore
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from tests.browser.conftest import PATIENCE, open_browser, serve

GOES, DAYS = 4, 60
SMALLEST = """
import streamlit as st
pages = [st.Page(lambda name=name: st.title(name), title=name, url_path=name) for name in ("One", "Two")]
st.navigation(pages, position="top").run()
"""
PAGES = ["Compare", "Tune", "Logs", "Policies", "Documents", "History", "Metrics", "Settings", "Ask"]

WATCH = """(name) => {
  const app = document.querySelector("[data-testid=stApp]");
  const is_there = () => app.getAttribute("data-test-script-state") === "notRunning"
    && !document.querySelector("[data-stale=true]");
  window.taken = new Promise((done) => {
    let start = 0, last = 0;
    addEventListener("click", () => { start = last = performance.now(); }, { once: true, capture: true });
    // What readers aloud are told of a table that is drawn already comes later, and is not seen.
    const element = (one) => one.closest ? one : one.parentElement;
    const is_seen = (change) => !element(change.target)?.closest("canvas");
    const watch = new MutationObserver((changes) => { if (changes.some(is_seen)) last = performance.now(); });
    watch.observe(document.body, { subtree: true, childList: true, characterData: true });
    const ask = () => {
      // Drawn is what has not changed for a while after the script has ended.
      if (start && is_there() && performance.now() - last > 700) { watch.disconnect(); done(last - start); }
      else setTimeout(ask, 20);
    };
    ask();
  });
}"""
"""Milliseconds from the next click to the last change of the page."""


def fill(home: Path, runs: int) -> None:
    """Copies of the recorded runs under all policies, over `DAYS` days."""
    recorded = [Trace.from_json(path.read_text("utf-8")) for path in sorted((DATA / "runs").glob("*.json"))]
    policies, choose = list(load_policies()[0].values()), random.Random(1)
    times = iter(sorted(time.time() - 86_400 * DAYS * choose.random() for _ in range(runs)))
    store = HistoryStore(home / "crag.db", clock=lambda: next(times))
    for number in range(runs):
        made = recorded[number % len(recorded)]
        policy = choose.choice(policies).with_thresholds_for(made.settings.evaluator, made.settings.strip_evaluator)
        moved = replace(made, id=f"run-{number}", settings=replace(made.settings, policy=policy))
        store.save(replace(moved, decision=reroute(moved, policy).decision))


def measure(page: Page, names: list[str], work: Callable[[], float]) -> dict[str, list[tuple[float, float]]]:
    """(milliseconds until drawn, those of the server's processor) of each page, the first visit and `GOES` more."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for _ in range(GOES + 1):
        for name in names:
            before = work()
            page.evaluate(WATCH, name)
            page.get_by_role("link", name=name, exact=True).click()
            found = float(page.evaluate("window.taken"))
            taken[name].append((found, work() - before))
    return taken


def work_of_server() -> float:
    """Milliseconds of processor that the children of this process have used, but for the browser's."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if b"streamlit" in command and int(fields[1]) == os.getpid():
                ticks += int(fields[11]) + int(fields[12])
    return 1000 * ticks / os.sysconf("SC_CLK_TCK")


def main(runs: int) -> None:
    with open_browser() as browser, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "sample-indexed").touch()
        (home / "smallest.py").write_text(SMALLEST, "utf-8")
        fill(home, runs)
        rows: dict[str, list[tuple[float, float]]] = {}
        for script, names in ((home / "smallest.py", ["One", "Two"]), (None, PAGES)):
            with serve(home, script) if script else serve(home) as url:
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.set_default_timeout(PATIENCE)
                page.goto(url)
                page.get_by_role("link", name=names[-1], exact=True).wait_for()
                page.wait_for_timeout(1000 if script else 12_000)  # the embedding model is loaded meanwhile
                rows |= measure(page, names, work_of_server)
                page.close()
    floor = median(ms for name in ("One", "Two") for ms, _ in rows[name][1:])
    print(f"{runs:,} runs kept, {GOES} visits of each page after the first, milliseconds")
    print(f"{'':<12}{'median':>8}{'largest':>9}{'ratio':>7}{'of server':>11}{'first visit':>13}{'of server':>11}")
    for name, ((first, first_server), *taken) in rows.items():
        drawn, server = [ms for ms, _ in taken], median(ms for _, ms in taken)
        print(
            f"{name:<12}{median(drawn):>8.0f}{max(drawn):>9.0f}{median(drawn) / floor:>7.1f}{server:>11.0f}"
            f"{first:>13.0f}{first_server:>11.0f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)

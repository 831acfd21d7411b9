"""From the command to the answer to a first question about the samples, in a new home and a real Chromium.

Run: python benchmarks/first_answer.py (needs requirements-dev.txt and a Chromium; half a minute)
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.browser.conftest import PATIENCE, ask, open_browser, serve

QUESTION = "How many days of paid leave do full-time staff receive?"
TIMES = 3


def measure(home: Path) -> dict[str, float]:
    """Seconds since the command; the question is asked as soon as there is a field for it."""
    seen: dict[str, float] = {}
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(PATIENCE)
        start = time.perf_counter()
        with serve(home) as url:
            seen["address"] = time.perf_counter() - start
            page.goto(url)
            page.get_by_label("Your question").wait_for()
            seen["question box"] = time.perf_counter() - start
            ask(page, QUESTION)
            page.locator(".st-key-verdict").wait_for()
            seen["verdict"] = time.perf_counter() - start
            page.get_by_role("heading", name="Answered").wait_for()
            seen["answer"] = time.perf_counter() - start
    return seen


if __name__ == "__main__":
    runs = []
    for _ in range(TIMES):
        with tempfile.TemporaryDirectory() as folder:
            runs.append(measure(Path(folder)))
    for name in runs[0]:
        print(f"{name:14} {median(run[name] for run in runs):5.1f} s")

"""What many kept runs cost the History and Metrics pages.

Run: python benchmarks/history.py [RUNS] [URL] (10,000 runs unless told otherwise: about two minutes, 300 MB of disk)

Keeps copies of the recorded runs that come with the program in a new SQLite file, or in the database of the URL, which
should be an empty one, and prints the median of several goes at each use.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from crag_core.base.data_files import DATA
from crag_core.base.types.decisions import Action
from crag_core.storage.history import HistoryStore
from crag_core.storage.history.runs import EVERYTHING, Feedback, Selection
from crag_core.trace.feedback import Mark, of_route
from crag_core.trace.trace import Trace

GOES = 5
MINUTE = 60.0


def fill(store: HistoryStore, runs: int, recorded: list[Trace]) -> None:
    for number in range(runs):
        made = recorded[number % len(recorded)]
        made = replace(made, id=f"run-{number}", question=f"{made.question} ({number})")
        store.save(made)
        if number % 5 == 0 and made.decision:
            store.add_label(of_route(made, made.settings.policy, made.decision.action, Mark.WRONG, "now"))


def uses(store: HistoryStore, runs: int) -> dict[str, Callable[[], object]]:
    rare = Selection(text=f"({runs // 2})")
    return {
        "first page of 25": lambda: store.search(EVERYTHING, 25),
        "last page of 25": lambda: store.search(EVERYTHING, 25, max(runs - 25, 0)),
        "count of all": lambda: store.count(),
        "one action, a page and its count": lambda: (store.search(_CORRECT, 25), store.count(_CORRECT)),
        "a text that one run has, and its count": lambda: (store.search(rare, 25), store.count(rare)),
        "wrong routes, a page and their count": lambda: (store.search(_WRONG, 25), store.count(_WRONG)),
        "policies that occur": lambda: store.policies(),
        "figures of all": lambda: store.measured(),
    }


_CORRECT = Selection(actions=(Action.CORRECT,))
_WRONG = Selection(feedback=(Feedback.ROUTE_WRONG,))


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main(runs: int, url: str) -> None:
    recorded = [Trace.from_json(path.read_text("utf-8")) for path in sorted((DATA / "runs").glob("*.json"))]
    ticks = count()
    with tempfile.TemporaryDirectory() as folder:
        store = HistoryStore(url or Path(folder) / "crag.db", clock=lambda: next(ticks) * MINUTE)
        filling = seconds(lambda: fill(store, runs, recorded))
        print(f"{runs:,} runs kept, {1000 * filling / runs:.1f} ms each with every fifth label")
        if not url:
            print(f"{(Path(folder) / 'crag.db').stat().st_size / 2**20:.0f} MB of file")
        for name, use in uses(store, runs).items():
            print(f"{1000 * median(seconds(use) for _ in range(GOES)):8.1f} ms  {name}")
        half = Selection(until=runs * MINUTE / 2)
        print(f"{1000 * seconds(lambda: store.delete_all(half)):8.1f} ms  half of them deleted")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, sys.argv[2] if len(sys.argv) > 2 else "")

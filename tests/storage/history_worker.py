"""Run as a process of its own: `python -m tests.storage.history_worker PLACE TASK MARK`, PLACE being a file or a URL.

It says "ready", waits for a line, does the task, and says as JSON what it saw.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from crag_core.storage.history import HistoryStore
from tests.storage.history_parts import large_run, passage_label, whole_run

RUNS = 40


def hammer(store: HistoryStore, mark: str) -> dict[str, Any]:
    """Saves runs of its own and one that all processes save, with labels, and reads each at once."""
    lost = 0
    for number in range(RUNS):
        mine = whole_run(f"{mark}-{number}")
        store.save(mine)
        store.save(whole_run("shared"))
        store.add_label(passage_label(mine, "p1"))
        lost += store.load(mine.id) != mine or store.load("shared") != whole_run("shared") or not store.search(limit=5)
    return {"lost": lost, "problem": store.problem}


def import_one(store: HistoryStore, mark: str) -> dict[str, Any]:
    """Imports the same run as every other process."""
    return {"id": store.save_import(whole_run("from elsewhere")).id, "problem": store.problem}


def look(store: HistoryStore, mark: str) -> dict[str, Any]:
    """Reads a history that an earlier version wrote."""
    return {"count": store.count(), "problem": store.problem}


def save_without_end(store: HistoryStore, mark: str) -> dict[str, Any]:
    """Until it is killed: a large run, over and over, each time another."""
    number = 0
    while True:
        store.save(large_run(f"{mark}-{number % 3}"))
        print(number, flush=True)
        number += 1


def main(place: str, task: str, mark: str) -> None:
    store = HistoryStore(place if "://" in place else Path(place))
    print("ready", flush=True)
    sys.stdin.readline()
    tasks = {"hammer": hammer, "import": import_one, "save": save_without_end, "upgrade": look}
    print(json.dumps(tasks[task](store, mark)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

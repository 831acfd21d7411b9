"""Run as a process of its own: `python -m tests.storage.cache_worker SETTING FOLDER TASK MARK`.

It opens the cache, says "ready", waits for a line, does the task, and says as JSON what it saw.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from crag_core.base.types.grades import Grade
from crag_core.evaluators.cached import CachedEvaluator
from crag_core.storage.cache import GradeCache, open_cache
from tests.storage.cache_parts import IDENTITY, CountingEvaluator, ask, grade, key, passages

HOUR = 3600.0
GRADES = 200
LONG = 3000  # more than half a page of SQLite: a value that is written in pieces


def reason_of(mark: str) -> str:
    return mark * LONG


def is_whole(kept: Grade) -> bool:
    return len(kept.reason) == LONG and len(set(kept.reason)) == 1


def own_key(mark: str, number: int) -> str:
    return key(1000 * ord(mark) + number)


def hammer(cache: GradeCache, mark: str) -> dict[str, Any]:
    """Writes keys that all processes write and keys of its own, and reads what it wrote at once."""
    lost = torn = 0
    for number in range(GRADES):
        mine = grade(0.5, reason_of(mark))
        cache.put_many({key(number): mine, own_key(mark, number): mine})
        seen = cache.get_many([key(number), own_key(mark, number)])
        lost += 2 - len(seen)
        torn += sum(not is_whole(kept) for kept in seen.values())
    return {"lost": lost, "torn": torn, "problem": cache.problem}


def repeat(cache: GradeCache, mark: str) -> dict[str, Any]:
    """Asks the same question as every other process."""
    inner = CountingEvaluator()
    grades = ask(CachedEvaluator(inner, cache, IDENTITY), *passages("p1", "p2", "p3"))
    return {"asked": inner.asked, "scores": [one.score for one in grades], "problem": cache.problem}


def main(setting: str, folder: str, task: str, mark: str) -> None:
    cache = open_cache(setting, Path(folder), HOUR)
    assert cache is not None
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps({"hammer": hammer, "repeat": repeat}[task](cache, mark)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

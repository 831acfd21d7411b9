"""A made run, and the median time of work on it: what a slider costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.decision.refine import decompose
from crag_core.evaluators.policies import find_policy, known_card
from crag_core.trace.trace import RunSettings, Trace

TIMES = 200


def recorded(passages: int) -> Trace:
    """A made run: `passages` of eight sentences each, with scores spread over the scale."""
    text = " ".join(f"Sentence number {n} of this passage says something about the ferry." for n in range(8))
    found = tuple(Passage(f"p{n}", text.replace("ferry", f"ferry {n}"), f"file-{n}.md") for n in range(passages))
    grades = tuple(Grade(passage.id, (n + 1) / (passages + 1)) for n, passage in enumerate(found))
    pieces = [strip for passage in found for strip in decompose(passage)]
    strips = tuple(replace(strip, score=(n % 97) / 97) for n, strip in enumerate(pieces))
    card = known_card("embedding")
    settings = RunSettings(
        find_policy("paper"), card, card, "all-MiniLM-L6-v2", "extractive", "off", passages, "1", "0"
    )
    return Trace("run", "now", "When?", settings, passages=found, grades=grades, strips=strips)


def milliseconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(TIMES):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1000)
    return median(taken)

"""How long deciding again takes: what a slider costs, for runs of 6 and of 20 passages.

Run: python benchmarks/reroute.py
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.decision.decide import decide
from crag_core.decision.refine import decompose
from crag_core.decision.stability import stability
from crag_core.evaluators.policies import find_policy, known_card
from crag_core.trace.reroute import reroute
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


def milliseconds(work: object) -> float:
    assert callable(work)
    taken = []
    for _ in range(TIMES):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1000)
    return median(taken)


def main() -> None:
    for passages in (6, 20):
        trace = recorded(passages)
        policy = trace.settings.policy.with_thresholds(0.3, 0.6, 0.4)
        graded = (trace.passages or (), trace.grades, trace.signals)
        print(f"{passages} passages, {len(trace.strips or ())} strips, median of {TIMES}:")
        print(f"  decide     {milliseconds(lambda policy=policy, graded=graded: decide(policy, *graded)):7.3f} ms")
        print(f"  stability  {milliseconds(lambda policy=policy, graded=graded: stability(policy, *graded)):7.3f} ms")
        print(f"  reroute    {milliseconds(lambda policy=policy, trace=trace: reroute(trace, policy)):7.3f} ms")


if __name__ == "__main__":
    main()

"""Output of the commands `evaluate` and `tune`, as text and as JSON."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from crag_core.base.serialization import to_plain
from crag_core.experiments.batch import SetProgress
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.experiments.thresholds.recommend import Recommendation
from crag_core.experiments.thresholds.threshold_board import ACTIONS, Board, Rates
from crag_core.report.thresholds.view import recommendation_lines

SHARES = ("confidently_wrong", "needless_web", "missed_web", "discarded", "ungraded", "web", "right")
"""The rates that are shares, in the order in which they are printed."""

Table = Sequence[Sequence[int]]


def describe(name: str, board: Board, rates: Rates, table: Table, parting: Estimate | None) -> str:
    """A labelled set under one policy; `parting` is how well the deciding score tells answerable questions."""
    policy = board.policy
    lines = [
        f"{name}: {len(board)} questions, policy {policy.name}, evaluator {board.judge.name}, "
        f"lower {policy.lower:.3f}, upper {policy.upper:.3f}",
        "",
        f"{'expected':<14}" + "".join(f"{action:>12}" for action in ACTIONS),
    ]
    lines += [
        f"{expected:<14}" + "".join(f"{count:>12}" for count in counts)
        for expected, counts in zip(Expected, table, strict=True)
        if any(counts)
    ]
    lines += ["", *(f"{share.replace('_', ' '):<20}{describe_share(getattr(rates, share))}" for share in SHARES)]
    lines += [f"{'macro-F1':<20}{'–' if rates.macro_f1 is None else f'{rates.macro_f1:.3f}'}"]
    lines += [f"{'tells apart, AUROC':<20}{parting or '–'}", f"{'model calls':<20}{rates.calls:.2f} a question"]
    return "\n".join(lines)


def plain(
    name: str, board: Board, conditions: Conditions, rates: Rates, table: Table, parting: Estimate | None
) -> dict[str, Any]:
    """The same, ready for JSON."""
    policy = board.policy
    return {
        "set": name,
        "questions": len(board),
        "policy": policy.name,
        "lower": policy.lower,
        "upper": policy.upper,
        "conditions": to_plain(conditions),
        "table": {
            expected.value: dict(zip(ACTIONS, counts, strict=True))
            for expected, counts in zip(Expected, table, strict=True)
        },
        "rates": to_plain(rates),
        "auroc": to_plain(parting),
    }


def advice(found: Recommendation) -> str:
    """Thresholds that are recommended, with how far they can be trusted."""
    lines = [f"lower {found.lower:.3f}, upper {found.upper:.3f}", *recommendation_lines(found)]
    if found.guaranteed:
        lines.append(found.guaranteed.reason)
    lines += [
        "",
        f"{f'on {found.judged_on} other questions':<24}{'lower':>7}{'upper':>7}{'cost':>8}  confidently wrong",
    ]
    for one in found.compared:
        saved = f"  {one.saved.value:+.3f} ({one.saved.low:+.3f} to {one.saved.high:+.3f})" if one.saved else ""
        wrong = describe_share(one.rates.confidently_wrong)
        lines.append(f"{one.name:<24}{one.lower:>7.3f}{one.upper:>7.3f}{one.cost:>8.3f}  {wrong}{saved}")
    return "\n".join(lines)


class Progress:
    """One line that grows on a terminal, a line every minute elsewhere."""

    def __init__(self, done: str) -> None:
        """`done` is what was done with a question."""
        self._done = done
        self._lock, self._last, self._pause = threading.Lock(), 0.0, 0.5 if sys.stderr.isatty() else 60.0

    def __call__(self, scoring: SetProgress) -> None:
        is_last = scoring.done + scoring.failed == scoring.total
        with self._lock:
            if not is_last and time.monotonic() - self._last < self._pause:
                return
            self._last = time.monotonic()
        left = "" if scoring.left is None or is_last else f", about {scoring.left:.0f} s left"
        failed = f", {scoring.failed} failed" if scoring.failed else ""
        end = "\n" if is_last or not sys.stderr.isatty() else "\r"
        print(f"{self._done} {scoring.done} of {scoring.total}{failed}{left}   ", end=end, file=sys.stderr, flush=True)


def describe_share(found: Estimate | None) -> str:
    return "–" if found is None else f"{found.value:.1%} ({found.low:.1%}–{found.high:.1%})"

"""Promises a limit on wrong answers for a pair of thresholds, by learn-then-test.

Angelopoulos et al. 2021, "Learn then Test" (arXiv 2110.01052), with the path of Laufer-Goldshtein et al. 2023,
"Efficiently Controlling Multiple Risks with Pareto Testing" (arXiv 2210.07913): one part of the questions orders the
pairs from the safest on, another part, which had no part in that, tests them in this order until the first fails.
A pair passes when the one-sided Clopper-Pearson bound of the rate keeps the limit. All that passed hold together with
the stated confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from crag_core.base.text.display import readable
from crag_core.experiments.statistics.intervals import clopper_pearson_upper
from crag_core.experiments.thresholds.objective import surface, wrong_surface
from crag_core.experiments.thresholds.threshold_board import CORRECT, Array, Board

Pair = tuple[float, float]


@dataclass(frozen=True)
class Guarantee:
    """`passed`: the pairs that keep `limit` with `confidence`, the cheapest last; none where nothing can be promised.

    Of that last pair, `wrong` of `unanswerable` were seen when it was tested on `questions`; `bound` is what the rate
    does not exceed. `needed`: so many more unanswerable questions must be there to test with before any pair could
    pass.
    """

    limit: float
    confidence: float
    unanswerable: int
    questions: int
    passed: tuple[Pair, ...] = ()
    wrong: int = 0
    bound: float = 1.0
    needed: int = 0

    @property
    def pair(self) -> Pair | None:
        return self.passed[-1] if self.passed else None

    def covers(self, lower: float, upper: float) -> bool:
        """Whether the promise was made for these thresholds, but for the rounding of a file."""
        return any(max(abs(lower - one), abs(upper - other)) < 1e-6 for one, other in self.passed)

    def reason(self, names: tuple[str, str] = ("lower", "upper")) -> str:
        """What is promised and what was seen, or why nothing can be; `names` are those of the two thresholds."""
        limits = f"at most {self.limit:.1%} of the unanswerable questions are CORRECT"
        confidence = f"{self.confidence:.0%} confidence"
        if self.pair is None:
            why = f"the safest thresholds did not pass on {self.questions} held-out questions"
            if self.needed:
                few = f"{self.unanswerable} unanswerable held-out questions are too few"
                why = f"{few}, at least {self.needed} more are needed"
            return f"Cannot promise with {confidence} that {limits}: {why}."
        pair = " and ".join(f"{name} {value}" for name, value in zip(names, readable(*self.pair), strict=True))
        return (
            f"With {confidence}, at {pair} {limits}. Seen on held-out questions: "
            f"{self.wrong} of {self.unanswerable}, so at most {self.bound:.1%}."
        )

    @property
    def odds(self) -> str:
        """What the confidence means."""
        return f"1 of {round(1 / (1 - self.confidence))} such promises may be broken."


def guarantee(board: Board, path: tuple[Pair, ...], limit: float, confidence: float) -> Guarantee:
    """The pairs of `path` that pass on `board`; the order must not depend on its questions."""
    asked = ~board.answerable
    count = int(asked.sum())
    needed = max(questions_needed(limit, confidence) - count, 0)
    found = Guarantee(limit, confidence, count, len(board), needed=needed)
    for lower, upper in () if needed else path:
        wrong = int((board.actions(lower, upper)[asked] == CORRECT).sum())
        bound = clopper_pearson_upper(wrong, count, 1.0 - confidence)
        if bound > limit:
            break
        found = replace(found, passed=(*found.passed, (lower, upper)), wrong=wrong, bound=bound)
    return found


def find_path(board: Board, loss: Array, axis: Array, may: Array, limit: float) -> tuple[Pair, ...]:
    """From the pair that is most likely to pass on, each next one cheaper; of the cells of `may` (lowers, uppers)."""
    asked = int((~board.answerable).sum())
    unlikely = _chance(wrong_surface(board, axis, axis), asked, limit)
    costs = surface(board, loss, axis, axis)
    places = np.argwhere(may & np.isfinite(costs))
    path: list[Pair] = []
    least = math.inf
    for i, j in sorted(map(tuple, places.tolist()), key=lambda at: (unlikely[at], costs[at])):
        if costs[i, j] < least - 1e-12:
            least = costs[i, j]
            path.append((float(axis[i]), float(axis[j])))
    return tuple(path)


def questions_needed(limit: float, confidence: float = 0.95) -> int:
    """Unanswerable questions without which not even thresholds that let none through could pass."""
    return math.ceil(math.log(1.0 - confidence) / math.log1p(-limit) - 1e-12)


def _chance(rates: Array, count: int, limit: float) -> Array:
    """The chance of so few hits, or fewer, of `count` where the true rate is the limit."""
    from scipy.special import bdtr  # a third of a second, which the first page of the application need not wait

    return np.asarray(bdtr(np.rint(np.nan_to_num(rates, nan=1.0) * count), count, limit))

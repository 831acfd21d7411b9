"""An upper bound on confident mistakes that stays valid although the threshold was selected.

Fixed-sequence testing (Angelopoulos et al. 2021, Learn then Test, arXiv 2110.01052): the thresholds are tried from the
safest one on, in an order that was fixed before the labels were looked at, each by an exact binomial test of "the rate
of mistakes exceeds the limit", and the first that fails ends it. So all that passed hold together, with the stated
confidence. A test passes exactly when the one-sided Clopper-Pearson bound does not exceed the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crag_core.experiments.statistics.intervals import clopper_pearson_upper
from crag_core.experiments.thresholds.threshold_board import Array, Board


@dataclass(frozen=True)
class Guarantee:
    """`upper` is the lowest one for which the limit holds with `confidence`, None where it does for none.

    `unanswerable` questions were there to test with, `wrong` of them are CORRECT at `upper`; `bound` is what the rate
    does not exceed. `needed`: so many more unanswerable questions there must be before any threshold could pass.
    """

    limit: float
    confidence: float
    lower: float
    upper: float | None
    unanswerable: int
    wrong: int = 0
    bound: float = 1.0
    needed: int = 0

    @property
    def reason(self) -> str:
        limit = (
            f"at most {self.limit:.1%} of the unanswerable questions are CORRECT, with {self.confidence:.0%} confidence"
        )
        if self.needed:
            have = f"{self.unanswerable} unanswerable question{'' if self.unanswerable == 1 else 's'}"
            return f"Cannot promise that {limit}: {have} cannot show it, {self.needed} more are needed at least."
        if self.upper is None:
            return f"Cannot promise that {limit}: even the highest upper threshold lets too many through."
        found = f"{self.wrong} of {self.unanswerable} at upper {self.upper:.3f}"
        return f"From upper {self.upper:.3f} on, {limit} ({found}, so at most {self.bound:.1%})."


def guarantee(board: Board, lower: float, uppers: Array, limit: float, confidence: float = 0.95) -> Guarantee:
    """The lowest of `uppers` that keeps `limit` at this `lower`, of the questions of `board`.

    Where `lower` has a part in what is CORRECT, it must have been chosen with other questions.
    """
    if not 0.0 < limit < 1.0 or not 0.0 < confidence < 1.0:
        raise ValueError(f"expected a limit and a confidence between 0 and 1, found {limit} and {confidence}")
    asked = ~board.answerable
    count, delta = int(asked.sum()), 1.0 - confidence
    needed = max(questions_needed(limit, confidence) - count, 0)
    found = Guarantee(limit, confidence, lower, None, count, needed=needed)
    if needed:
        return found
    tried = np.sort(np.asarray(uppers, dtype=float))[::-1]
    tried = tried[tried >= lower]
    wrong = board.is_correct(lower, tried)[asked].sum(axis=0)
    for upper, hits in zip(tried, wrong, strict=True):
        bound = clopper_pearson_upper(int(hits), count, delta)
        if bound > limit:
            break
        found = Guarantee(limit, confidence, lower, float(upper), count, int(hits), bound)
    return found


def questions_needed(limit: float, confidence: float = 0.95) -> int:
    """Unanswerable questions without which not even a threshold that lets none through could pass."""
    return math.ceil(math.log(1.0 - confidence) / math.log1p(-limit) - 1e-12)

"""Which questions are labelled first: those nearest to a threshold, where a label tells which side is right.

Uncertainty sampling (Lewis and Gale 1994).
"""

from __future__ import annotations

import numpy as np

from crag_core.experiments.thresholds.threshold_board import ComparedScores


def nearest(known: ComparedScores, lower: float, upper: float) -> tuple[int, ...]:
    """All places in `known`, the nearest to a threshold that decides it first, in their order where equally near.

    A question that is CORRECT is not decided by `lower`; one that no threshold decides comes last.
    """
    of_upper, of_lower = np.abs(known.upper - upper), np.abs(known.lower - lower)
    found = np.where(known.upper >= upper, of_upper, np.minimum(of_upper, of_lower))
    return tuple(np.argsort(np.where(known.settled >= 0, np.nan, found), kind="stable").tolist())

"""How often a promised limit on confident mistakes is broken, on questions drawn from a distribution that is known.

Scores of unanswerable questions are drawn evenly from 0..1, so that of all such questions exactly 1 - u reach an upper
threshold u. There are a thousand thresholds: the first one that is too low is so by a thousandth at most.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.measures import SEED, share
from benchmarks.tables import Cell, Table
from benchmarks.tuning_speed import JUDGE
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.decision.policy import Policy
from crag_core.evaluators.policies import find_policy, known_card
from crag_core.experiments.labelled.graded import Case, ScoredQuestion
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.thresholds.guarantee import Limits, guarantee
from crag_core.experiments.thresholds.threshold_board import Array, Board, grid

LIMITS, DELTAS = (0.05, 0.10, 0.20), (0.05, 0.10)
UPPERS = grid(1001)
_EXACT = 1e-9


def measure_bound(sets: int = 1000, questions: int = 200) -> Table:
    """By limit and delta: how often more than the limit reaches the chosen threshold, and how much does in the mean.

    `naive` is `naive_choice`, which knows no delta.
    """
    draw, asked, policy = np.random.default_rng(SEED), unanswerable(questions), find_policy("paper")
    boards = [board_of(asked, draw.random(questions), policy) for _ in range(sets)]
    path = tuple((0.0, float(upper)) for upper in UPPERS[::-1])
    rows: dict[str, dict[str, Cell]] = {}
    for limit in LIMITS:
        naive = np.array([1 - naive_choice(board, limit) for board in boards])
        for delta in DELTAS:
            found = [guarantee(board, path, Limits(limit, None, 1 - delta)).pair for board in boards]
            bound = np.array([0.0 if pair is None else 1 - pair[1] for pair in found])
            rows[f"limit {limit:.0%}, delta {delta:.0%}"] = {
                "bound: broken": _broken(bound, limit),
                "bound: mean true rate": float(bound.mean()),
                "naive: broken": _broken(naive, limit),
                "naive: mean true rate": float(naive.mean()),
            }
    return Table(f"{sets} sets of {questions} unanswerable questions", rows)


def _broken(rates: Array, limit: float) -> Cell:
    """Of true rates; the same as the limit does not break it."""
    return share(int((rates > limit + _EXACT).sum()), len(rates))


def naive_choice(board: Board, limit: float) -> float:
    """The lowest threshold at which the share that was seen keeps the limit."""
    keeps = board.is_correct(0.0, UPPERS).mean(axis=0) <= limit
    return float(UPPERS[keeps][0]) if keeps.any() else 1.0


def unanswerable(count: int) -> Sequence[LabelledQuestion]:
    return [LabelledQuestion(f"Question {n}?", Expected.UNANSWERABLE) for n in range(count)]


def board_of(asked: Sequence[LabelledQuestion], scores: Array, policy: Policy) -> Board:
    passages = (Passage("p", "", "p.md"),)
    cases = [
        Case(one, ScoredQuestion(str(n), "", passages, (Grade("p", float(score)),)))
        for n, (one, score) in enumerate(zip(asked, scores, strict=True))
    ]
    return Board(policy, cases, known_card(JUDGE))

"""How long choosing thresholds takes once a set is graded, on made-up questions, beside `decide` for every cell."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import numpy as np

from benchmarks.measures import SEED
from benchmarks.tables import Cell, Table
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.decision.decide import decide
from crag_core.decision.policy import Policy
from crag_core.decision.signals import NAMES, RERANK
from crag_core.evaluators.policies import known_card, load_policies, suit
from crag_core.experiments.labelled.graded import Case, ScoredQuestion
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.thresholds.objective import Objective, losses, surface
from crag_core.experiments.thresholds.recommend import recommend
from crag_core.experiments.thresholds.threshold_board import ACTIONS, Board, Prices, grid

JUDGE = "cross-encoder"
STEPS, PASSAGES = 21, 6
TARGET = 0.5
"""Seconds for all cells of 500 questions."""
_SAMPLED = 12
"""Cells for which `decide` is called; the time of all is worked out from theirs."""
_KINDS = {Expected.CORRECT: 1.0, Expected.UNANSWERABLE: 0.0, Expected.INCORRECT: -1.0}


def made_up(count: int) -> list[Case]:
    """As many answerable questions as others, with two signals a passage from overlapping bells; the same each time."""
    draw, kinds = np.random.default_rng(SEED), list(_KINDS)
    return [_made_up(f"Question {n}?", kinds[0] if n % 2 else kinds[1 + n // 2 % 2], draw) for n in range(count)]


def _made_up(text: str, expected: Expected, draw: np.random.Generator) -> Case:
    asked = LabelledQuestion(text, expected)
    names = [f"p{place}" for place in range(PASSAGES)]
    cosines = draw.uniform(0.2, 0.9, PASSAGES)
    passages = tuple(
        Passage(name, "", f"{name}.md", found_by=("dense",), scores=(("cosine", float(cosine)),))
        for name, cosine in zip(names, cosines, strict=True)
    )
    parts = 1 / (1 + np.exp(-draw.normal(_KINDS[expected], 1.5, (PASSAGES, 2))))
    grades = tuple(
        Grade(name, float(both.mean()), parts=((ANSWERING, float(both[0])), (TOPICAL, float(both[1]))))
        for name, both in zip(names, parts, strict=True)
    )
    signals = tuple((name, float(draw.uniform())) for name in NAMES if name != RERANK)
    return Case(asked, ScoredQuestion(asked.key, text, passages, grades, signals))


def measure_surfaces(questions: int = 500, times: int = 5) -> Table:
    """All cells of the grid for every policy; RuntimeError where the arrays and `decide` say different things."""
    cases = made_up(questions)
    title = f"{questions} questions, a grid of {STEPS} x {STEPS}"
    return Table(title, {policy.name: _surface(policy, cases, times) for policy in _policies()})


def _surface(policy: Policy, cases: Sequence[Case], times: int) -> dict[str, Cell]:
    card, axis = known_card(JUDGE), grid(STEPS)

    def work() -> None:
        board = Board(policy, cases, card)
        surface(board, losses(board, Objective(), Prices()), axis, axis)

    arrays, one_by_one = _seconds(work, times), _decided(policy, cases)
    return {
        f"Board, s (median of {times})": arrays,
        f"target {TARGET} s": "reached" if arrays <= TARGET else "missed",
        f"decide, s (from {_SAMPLED} cells)": one_by_one,
        "times faster": f"{one_by_one / arrays:.0f}",
    }


def _decided(policy: Policy, cases: Sequence[Case]) -> float:
    """Seconds that `decide` would take for every question at every cell, by those of a few cells."""
    axis, board = grid(STEPS), Board(policy, cases, known_card(JUDGE))
    cells = [(float(lower), float(upper)) for lower in axis for upper in axis if policy.allows(lower, upper)]
    taken, sampled = 0.0, random.Random(SEED).sample(cells, _SAMPLED)
    for lower, upper in sampled:
        started = time.perf_counter()
        at = board.policy.with_thresholds(lower, upper)
        told = [decide(at, one.passages, one.grades, one.signals).action for one in (case.scored for case in cases)]
        taken += time.perf_counter() - started
        if told != [ACTIONS[place] for place in board.actions(lower, upper)]:
            raise RuntimeError(f"policy {policy.name} at {lower} and {upper}: decide says something else than Board")
    return taken / len(sampled) * len(cells)


def measure_recommend(questions: Sequence[int] = (500, 1446), times: int = 5) -> Table:
    """From graded questions to recommended thresholds, the board included."""
    graded = {f"{count} questions, s": made_up(count) for count in questions}
    rows: dict[str, dict[str, Cell]] = {
        policy.name: {name: _seconds(partial(_recommend, policy, some), times) for name, some in graded.items()}
        for policy in _policies()
    }
    return Table(f"recommend, median of {times}", rows)


def _recommend(policy: Policy, cases: Sequence[Case]) -> None:
    recommend(Board(policy, cases, known_card(JUDGE)), Objective())


def _policies() -> list[Policy]:
    return [suit(policy, JUDGE) for policy in load_policies()[0].values()]


def _seconds(work: Callable[[], None], times: int) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return median(taken)

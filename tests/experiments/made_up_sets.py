"""Labelled and graded questions made by hand or drawn at random."""

from __future__ import annotations

import numpy as np

from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage, Scores
from crag_core.decision.policy import Policy
from crag_core.experiments.labelled.graded import Case, ScoredQuestion
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.thresholds.threshold_board import Board
from tests.builders import CARD, policy

BEST = policy("paper")


def passage(name: str, cosine: float = 0.5, found_by: tuple[str, ...] = ("dense",)) -> Passage:
    return Passage(name, "", f"{name}.md", found_by=found_by, scores=(("cosine", cosine),))


def grade(name: str, score: float | None, two: tuple[float, float] | None = None) -> Grade:
    parts = () if two is None else ((ANSWERING, two[0]), (TOPICAL, two[1]))
    return Grade(name, score, parts=parts, cause="" if score is not None else "unreadable")


def case(
    number: int,
    expected: Expected,
    *scores: float | None,
    two: tuple[tuple[float, float], ...] = (),
    signals: Scores = (),
) -> Case:
    """A question with one passage for each of `scores`, or for each pair (answering, topical) of `two`."""
    pairs = two or tuple(None for _ in scores)
    counted = scores or tuple((one + other) / 2 for one, other in two)
    names = [f"p{place}" for place in range(len(counted))]
    grades = tuple(grade(*each) for each in zip(names, counted, pairs, strict=True))
    asked = LabelledQuestion(f"Question {number}?", expected)
    scored = ScoredQuestion(asked.key, f"run-{number}", tuple(map(passage, names)), grades, signals)
    return Case(asked, scored)


def board(*cases: Case, of: Policy = BEST, writer: bool = False) -> Board:
    return Board(of, cases, CARD, writer=writer)


def drawn(count: int, seed: int, apart: float = 1.5, of: Policy = BEST) -> Board:
    """Half answerable, a quarter on topic, a quarter off corpus; best scores from overlapping bells on 0..1."""
    random = np.random.default_rng(seed)
    wanted = [(Expected.CORRECT, Expected.AMBIGUOUS, Expected.CORRECT, Expected.INCORRECT)[n % 4] for n in range(count)]
    middle = {Expected.CORRECT: apart, Expected.AMBIGUOUS: 0.0, Expected.INCORRECT: -apart}
    scores = [float(1 / (1 + np.exp(-random.normal(middle[one])))) for one in wanted]
    return board(*(case(n, one, score) for n, (one, score) in enumerate(zip(wanted, scores, strict=True))), of=of)

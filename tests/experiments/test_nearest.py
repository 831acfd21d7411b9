"""Which questions are asked first for a label."""

from __future__ import annotations

import numpy as np

from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, UnlabelledQuestion
from crag_core.experiments.thresholds.threshold_board import ComparedScores, nearest
from tests.experiments.made_up_sets import board, case

PAIR = (0.3, 0.7)


def scored(*upper: float, lower: tuple[float, ...] = ()) -> ComparedScores:
    values = np.array(upper, dtype=float)
    count = len(values)
    return ComparedScores(
        values, np.array(lower or upper, dtype=float), np.full(count, -1), np.zeros(count, dtype=bool)
    )


def test_the_nearest_to_a_threshold_come_first() -> None:
    assert nearest(scored(0.99, 0.02, 0.71, 0.5, 0.32), *PAIR) == (2, 4, 3, 1, 0)


def test_what_is_correct_is_not_decided_by_lower() -> None:
    """Of two signals: the first has its score for the subject at `lower`, and is CORRECT whatever that is."""
    known = scored(0.99, 0.2, lower=(0.3, 0.35))
    assert nearest(known, *PAIR) == (1, 0)


def test_what_no_threshold_decides_comes_last() -> None:
    known = scored(np.nan, 0.01, 0.69)
    known.settled[0] = 1
    assert nearest(known, *PAIR) == (2, 1, 0) and nearest(scored(), *PAIR) == ()


def test_a_question_keeps_its_grades_when_it_gets_a_label() -> None:
    assert UnlabelledQuestion("Why?").key == LabelledQuestion("Why?", Expected.CORRECT).key


def test_a_set_that_is_graded_can_be_asked_for_its_own() -> None:
    found = board(*(case(n, Expected.CORRECT, n / 10) for n in range(10)))
    assert set(nearest(found.deciding(), *PAIR)[:2]) == {3, 7}

"""Which questions are asked first for a label."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, UnlabelledQuestion
from crag_core.experiments.thresholds.most_telling import most_telling
from crag_core.experiments.thresholds.threshold_board import Deciding
from tests.experiments.made_up_sets import board, case

PAIR = (0.3, 0.7)


def scored(*upper: float, lower: tuple[float, ...] = ()) -> Deciding:
    values = np.array(upper, dtype=float)
    count = len(values)
    return Deciding(values, np.array(lower or upper, dtype=float), np.full(count, -1), np.zeros(count, dtype=bool))


def test_the_nearest_to_a_threshold_come_first() -> None:
    assert most_telling(scored(0.99, 0.02, 0.71, 0.5, 0.31), [PAIR], 2) == (2, 4)


def test_of_many_that_score_alike_others_are_taken_too() -> None:
    alike = scored(*[0.7] * 20, 0.6, 0.4, 0.3)
    assert set(most_telling(alike, [PAIR], 4)) >= {0, 20, 22}


def test_both_pairs_count() -> None:
    known = scored(0.95, 0.7, 0.1)
    assert most_telling(known, [PAIR], 1) == (1,)
    assert most_telling(known, [(0.3, 0.95)], 1) == (0,)
    assert set(most_telling(known, [PAIR, (0.3, 0.95)], 2)) == {0, 1}


def test_what_is_correct_is_not_decided_by_lower() -> None:
    """Of two signals: the first has its score for the subject at `lower`, and is CORRECT whatever that is."""
    known = scored(0.99, 0.2, lower=(0.3, 0.35))
    assert most_telling(known, [PAIR], 1) == (1,)


def test_what_no_threshold_decides_comes_last() -> None:
    known = scored(np.nan, 0.01, 0.69)
    known.settled[0] = 1
    assert most_telling(known, [PAIR], 9) == (2, 1, 0)
    assert most_telling(known, [PAIR], 2) == (2, 1)
    assert most_telling(scored(), [PAIR], 20) == ()


@given(
    st.lists(st.one_of(st.floats(0, 1), st.just(float("nan"))), max_size=40),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=3),
    st.integers(0, 45),
)
def test_each_is_asked_once(scores: list[float], pairs: list[tuple[float, float]], count: int) -> None:
    known = scored(*scores)
    known.settled[np.isnan(known.upper)] = 0
    found = most_telling(known, pairs, count)
    assert len(found) == len(set(found)) == min(count, len(scores)) and found == most_telling(known, pairs, count)


def test_a_question_keeps_its_grades_when_it_gets_a_label() -> None:
    assert UnlabelledQuestion("Why?").key == LabelledQuestion("Why?", Expected.CORRECT).key


def test_a_set_that_is_graded_can_be_asked_for_its_own() -> None:
    found = board(*(case(n, Expected.CORRECT, n / 10) for n in range(10)))
    assert most_telling(found.deciding(), [PAIR], 2) == (3, 7)

"""The figures of the benchmark, against scikit-learn, against brute force, and against repeated samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.measures import Estimate, macro_f1, ratio
from benchmarks.routing import confusion, fit, take
from benchmarks.sets import Question, Task
from benchmarks.strips import find_cutoff, measure_strips
from crag_core.base.types.passages import Passage

# --- shares and macro-F1 --------------------------------------------------------------------------------------------


def known(told: Estimate | None) -> Estimate:
    assert told is not None
    return told


def test_a_ratio_weighs_its_parts_by_their_wholes() -> None:
    told = known(ratio([1, 0, 30], [1, 1, 60]))
    assert told.value == 0.5 and told.low < 0.5 < told.high
    assert ratio([], []) is None and ratio([0], [0]) is None
    rng = np.random.default_rng(0)
    wholes = rng.integers(1, 9, 400)
    spread_out = known(ratio(rng.binomial(wholes, 0.3), wholes))
    assert spread_out.high - spread_out.low == pytest.approx(2 * 1.96 * np.sqrt(0.21 / wholes.sum()), rel=0.25)


@pytest.mark.parametrize("seed", range(5))
def test_macro_f1_is_that_of_scikit_learn(seed: int) -> None:
    from sklearn.metrics import f1_score

    expected, taken = np.random.default_rng(seed).integers(0, 3, (2, 40))
    table = confusion(expected, taken)
    assert macro_f1(table) == pytest.approx(f1_score(expected, taken, average="macro"))
    assert table[0, 1] == sum((expected == 0) & (taken == 1))


# --- thresholds -----------------------------------------------------------------------------------------------------


def test_routes_follow_one_score_or_two() -> None:
    best = np.array([0.9, 0.6, 0.5, 0.2, np.nan])
    assert take((best, best), 0.5, 0.6).tolist() == [0, 0, 1, 2, 1]
    topical = np.array([0.1, 0.1, 0.9, 0.9, 0.1])
    assert take((best, topical), 0.5, 0.6).tolist() == [0, 0, 1, 1, 2]


def test_fitting_puts_lower_above_upper_only_where_they_are_compared_with_two_scores() -> None:
    expected = np.repeat([0, 1, 2], 30)
    answering = np.repeat([0.3, 0.1, 0.1], 30)
    topical = np.repeat([0.9, 0.9, 0.5], 30)  # the best is lower 0.9 and upper 0.3
    lower, upper = fit((answering, topical), expected)
    assert macro_f1(confusion(expected, take((answering, topical), lower, upper))) == 1.0
    for one in (answering, topical):
        lower, upper = fit((one, one), expected)
        assert lower <= upper


# --- strips ---------------------------------------------------------------------------------------------------------


def strips(*texts: list[tuple[float, str]]) -> tuple[list[np.ndarray[Any, Any]], Task]:
    questions = tuple(
        Question("?", tuple(Passage(f"p{n}", "x" * 10, "s") for n in range(len(text))), tuple(kind for _, kind in text))
        for text in texts
    )
    return [np.array([score for score, _ in text]) for text in texts], Task(questions, is_strips=True)


def test_strips_are_measured_over_texts_that_allow_a_fault() -> None:
    first, wrong = [(0.9, "answer"), (0.2, "")], [(0.3, "answer"), (0.4, ""), (0.1, "")]
    row = measure_strips(*strips(first, wrong, [(0.9, "answer")], [(0.9, "")]), 0.25)
    assert row["texts"] == "2" and str(row["answer first"]).startswith("0.500")
    assert str(row["answers kept"]).startswith("1.000")
    assert str(row["text kept"]).startswith("0.600")


def test_an_ungraded_strip_is_struck_out() -> None:
    row = measure_strips(*strips([(float("nan"), "answer"), (0.1, "")]), 0.0)
    assert str(row["answers kept"]).startswith("0.000") and str(row["answer first"]).startswith("0.000")


def test_the_cut_off_keeps_nineteen_of_twenty_and_no_fewer() -> None:
    scores = np.linspace(0.05, 1.0, 20)
    assert find_cutoff(scores) == pytest.approx(0.099)
    assert (scores > find_cutoff(scores)).sum() == 19
    assert find_cutoff(np.array([0.0])) == 0.0

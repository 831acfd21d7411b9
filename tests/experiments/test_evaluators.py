"""A calibration from logits that were made up: its curve, its thresholds, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage
from crag_core.evaluators.policies import find_policy
from crag_core.experiments.evaluators import LOGIT, KeptEvaluator, calibrate
from crag_core.experiments.labelled.graded import Case, ScoredQuestion
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion

CARD = EvaluatorCard("hf:a/b", "b", "logit", 0.3, 0.7, 0.5, calls_model=False, cost="nothing", version="raw")


def case(place: int, expected: Expected, *logits: float | None) -> Case:
    """A question whose chunks have these logits; None: not graded."""
    passages = tuple(Passage(f"p{place}-{n}", "", "a") for n in range(len(logits)))
    grades = tuple(
        Grade(one.id, None, cause="no number") if logit is None
        else Grade(one.id, 0.5 + 0.5 * math.tanh(logit / 2), parts=((LOGIT, logit),), seconds=0.25)
        for one, logit in zip(passages, logits, strict=True)
    )  # fmt: skip
    asked = LabelledQuestion(f"question {place}", expected)
    return Case(asked, ScoredQuestion(asked.key, "run", passages, grades))


def fitted(cases: Sequence[Case]) -> KeptEvaluator:
    policy = find_policy("two-signal")
    return calibrate(cases, policy, CARD, "abc", "mine")


def a_set(answered: float, other: float, count: int = 30) -> list[Case]:
    """Best logits around these; a worse chunk, and one without a grade, in each."""
    return [
        case(place, expected, middle + place % 5, middle - 9.0, None)
        for place, (expected, middle) in enumerate(
            [(Expected.CORRECT, answered)] * count + [(Expected.UNANSWERABLE, other)] * count
        )
    ]


def test_logits_become_chances_and_thresholds_lie_among_them() -> None:
    kept = fitted(a_set(8.0, -8.0))
    assert kept.curve.probability(8.0) > 0.9 > 0.1 > kept.curve.probability(-8.0)
    rising = [kept.curve.probability(logit / 2) for logit in range(-10, 11)]
    assert rising == sorted(set(rising)), "so that no two chunks change places"
    assert kept.curve.probability(-8.0) < kept.lower <= kept.upper < kept.curve.probability(8.0)
    assert (kept.apart.value, kept.seconds, kept.remark) == (1.0, 0.25, "")
    assert kept == fitted(a_set(8.0, -8.0)), "the same set gives the same"


def test_a_large_set_moves_the_thresholds_from_where_costs_break_even() -> None:
    kept = fitted(a_set(8.0, -8.0, count=200))
    assert (kept.lower, kept.upper) != (0.17, 0.8) or "no other pair was better" in kept.reason


def test_who_cannot_tell_answers_from_near_misses_is_told_what_a_lower_threshold_would_do() -> None:
    kept = fitted(a_set(1.0, 0.0))
    assert kept.upper == 0.8 and "where the usual costs break even" in kept.reason
    assert kept.remark.startswith("No question of the set reaches CORRECT: the highest score is 0.")
    assert "of the 30 that the documents answer would, and " in kept.remark


@pytest.mark.parametrize(
    ("cases", "found"),
    [
        (a_set(-8.0, 8.0), "expected higher scores where the documents answer, found AUROC 0.000"),
        (a_set(1.0, 1.0), "found AUROC 0.500"),
        (a_set(8.0, -8.0, count=9), "found 9 and 9"),
        ([case(n, Expected.CORRECT, None) for n in range(60)], "found 0 and 0"),
        ([], "found 0 and 0"),
    ],
    ids=["upside down", "all alike", "few", "nothing graded", "nothing"],
)
def test_what_allows_no_calibration_is_refused(cases: list[Case], found: str) -> None:
    with pytest.raises(BadRecord) as refused:
        fitted(cases)
    assert found in refused.value.message and refused.value.hint

"""What few questions can tell is said in one sentence, and no limit is named that they could not certify."""

from __future__ import annotations

import pytest

from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.statistics.intervals import clopper_pearson_upper, least_certified
from crag_core.experiments.statistics.small_sets import few_tell, held_out
from crag_core.experiments.thresholds.guarantee import questions_needed
from crag_core.experiments.thresholds.objective import Objective
from crag_core.experiments.thresholds.recommend import recommend
from tests.experiments.made_up_sets import board, case


def asked(**counts: int) -> list[LabelledQuestion]:
    return [LabelledQuestion(f"{name} {n}?", Expected[name]) for name, count in counts.items() for n in range(count)]


def test_what_few_questions_can_tell() -> None:
    assert few_tell([]) == "" == few_tell(asked(CORRECT=25, INCORRECT=25))
    assert few_tell(asked(CORRECT=12, INCORRECT=12)) == (
        "24 questions are enough to find thresholds that are far off. One question moves a rate by 8%, and no limit "
        "below 40% can be certified."
    )
    assert few_tell(asked(CORRECT=20, AMBIGUOUS=4)).endswith("by 25%, and no limit can be certified.")


@pytest.mark.parametrize("counts", [{"CORRECT": 10}, {"CORRECT": 9, "INCORRECT": 10}, {"CORRECT": 30, "INCORRECT": 3}])
def test_of_too_few_to_choose_from_nothing_else_is_said(counts: dict[str, int]) -> None:
    told, cases = few_tell(asked(**counts)), [case(n, one.expected, 0.5) for n, one in enumerate(asked(**counts))]
    assert told.startswith(f"{sum(counts.values())} questions: too few to choose thresholds, which takes 20, with 4 ")
    assert "enough" not in told and "are needed" in recommend(board(*cases), Objective()).why_not


def test_the_half_that_judges_holds_one_half_of_every_label() -> None:
    assert held_out(asked(CORRECT=9, AMBIGUOUS=5, INCORRECT=3, UNANSWERABLE=1)) == 3


@pytest.mark.parametrize("count", [1, 3, 7, 59, 400])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_the_smallest_limit_is_the_exact_bound_without_a_hit(count: int, confidence: float) -> None:
    least = least_certified(count, confidence)
    assert least == pytest.approx(clopper_pearson_upper(0, count, 1 - confidence))
    assert questions_needed(least + 1e-9, confidence) <= count < questions_needed(least - 1e-6, confidence)

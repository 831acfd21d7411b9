"""The benchmark of P(yes): which chunks it takes, and what its figures are of."""

from __future__ import annotations

import pytest

from benchmarks.judges import ANSWERS, ELSEWHERE, ON_TOPIC, Pair, grade, measure
from benchmarks.measures import Estimate
from crag_core.base.types.grades import Grade
from crag_core.base.types.steps import Usage
from tests.fakes import FakeEvaluator, card, passage


def graded(*scores: float | None, tokens: int = 1) -> list[Grade]:
    return [Grade("p1", score, usage=Usage(1, 300, tokens), seconds=2.0) for score in scores]


PAIRS = [Pair("?", passage(n), kind) for n, kind in enumerate((ANSWERS, ANSWERS, ON_TOPIC, ON_TOPIC, ELSEWHERE))]


def test_each_kind_is_told_from_what_answers_and_costs_are_means() -> None:
    rows = measure(PAIRS, {"llm": graded(0.9, 0.7, 0.7, 0.2, 0.1, tokens=30), "one": graded(0.8, 0.6, 0.7, None, 0.3)})
    told = rows["llm"][f"{ANSWERS} / {ON_TOPIC}"]
    assert isinstance(told, Estimate) and told.value == pytest.approx(3.5 / 4), "a tie counts half"
    assert (rows["llm"]["different scores"], rows["one"]["not graded"]) == ("4", "1")
    assert (rows["llm"]["tokens written"], rows["one"]["tokens written"]) == ("30.0", "1.0")
    assert rows["both"]["rank correlation"] == pytest.approx(5 / 30**0.5), "of the four that both have graded"


def test_every_pair_is_graded_by_itself() -> None:
    judge = FakeEvaluator(lambda one: 0.5, card("judge"))
    assert [one.score for one in grade(judge, PAIRS)] == [0.5] * 5

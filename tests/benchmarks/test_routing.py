"""Routing by shipped policies and by fitted thresholds, and the comparisons of labelled groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.contenders import Graded
from benchmarks.findings import measure_task
from benchmarks.routing import ROUTES, Routed, route_all
from benchmarks.sets import Comparison, Question, Task
from crag_core.base.protocols import Cancel
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage

Said = tuple[float, ...]
"""A score; or answering and topical."""


class Silent:
    """An evaluator whose grades are given beside it."""

    card = EvaluatorCard("judge", "Judge", "0 to 1", 0.3, 0.6, 0.3, False, "nothing")

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        raise NotImplementedError


def graded(*questions: Sequence[Said | None]) -> Graded:
    return Graded(Silent(), tuple(tuple(_grade(n, one) for n, one in enumerate(passages)) for passages in questions))


def _grade(place: int, said: Said | None) -> Grade:
    if said is None:
        return Grade(f"p{place}", None, cause="another script")
    parts = (("answering", said[0]), ("topical", said[1])) if len(said) == 2 else ()
    return Grade(f"p{place}", sum(said) / len(said), parts=parts)


def task(given: Graded, labels: Sequence[str], *comparisons: Comparison, of_passages: bool = False) -> Task:
    questions = []
    for grades, label in zip(given.grades, labels, strict=True):
        passages = tuple(Passage(grade.passage_id, "text", "s") for grade in grades)
        kinds = tuple(label.split()) if of_passages else ("",) * len(passages)
        questions.append(Question("?", passages, kinds, label))
    return Task(tuple(questions), comparisons)


def routes(given: Graded, labels: Sequence[str]) -> dict[str, Routed]:
    return {routed.title: routed for routed in route_all(given, task(given, labels))}


# --- routing --------------------------------------------------------------------------------------------------------

LABELS = tuple(ROUTES) * 20


def test_shipped_thresholds_are_those_of_the_evaluator_and_route_as_decided() -> None:
    routed = routes(graded([(0.6,)], [(0.1,), (0.59,)], [(0.29,)]), tuple(ROUTES))["judge, policy paper as shipped"]
    assert routed.table.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert (routed.lower, routed.upper) == ((0.3,), (0.6,))


def test_two_signals_route_by_answering_above_and_topical_below() -> None:
    given = graded([(0.7, 0.1)], [(0.1, 0.1), (0.2, 0.9)], [(0.2, 0.2)])
    found = routes(given, tuple(ROUTES))
    for title in ("judge, policy two-signal as shipped", "judge, two signals, fitted on all (flatters)"):
        assert found[title].table.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]], title
    assert found["judge, policy paper as shipped"].table.tolist() != [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_cross_fitting_does_not_flatter_scores_that_know_nothing() -> None:
    rng = np.random.default_rng(0)
    noise = graded(*([(float(score),)] for score in rng.random(60)))
    found = routes(noise, LABELS)
    crossed, fitted = (found[f"judge, {name}"].row() for name in ("cross-fitted", "fitted on all (flatters)"))
    assert float(str(crossed["macro-F1"])[:5]) < 0.4 < float(str(fitted["macro-F1"])[:5])


# --- telling apart --------------------------------------------------------------------------------------------------

TOLD = Comparison("good from bad", ("good",), ("bad",))


def cells(given: Graded, labels: Sequence[str], told: Comparison = TOLD, of_passages: bool = True) -> dict[str, str]:
    rows = measure_task(task(given, labels, told, of_passages=of_passages), {"judge": given})["apart"].rows
    return {name: str(cell) for name, cell in rows[told.title].items()}


def test_passages_are_told_apart_by_their_labels_and_others_do_not_count() -> None:
    given = graded([(0.9,), (0.1,), (1.0,)], [(0.8,), (0.2,)], [(0.0,)])
    found = cells(given, ("good bad other", "good bad", "other"))
    assert found["of"] == "2 / 2" and found["judge"].startswith("1.000 (")


def test_passages_of_one_question_are_no_independent_evidence() -> None:
    rng = np.random.default_rng(2)
    pairs = [(float(high), float(low)) for high, low in rng.random((12, 2)) * 0.6 + [0.4, 0.0]]
    once = cells(graded(*([(high,), (low,)] for high, low in pairs)), ["good bad"] * 12)
    often = cells(graded(*([(high,), (low,)] * 9 for high, low in pairs)), [" ".join(["good bad"] * 9)] * 12)
    assert once["judge"] == often["judge"] and often["of"] == "108 / 108"

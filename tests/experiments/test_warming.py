"""Models load before anything is measured: once, without a model call, and a fault is left to the run to tell."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from crag_core.base.errors import CragError, EmbeddingUnavailable, EvaluatorUnavailable
from crag_core.base.protocols import Cancel
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage
from crag_core.evaluators.policies import plain_rag
from crag_core.experiments.batch import SetProgress
from crag_core.experiments.comparison.run_configurations import QUESTION, Contender, run_set, warm_up
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from tests.experiments.test_comparing import Book
from tests.fakes import Bench, FakeEvaluator, card

ASKED = tuple(LabelledQuestion(f"Question {number}?", Expected.CORRECT) for number in range(3))
NEVER = threading.Event()


def measured(bench: Bench, is_warm: bool) -> tuple[list[float], list[SetProgress]]:
    """The seconds of each question under one configuration, and what was told of the progress."""
    book, told = Book(), list[SetProgress]()
    prepare = (lambda: warm_up([bench.pipeline], NEVER)) if is_warm else None
    run_set(ASKED, [Contender(bench.pipeline, book)], bench.clock, on_progress=told.append, prepare=prepare)
    return [book.load()[asked.key].seconds for asked in ASKED], told


class Loading(FakeEvaluator):
    """Takes a hundred seconds for its first grade, as one that has to load its model."""

    def __init__(self, bench: Bench, card: EvaluatorCard) -> None:
        super().__init__(lambda _: 0.9, card)
        self._bench = bench

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        if not self.asked:
            for _ in range(100):
                self._bench.clock()
        return super().grade(question, passages, cancel)


def slow_to_load() -> Bench:
    bench = Bench()
    bench.pipeline = bench.under(parts={"evaluator": Loading(bench, bench.judge)})
    return bench


def test_the_first_question_does_not_pay_for_what_is_loaded_once() -> None:
    cold, _ = measured(slow_to_load(), False)
    assert cold[0] > 100 > max(cold[1:])
    warm, told = measured(slow_to_load(), True)
    assert max(warm) < 10, "a few looks at the clock, more or fewer as the two lanes of a run meet"
    assert [scoring.done for scoring in told] == [0, 0, 1, 2, 3], "it is seen that it has begun"


def test_one_retrieval_and_one_grade_of_each_evaluator_are_enough() -> None:
    bench, other = Bench(), card("other")
    pipelines = [bench.pipeline, bench.under(policy=plain_rag()), bench.under(top_k=2)]
    warm_up(pipelines, NEVER)
    assert bench.counts == {"retrieve": 1, "grade": 1, "strips": 1} and bench.retriever.asked == [(QUESTION, 1)]
    another = bench.under(evaluator=other, parts={"evaluator": FakeEvaluator(lambda _: 0.5, other)})
    warm_up([*pipelines, another], NEVER)
    assert bench.counts["retrieve"] == 3, "another evaluator may have a model of its own"


def test_where_nothing_is_missing_nothing_is_warmed_up() -> None:
    bench, book, calls = Bench(), Book(), list[str]()
    for _ in range(2):
        contenders = [Contender(bench.pipeline, book)]
        run_set(ASKED, contenders, bench.clock, prepare=lambda: calls.append("warm up"))
    assert calls == ["warm up"]


@pytest.mark.parametrize("error", [EvaluatorUnavailable("It is away."), EmbeddingUnavailable("It is away.")])
def test_a_fault_is_left_to_the_run(error: CragError) -> None:
    bench = Bench()

    def fail() -> None:
        raise error

    bench.evaluator.before = fail
    warm_up([bench.pipeline], NEVER)
    assert bench.counts["retrieve"] == 1


def test_of_an_empty_index_nothing_is_graded() -> None:
    bench = Bench(found=())
    warm_up([bench.pipeline], NEVER)
    assert bench.counts == {"retrieve": 1}

"""Whoever listens hears of the beginning and of the end of every go at a run, once, whatever becomes of it."""

from collections.abc import Callable

import pytest

from crag_core.base.types.steps import Step
from crag_core.pipeline.pipeline import Pipeline
from crag_core.pipeline.run import RUN_ID, Attempt, Listener, WebMode
from crag_core.pipeline.web_stages import approve
from crag_core.trace.summary import Ending
from crag_core.trace.trace import Trace
from tests.fakes import QUESTION, WEB_QUERY, Bench, FakeModel, passages


class Ends(Listener):
    """What was told of goes, and in which run it was heard."""

    def __init__(self) -> None:
        self.opened_with: list[Trace] = []
        self.goes: list[Attempt] = []
        self.heard_in: list[str] = []

    def opened(self, trace: Trace) -> None:
        self.opened_with.append(trace)

    def finished(self, step: Step, trace: Trace) -> None:
        self.heard_in.append(RUN_ID.get())

    def ended(self, go: Attempt) -> None:
        self.goes.append(go)
        self.heard_in.append(RUN_ID.get())


def bench_with(ends: Ends, **fields: object) -> Bench:
    return Bench(observers=(ends,), **{"model": FakeModel()} | fields)  # type: ignore[arg-type]


WAYS: dict[str, Callable[[Pipeline], Trace]] = {
    "run": lambda pipeline: pipeline.run(QUESTION),
    "resume": lambda pipeline: pipeline.resume(pipeline.begin(QUESTION)),
    "correct": lambda pipeline: pipeline.correct(pipeline.begin(QUESTION)),
    "grade": lambda pipeline: pipeline.grade(QUESTION),
    "score strips": lambda pipeline: pipeline.score_strips(pipeline.begin(QUESTION, passages()), passages(1)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_every_way_to_go_is_told_at_its_beginning_and_once_at_its_end(way: Callable[[Pipeline], Trace]) -> None:
    bench = bench_with(ends := Ends())
    done = way(bench.pipeline)
    (go,) = ends.goes
    assert ends.opened_with == [go.since]
    assert (go.trace, go.ending, go.bug, go.is_first) == (done, Ending.DONE, "", True)
    assert set(ends.heard_in) == {done.id}
    assert RUN_ID.get() == "", "it is over"


def test_an_answer_that_nobody_takes_to_its_end_was_stopped() -> None:
    bench = bench_with(ends := Ends())
    pieces = bench.pipeline._pipeline.stream_answer(bench.pipeline.correct(bench.pipeline.begin(QUESTION)))
    assert isinstance(next(pieces), str)
    assert RUN_ID.get() == "", "who takes the pieces is not in the run"
    pieces.close()  # type: ignore[attr-defined]
    assert [go.ending for go in ends.goes] == [Ending.DONE, Ending.STOPPED]


def test_a_waiting_run_and_the_go_after_the_users_word() -> None:
    bench = bench_with(ends := Ends(), best=0.1, web=WebMode.ASK)
    bench.pipeline.resume(approve(bench.pipeline.run(QUESTION), WEB_QUERY))
    assert [(go.ending, go.is_first) for go in ends.goes] == [(Ending.WAITING, True), (Ending.DONE, False)]


def test_a_bug_is_told_with_what_was_recorded_before_it_and_goes_on_its_way() -> None:
    def break_down() -> None:
        raise ZeroDivisionError("a bug of ours")

    bench = bench_with(ends := Ends())
    bench.evaluator.before = break_down
    with pytest.raises(ZeroDivisionError):
        bench.pipeline.run(QUESTION)
    (go,) = ends.goes
    assert (go.ending, go.bug) == (Ending.FAILED, "ZeroDivisionError")
    assert [step.name for step in go.trace.steps] == ["retrieve"]
    assert RUN_ID.get() == ""

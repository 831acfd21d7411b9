"""What a run records: its cost, its seconds, its JSON; and that bugs show and runs do not mix."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from crag_core.base.protocols import Cancel, RetrievalResult
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Engine, Passage
from crag_core.base.types.steps import StepState, Usage
from crag_core.pipeline.run import Run
from tests.fakes import QUESTION, Bench, Diary, FakeModel, card, passages


def test_usage_of_every_step_is_recorded_and_summed() -> None:
    bench = Bench(best=0.5, model=FakeModel(), judge=card(calls_model=True))
    trace = bench.pipeline.run(QUESTION)
    usage = {step.name: step.usage for step in trace.steps}
    assert usage["grade"] == Usage(3, 30, 6)
    assert usage["rewrite"] == Usage(1, 20, 5)
    assert usage["grade web"] == Usage(2, 20, 4)
    assert usage["answer"] == Usage(1, 30, 7)
    assert usage["retrieve"] == usage["route"] == usage["assemble"] == Usage()
    assert trace.usage == Usage(7, 100, 22)
    assert trace.answer is not None and trace.answer.usage == usage["answer"]


def test_seconds_of_every_step_are_recorded_and_those_of_the_longer_lane_count() -> None:
    trace = Bench(best=0.5).pipeline.run(QUESTION)
    # The clock of the bench gives one second more at each look, and a step looks at its start and at its end;
    # the other lane may look in between.
    beside = {"score strips", "rewrite", "search"}
    seconds = {step.name: step.seconds for step in trace.steps}
    assert len(seconds) == 9 and all(seconds[name] >= 1.0 for name in beside)
    assert {seconds[name] for name in seconds.keys() - beside} == {1.0}
    shorter = min(seconds["score strips"], seconds["rewrite"] + seconds["search"])
    assert trace.seconds == sum(seconds.values()) - shorter, "two lanes at once take as long as the longer one"


def test_resumed_step_adds_its_seconds_to_those_of_the_broken_attempt() -> None:
    bench, run = Bench(), Run()
    run.cancel.set()
    done = bench.pipeline.resume(bench.pipeline.run(QUESTION, run))
    assert done.steps[0].seconds == 2.0


# --- observers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("best", [0.9, 0.5])
def test_observers_of_the_pipeline_hear_the_steps_of_every_run(best: float) -> None:
    observers = Diary(), Diary()
    bench = Bench(best=best, model=FakeModel(), observers=observers)
    traces = [bench.pipeline.run(QUESTION), bench.pipeline.run(QUESTION, Run(listener := Diary()))]
    for observer in observers:
        assert tuple(observer.done) == traces[0].steps + traces[1].steps
        assert observer.traces[-1] == traces[1]
        assert {step.name for step in observer.done} <= set(observer.begun)
        assert observer.progress == observer.pieces == [], "these are for whoever draws the run"
    assert tuple(listener.done) == traces[1].steps


# --- bugs -----------------------------------------------------------------------------------------------------------


def break_evaluator(bench: Bench) -> None:
    bench.evaluator.before = lambda: {}["a bug"]  # type: ignore[index]


def break_strips(bench: Bench) -> None:
    bench.strip_evaluator.before = lambda: {}["a bug"]  # type: ignore[index]


def break_retriever(bench: Bench) -> None:
    bench.retriever.finding = lambda query, engine: {}["a bug"]  # type: ignore[index]


def break_searcher(bench: Bench) -> None:
    bench.searcher.before = lambda cancel: {}["a bug"]  # type: ignore[index]


def break_rewrite(bench: Bench) -> None:
    assert isinstance(bench.model, FakeModel)
    bench.model.replies["phrases"] = KeyError("a bug")


def break_answer(bench: Bench) -> None:
    assert isinstance(bench.model, FakeModel)
    bench.model.replies["answer"] = KeyError("a bug")


@pytest.mark.parametrize(
    "break_it", [break_evaluator, break_strips, break_retriever, break_searcher, break_rewrite, break_answer]
)
def test_bug_in_a_part_is_not_swallowed(break_it: object) -> None:
    bench = Bench(best=0.5, model=FakeModel())
    break_it(bench)  # type: ignore[operator]
    with pytest.raises(KeyError, match="a bug"):
        bench.pipeline.run(QUESTION)


# --- several at once ------------------------------------------------------------------------------------------------


class Meeting:
    """Retrieves for each question its own passages, and lets no run go on before the other has come as far."""

    def __init__(self, runs: int) -> None:
        self.barrier = threading.Barrier(runs, timeout=5.0)
        self.card = card(calls_model=True)

    def retrieve(self, question: str, limit: int, engine: Engine = Engine.HYBRID) -> RetrievalResult:
        self.barrier.wait()
        return RetrievalResult(
            tuple(replace(p, id=f"{question}-{p.id}", text=f"{question} is here. {p.text}") for p in passages(6))
        )

    def hiding(self, text: str) -> Meeting:
        raise AssertionError("nothing is hidden here")

    def read_files(self, document_ids: Sequence[str]) -> tuple[Passage, ...]:
        raise AssertionError("no file is pinned here")

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        self.barrier.wait()
        assert all(passage.id.startswith(question) for passage in passages)
        return tuple(Grade(passage.id, 0.9, question, usage=Usage(1, 1, 1)) for passage in passages)


def test_two_runs_through_one_pipeline_do_not_mix() -> None:
    bench, meeting = Bench(model=FakeModel()), Meeting(2)
    pipeline = bench.under(parts={"evaluator": meeting, "retriever": meeting})
    questions = ["alpha", "omega"]
    diaries = {question: Diary() for question in questions}
    with ThreadPoolExecutor(2) as threads:
        traces = list(threads.map(lambda question: pipeline.run(question, Run(diaries[question])), questions))
    for question, trace in zip(questions, traces, strict=True):
        assert trace.question == question and trace.passages and trace.grades and trace.strips
        recorded = [p.id for p in trace.passages] + [g.passage_id for g in trace.grades] + list(trace.context or ())
        assert len(recorded) > 12 and all(name.startswith(question) for name in recorded)
        assert trace.usage.calls == 6 + 1
        assert tuple(diaries[question].done) == trace.steps
        assert {step.state for step in trace.steps} == {StepState.DONE}
    assert isinstance(bench.model, FakeModel)
    prompts = [messages[1][1] for _, messages in bench.model.asked]
    assert len(prompts) == 2 and all(("alpha" in prompt) != ("omega" in prompt) for prompt in prompts)

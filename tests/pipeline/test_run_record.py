"""What a run records: its cost, its seconds, its JSON; and that bugs show and runs do not mix."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from crag_core.base.errors import ModelUnavailable
from crag_core.base.protocols import Cancel, RetrievalResult
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Engine, Passage
from crag_core.base.types.steps import StepState, Usage
from crag_core.pipeline.run import Run
from crag_core.trace.trace import Trace
from tests.fakes import QUESTION, Bench, Diary, FakeModel, card, passage, passages


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


def test_run_carries_its_settings_id_and_date() -> None:
    bench = Bench(model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    assert (trace.id, trace.created, trace.question, trace.settings) == (
        "run-1",
        "now",
        QUESTION,
        bench.pipeline.settings,
    )
    assert trace.fingerprint == bench.pipeline.run(QUESTION).fingerprint
    assert trace.fingerprint != Bench(best=0.9).pipeline.run(QUESTION).fingerprint, "another writer"


@pytest.mark.parametrize("policy", ["paper", "worst-chunk", "rank-weighted", "heuristic", "signals", "agentic"])
@pytest.mark.parametrize("best", [0.9, 0.5, 0.1, None])
def test_record_of_a_real_run_survives_json(policy: str, best: float | None) -> None:
    trace = Bench(policy, best=best, model=FakeModel()).pipeline.run(QUESTION)
    assert trace.failure is None and trace.answer is not None
    assert Trace.from_json(trace.to_json()) == trace
    assert Trace.from_dict(trace.to_dict()) == trace


def test_record_of_a_broken_run_survives_json_and_can_be_resumed() -> None:
    bench, run = Bench(judge=card(calls_model=True), found=passages(6)), Run()
    bench.evaluator.before = lambda: run.cancel.set() if len(bench.evaluator.asked) == 2 else None
    stopped = bench.pipeline.run(QUESTION, run)
    restored = Trace.from_json(stopped.to_json())
    assert restored == stopped
    assert bench.pipeline.resume(restored).answer is not None


def test_hostile_text_survives_the_record_unchanged() -> None:
    hostile = '<script>alert("x")</script> \x00 \ufffd “${{"a": 1}}” \u202e'
    trace = Bench(found=(passage(1, hostile),)).pipeline.run(hostile)
    assert trace.passages is not None and trace.passages[0].text == hostile
    assert Trace.from_json(trace.to_json()) == trace


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


def test_observers_hear_of_a_streamed_answer_too() -> None:
    bench = Bench(model=FakeModel(), observers=(observer := Diary(),))
    *_, trace = bench.pipeline.stream_answer(bench.pipeline.correct(bench.pipeline.begin(QUESTION)))
    assert isinstance(trace, Trace)
    assert tuple(observer.done) == trace.steps and trace.steps[-1].name == "answer"
    assert observer.traces[-1] == trace


def test_observers_hear_of_a_step_that_failed() -> None:
    away = ModelUnavailable("Ollama went away.", hint="Start it.")
    bench = Bench(model=FakeModel(answer=away), observers=(observer := Diary(),))
    *_, trace = bench.pipeline.stream_answer(bench.pipeline.correct(bench.pipeline.begin(QUESTION)))
    assert isinstance(trace, Trace) and trace.failure is not None
    assert (observer.done[-1].state, observer.done[-1].error) == (StepState.FAILED, "ModelUnavailable")


def test_resuming_a_finished_run_tells_observers_nothing() -> None:
    bench = Bench(best=0.5, model=FakeModel(), observers=(observer := Diary(),))
    done = bench.pipeline.run(QUESTION)
    observer.done.clear()
    bench.pipeline.resume(done)
    assert observer.done == []


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


def test_stopping_one_run_leaves_the_other_alone() -> None:
    bench, stopped = Bench(), Run()
    stopped.cancel.set()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(bench.pipeline.run, QUESTION, stopped)
        second = threads.submit(bench.pipeline.run, QUESTION, Run())
    assert first.result().failure is not None
    assert second.result().failure is None and second.result().answer is not None

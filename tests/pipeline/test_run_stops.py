"""Stopped, broken off, resumed: what was recorded stays, and nothing is asked twice."""

from collections.abc import Callable, Iterator

import pytest

from crag_core.base.errors import (
    CragError,
    DocumentMissing,
    EmbeddingUnavailable,
    ModelMissing,
    ModelUnavailable,
    StoreUnavailable,
)
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.grades import Grade
from crag_core.base.types.steps import StepState, Usage
from crag_core.llms import ollama
from crag_core.llms.model import CallLimit, ServerModel
from crag_core.pipeline.model_calls import NotedModel
from crag_core.pipeline.pipeline import raise_failure
from crag_core.pipeline.run import Listener, Run
from crag_core.trace.trace import Trace
from tests.fakes import QUESTION, Bench, FakeModel, card, passages, step_names
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import wait_until
from tests.stand_ins.ollama_server import MODEL, OllamaServer

SLOW_ANSWER = "It leaves at nine [1]. " * 40


# --- stops ----------------------------------------------------------------------------------------------------------


def test_stop_in_the_middle_of_grading_keeps_what_was_graded() -> None:
    bench, run = Bench(judge=card(calls_model=True), found=passages(10), model=FakeModel()), Run()
    bench.evaluator.before = lambda: run.cancel.set() if len(bench.evaluator.asked) == 2 else None
    stopped = bench.pipeline.run(QUESTION, run)
    assert stopped.grades is not None and stopped.failure is not None
    assert [grade.passage_id for grade in stopped.grades] == ["p1", "p2", "p3", "p4"]
    assert (stopped.failure.name, stopped.failure.state) == ("grade", StepState.STOPPED)
    assert stopped.failure.summary == "stopped by you after 4 of 10 chunks"
    assert (stopped.decision, stopped.answer) == (None, None)
    bench.forget_counts()
    done = bench.pipeline.resume(stopped)
    assert bench.evaluator.asked == [("p5", "p6", "p7", "p8"), ("p9", "p10")]
    assert done.grades is not None and len(done.grades) == 10
    assert bench.retriever.asked == []
    grading = [step for step in done.steps if step.name == "grade"]
    assert len(grading) == 1 and grading[0].usage == Usage(10, 100, 20), (
        "the cost of the broken attempt is carried over"
    )


# --- outages --------------------------------------------------------------------------------------------------------


def outage(*ids: str) -> dict[str, Grade]:
    return {id: Grade(id, None, cause="Ollama went away. Start it.", retryable=True, usage=Usage(1)) for id in ids}


def test_outage_of_the_judge_fails_the_run_at_grade_and_resume_grades_the_rest() -> None:
    away = outage("p5", "p6", "p7", "p8")
    bench = Bench(judge=card(calls_model=True), found=passages(10), scoring=lambda p: away.get(p.id, 0.9))
    broken = bench.pipeline.run(QUESTION)
    assert broken.failure is not None and broken.grades is not None
    assert (broken.failure.name, broken.failure.state) == ("grade", StepState.FAILED)
    assert broken.failure.summary == "Ollama went away. Start it."
    assert [grade.score for grade in broken.grades] == [0.9] * 4 + [None] * 4
    assert bench.evaluator.graded == [f"p{n}" for n in range(1, 9)], "asking on would only wait"
    assert (broken.strips, broken.decision, broken.answer) == (None, None, None)
    away.clear()
    bench.forget_counts()
    done = bench.pipeline.resume(broken)
    assert bench.evaluator.graded == ["p5", "p6", "p7", "p8", "p9", "p10"]
    assert done.grades is not None and [grade.score for grade in done.grades] == [0.9] * 10
    assert [grade.passage_id for grade in done.grades] == [f"p{n}" for n in range(1, 11)]
    assert done.failure is None and done.answer is not None
    assert [step.name for step in done.steps].count("grade") == 1


@pytest.mark.parametrize(
    "kind", [ModelUnavailable, ModelMissing, StoreUnavailable, EmbeddingUnavailable, DocumentMissing]
)
def test_a_failed_step_is_raised_with_the_type_of_what_failed_even_after_json(kind: type[CragError]) -> None:
    def fail() -> None:
        raise kind("Away.", hint="Start it.")

    bench = Bench()
    bench.evaluator.before = fail
    trace = Trace.from_json(bench.pipeline.run(QUESTION).to_json())
    assert trace.failure is not None and trace.failure.error == kind.__name__
    with pytest.raises(kind, match=r"'grade' failed: Away\. Start it\."):
        raise_failure(trace)


# --- the answer, over a real connection -----------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer(ScriptedModel(lambda messages: SLOW_ANSWER, piece_chars=6, delay_s=0.01)) as server:
        yield server


def model_of(server: OllamaServer) -> ServerModel:
    return ollama.model(server.url, MODEL, 10.0, CallLimit(2))


class AtPiece(Listener):
    """Does something when the n-th piece of the answer has come."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pieces: list[str] = []
        self.what: Callable[[], object] = lambda: None

    def wrote(self, piece: str) -> None:
        self.pieces.append(piece)
        if len(self.pieces) == self.number:
            self.what()


def test_stop_in_the_middle_of_the_answer_closes_the_connection(server: OllamaServer) -> None:
    bench = Bench(model=model_of(server))
    run = Run(listener := AtPiece(10))
    listener.what = run.cancel.set
    stopped = bench.pipeline.run(QUESTION, run)
    assert server.wait_for_disconnects()
    written = server.engine.pieces_written
    assert not wait_until(lambda: server.engine.pieces_written > written, 0.1), "the model goes on for nobody"
    assert stopped.answer is not None and stopped.failure is not None
    assert stopped.answer.state is AnswerState.STOPPED
    assert stopped.answer.text == "".join(listener.pieces).strip()
    assert SLOW_ANSWER.startswith(stopped.answer.text) and len(stopped.answer.text) < len(SLOW_ANSWER) / 2
    assert (stopped.failure.name, stopped.failure.state) == ("answer", StepState.STOPPED)
    assert stopped.failure.usage.calls == 1

    server.engine = ScriptedModel([" by nine."])
    bench.forget_counts()
    adopted = bench.pipeline.adopt(stopped)
    assert (adopted.id, adopted.answer) == (stopped.id, stopped.answer)
    done = bench.pipeline.resume(adopted)
    assert done.answer is not None
    assert (done.answer.text, done.answer.state) == (f"{stopped.answer.text} by nine.", AnswerState.COMPLETE)
    assert server.engine.asks[0].messages[-1] == {"role": "assistant", "content": stopped.answer.text}
    assert bench.counts["grade"] == bench.counts["retrieve"] == 0
    assert (server.chat_calls, server.disconnects) == (2, 1)
    assert step_names(done).count("answer") == 1
    assert done.steps[-1].usage.calls == 2


def test_an_answer_that_the_server_cut_is_no_whole_one_and_goes_on_from_its_words(server: OllamaServer) -> None:
    text = "It leaves at nine [1], " * 200
    server.engine = ScriptedModel([text], piece_chars=1)
    bench = Bench(model=NotedModel(model_of(server)))
    cut = bench.pipeline.run(QUESTION)
    assert cut.answer is not None and cut.failure is None and cut.support is None
    assert (cut.answer.state, cut.answer.message) == (AnswerState.CUT, "Cut after 768 tokens.")
    assert cut.answer.text == text[:768] and cut.calls[-1].error == "Cut after 768 tokens."
    assert Trace.from_json(cut.to_json()) == cut and cut.is_unfinished
    server.engine = ScriptedModel([text[768:1000]], piece_chars=1)
    done = bench.pipeline.resume(bench.pipeline.adopt(cut))
    assert done.answer is not None and done.id == cut.id
    assert (done.answer.text, done.answer.state) == (text[:1000].strip(), AnswerState.COMPLETE)
    assert (done.usage.calls, step_names(done).count("answer")) == (2, 1)
    server.engine = ScriptedModel([""])
    same = bench.pipeline.resume(bench.pipeline.adopt(cut))
    assert same.answer is not None and (same.answer.text, same.answer.state) == (cut.answer.text, AnswerState.CUT)

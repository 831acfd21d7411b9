"""The whole pipeline with a real language model behind the real Ollama client, once.

The model is fluent and without judgement, so only what holds for every reply is asserted.
"""

from __future__ import annotations

import pytest

from crag_core.base.prompts import replies
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.steps import StepName, StepState
from crag_core.evaluators.judges.llm import LLMEvaluator
from crag_core.evaluators.support.by_model import SCORES, ModelSupport
from crag_core.llms import ollama
from crag_core.llms.model import CallLimit
from crag_core.pipeline.run import Run, WebMode
from crag_core.trace.trace import Trace
from tests.builders import policy_file
from tests.fakes import Bench, Diary, FakeModel, changed, passage, step_names
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.stand_ins.real_model import RealModel

FOUND = (passage(1, "The ferry leaves at nine."), passage(2, "Knead the dough for ten minutes."))


@pytest.mark.model
def test_whole_run_with_a_real_model() -> None:
    with OllamaServer(RealModel(max_tokens=120)) as server:
        model = ollama.model(server.url, MODEL, 60.0, CallLimit(1))
        # Whatever the judge says, the passages stay, so that there is something to write an answer from.
        policy = changed("paper").with_thresholds(0.0, 0.0)
        bench = Bench(policy, model=model, found=FOUND, web=WebMode.OFF)
        judge = LLMEvaluator(model)
        trace = bench.under(parts={"evaluator": judge}, evaluator=judge.card).run(
            "When does the ferry leave?", Run(diary := Diary())
        )

        assert trace.failure is None, trace.failure
        assert trace.grades is not None and len(trace.grades) == 2
        for grade in trace.grades:
            assert grade.raw
            assert grade.cause if grade.score is None else 0.0 <= grade.score <= 1.0
            assert grade.usage.calls in (1, 2) and grade.usage.prompt_tokens > 100
        assert trace.answer is not None
        assert trace.answer.state in (AnswerState.COMPLETE, AnswerState.CANNOT_ANSWER)
        assert trace.answer.text == "".join(diary.pieces).strip()
        assert len(diary.pieces) > 1, "the answer came in pieces"
        assert trace.answer.usage.prompt_tokens > 0 and trace.answer.usage.completion_tokens > 0
        assert trace.usage.calls == server.chat_calls
        assert trace.usage.completion_tokens > 0
        assert {step.state for step in trace.steps} <= {StepState.DONE}
        assert step_names(trace)[:2] == ["retrieve", "grade"] and step_names(trace)[-1] == "answer"
        assert all(request["format"] for request in [one for path, one in server.requests if path == "/api/chat"][:2])
        assert Trace.from_json(trace.to_json()) == trace


@pytest.mark.model
def test_a_whole_context_judged_by_a_real_model() -> None:
    with OllamaServer(RealModel(max_tokens=160)) as server:
        model = ollama.model(server.url, MODEL, 60.0, CallLimit(1))
        bench = Bench(policy_file("sufficient-context"), model=model, found=FOUND, web=WebMode.OFF)
        trace = bench.pipeline.run("When does the ferry leave?")

        assert trace.failure is None and len(trace.sufficiency) == 1
        (judged,) = trace.sufficiency
        assert judged.score in (0.0, 1.0, None) and bool(judged.cause) is (judged.score is None)
        assert judged.passages == ("p1", "p2") and judged.shown == 2 and judged.raw
        assert server.requests and trace.usage.calls == server.chat_calls in (1, 2, 3)
        first = next(request for path, request in server.requests if path == "/api/chat")
        assert first["format"] == replies.SUFFICIENT_SCHEMA
        assert Trace.from_json(trace.to_json()) == trace


@pytest.mark.model
def test_an_answer_judged_by_a_real_model() -> None:
    with OllamaServer(RealModel(max_tokens=120)) as server:
        judge = ModelSupport(ollama.model(server.url, MODEL, 60.0, CallLimit(1)), frozenset())
        writer = FakeModel(
            answer="Ferries depart by nine [1]. Dough wants kneading [2]. “The ferry leaves at nine.” [1]"
        )
        bench = Bench(changed("paper").with_thresholds(0.0, 0.0), model=writer, found=FOUND, web=WebMode.OFF)
        trace = bench.under(parts={"support": judge}, support=f"ollama/{MODEL}").run("When does the ferry leave?")

        assert trace.failure is None and trace.support is not None and len(trace.support) == 3
        step = trace.steps[-1]
        assert step.name == StepName.CHECK_ANSWER and step.state is StepState.DONE
        assert step.usage.calls == server.chat_calls in (2, 3, 4), "the quotation needs none"
        assert step.usage.prompt_tokens > 200 and step.usage.completion_tokens > 0
        assert {one.score for one in trace.support[:2]} <= {*SCORES.values(), None}
        assert trace.support[2].score == 1.0
        assert all(
            request["format"] == replies.CHECK_SCHEMA for path, request in server.requests if path == "/api/chat"
        )
        assert Trace.from_json(trace.to_json()) == trace

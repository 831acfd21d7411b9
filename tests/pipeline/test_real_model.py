"""The whole pipeline with a real language model behind the real Ollama client, once.

The model is fluent and without judgement, so only what holds for every reply is asserted.
"""

import pytest

from crag_core.base.types.answers import AnswerState
from crag_core.base.types.steps import StepState
from crag_core.evaluators.judges.llm import LLMEvaluator
from crag_core.llms import ollama
from crag_core.llms.model import CallLimit
from crag_core.pipeline.run import Run, WebMode
from crag_core.trace.trace import Trace
from tests.fakes import Bench, Diary, changed, passage, step_names
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.stand_ins.real_model import RealModel

FOUND = (passage(1, "The ferry leaves at nine."), passage(2, "Knead the dough for ten minutes."))


@pytest.mark.exhaustive
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

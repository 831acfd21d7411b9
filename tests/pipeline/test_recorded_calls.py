"""Every model call of a run stands in its record: exactly what was sent, what came back, and for which step."""

from collections import Counter
from dataclasses import replace

import pytest

from crag_core.base.errors import ModelUnavailable
from crag_core.base.protocols import Messages
from crag_core.base.types.steps import ModelCall, Usage
from crag_core.evaluators.judges.llm import LLMEvaluator
from crag_core.evaluators.support.by_model import ModelSupport
from crag_core.llms import ollama
from crag_core.llms.model import CallLimit
from crag_core.pipeline.model_calls import MOST_CHARACTERS, NotedModel, with_calls
from crag_core.pipeline.pipeline import Pipeline
from crag_core.pipeline.run import Run
from tests.fakes import ANSWER, QUESTION, WEB_QUERY, Bench, FakeModel, passages, set_when
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer

JUDGED = '{"score": 0.5, "reasoning": "some of it"}'
AWAY = ModelUnavailable("Ollama does not answer.", hint="Start it with: ollama serve")


def asking(model: FakeModel, **changes: object) -> tuple[Bench, Pipeline]:
    """A run of worst-chunk that asks a model in five steps: both lanes, the judge and the answer with its check."""
    noting = NotedModel(model)
    bench = Bench("worst-chunk", model=noting, judge=LLMEvaluator.card, found=passages(2))
    parts = {"evaluator": LLMEvaluator(noting), "support": ModelSupport(noting, frozenset())} | changes
    return bench, bench.under(parts=parts)


def model(**replies: str | Exception) -> FakeModel:
    return FakeModel(**{"judge": JUDGED} | replies)


def exactly(asked: FakeModel) -> Counter[tuple[tuple[str, str], ...]]:
    return Counter(tuple(messages) for _, messages in asked.asked)


def test_the_messages_of_every_call_stand_in_the_record_exactly_as_they_were_sent() -> None:
    asked = model()
    trace = asking(asked)[1].run(QUESTION)
    assert Counter(call.messages for call in trace.calls) == exactly(asked)
    assert Counter(call.step for call in trace.calls) == {
        "grade": 2, "extract": 2, "rewrite": 1, "answer": 1, "check answer": 1
    }  # fmt: skip
    replies = {call.step: call.reply for call in trace.calls}
    assert replies["grade"] == JUDGED and replies["rewrite"] == WEB_QUERY and replies["answer"].strip() == ANSWER
    assert all("ferry" in call.messages[1][1] for call in trace.calls if call.step == "rewrite")


# --- what does not go well ------------------------------------------------------------------------------------------


def test_one_of_several_calls_that_fails_is_told_from_the_others() -> None:
    def judge(messages: Messages) -> str | Exception:
        return AWAY if "document" in messages[1][1] else JUDGED

    asked = FakeModel(judge=judge)
    found = (passages(1)[0], replace(passages(2)[1], text="A document of another kind."))
    noting = NotedModel(asked)
    bench = Bench("worst-chunk", model=noting, judge=LLMEvaluator.card, found=found)
    trace = bench.under(parts={"evaluator": LLMEvaluator(noting)}).run(QUESTION)
    errors = {call.error for call in trace.calls if call.step == "grade" and "document" in call.messages[1][1]}
    assert errors == {AWAY.message}
    assert [call.reply for call in trace.calls if call.step == "grade" and not call.error] == [JUDGED]


@pytest.mark.parametrize("fault", ["stopped", "failed", "away"])
def test_the_calls_of_a_run_are_those_that_its_server_got(fault: str) -> None:
    with OllamaServer(ScriptedModel(lambda messages: "{}")) as server:
        noting = NotedModel(ollama.model(server.url, MODEL, 10.0, CallLimit(2)))
        bench = Bench("worst-chunk", model=noting, judge=LLMEvaluator.card, found=passages(6))
        run = Run()
        if fault == "stopped":
            server.faults.delay_s = 60.0
            set_when(lambda: server.active == 2, run.cancel)
        elif fault == "failed":
            server.faults.status = 500
        else:
            server.stop()
        trace = bench.under(parts={"evaluator": LLMEvaluator(noting)}).run(QUESTION, run)
        sent = {"stopped": 2, "failed": 4, "away": 0}[fault]
        noted = sum(call.usage.calls for call in trace.calls)
        assert (server.chat_calls, noted, trace.usage.calls) == (sent, sent, sent)
        assert all(call.error for call in trace.calls)


# --- apart ------------------------------------------------------------------------------------------------------------


def test_a_record_has_room_for_so_much_and_keeps_the_cost_of_the_rest() -> None:
    trace = Bench().pipeline.run(QUESTION)
    call = ModelCall("grade", (("user", "x" * (MOST_CHARACTERS // 2)),), "y" * 10, Usage(1, 5, 2))
    full = with_calls(with_calls(trace, [call, call]), [call, replace(call, messages=(("user", "short"),))])
    assert [bool(one.messages) for one in full.calls] == [True, False, False, True]
    assert all(one.usage == call.usage and one.step == "grade" for one in full.calls)
    assert [one.reply for one in full.calls] == ["y" * 10, "", "", "y" * 10]
    assert with_calls(trace, []) is trace

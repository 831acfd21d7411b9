"""P(yes) through the real clients: spellings, faults, a server without log probabilities, and real small models."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

import pytest

from crag_core.base.errors import NoLogProbabilities, Stopped
from crag_core.base.prompts.messages import JUDGED_CHARACTERS
from crag_core.base.protocols import Reply
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import StepName
from crag_core.evaluators.judges.llm_logprob import LLMLogprobEvaluator
from crag_core.evaluators.shared.yes_no import NEITHER, THINKS, yes_or_no
from crag_core.llms import ollama, openai_compatible
from crag_core.llms.client import LlamaIndexClient
from crag_core.llms.context_window import CONTEXT_WINDOW, Capacity
from crag_core.llms.first_token import TOP, allowed, first_token
from crag_core.llms.model import CallLimit, ServerModel
from crag_core.pipeline.model_calls import NotedModel, noted
from crag_core.pipeline.run import WebMode
from tests.fakes import QUESTION, Bench, passage, passages, set_when
from tests.security.servers import Said, answering
from tests.stand_ins import ollama_server as ollama_wire
from tests.stand_ins import openai_server as openai_wire
from tests.stand_ins.engines import Message, ScriptedModel, Token
from tests.stand_ins.model_server import ModelServer
from tests.stand_ins.ollama_server import OllamaServer
from tests.stand_ins.openai_server import OpenAIServer
from tests.stand_ins.real_model import RealModel, load_model

YES = Token({"Yes": 0.6, " yes": 0.1, "YES": 0.05, "No": 0.15, "**": 0.1})


def reply(likely: Sequence[tuple[str, float]], text: str = "") -> Reply:
    """Of a first token with these probabilities, not their logarithms."""
    logs = tuple((token, math.log(value) if value else -math.inf) for token, value in likely)
    return Reply(text or likely[0][0], top_logprobs=logs)


# --- reading --------------------------------------------------------------------------------------------------------

SPELLED = [
    ([("Yes", 0.6), ("yes", 0.15), ("No", 0.25)], 0.75),
    ([(" yes", 0.2), ("▁No", 0.2), ("Maybe", 0.6)], 0.5),
    ([('"Yes', 0.3), ("*no*", 0.1)], 0.75),
    ([("The", 0.9), ("No", 0.03), ("Yes", 0.01)], 0.25),
    ([("Yes", 0.99), ("Yesterday", 0.01)], 1.0),
    ([("NO.", 0.5)], 0.0),
    ([("Yes", 0.4), ("Yes", 0.4), ("no", 0.2)], 0.8),  # two tokens of one spelling
    ([("Yes", 1.0), ("No", 0.0)], 1.0),
]


@pytest.mark.parametrize(("likely", "share"), SPELLED, ids=str)
def test_every_spelling_counts_and_nothing_else(likely: list[tuple[str, float]], share: float) -> None:
    assert yes_or_no(reply(likely)).share == pytest.approx(share)


UNREADABLE = [
    (reply([("The", 0.6), ("Not", 0.2), ("Y", 0.1), ("Nope", 0.1)]), NEITHER),
    (reply([("Yes", 0.0), ("No", 0.0)]), NEITHER),
    (reply([("Ja", 0.9), ("Nein", 0.1)]), NEITHER),
    (reply([("<think>", 0.99), ("Yes", 0.01)]), THINKS),
    (reply([("\n<think>", 0.99), ("No", 0.01)]), THINKS),
    (reply([("<|channel|>", 0.99), ("No", 0.01)]), THINKS),
    (reply([("Okay", 0.6), ("Yes", 0.4)], text="<think>Okay"), THINKS),
    (Reply(""), "the reply was empty"),
]


@pytest.mark.parametrize(("came", "cause"), UNREADABLE, ids=str)
def test_what_is_no_yes_or_no_has_no_share_and_says_why(came: Reply, cause: str) -> None:
    said = yes_or_no(came)
    assert (said.share, said.cause) == (None, cause)


def told(token: object = "Yes", logprob: object = -0.1, *top: dict[str, Any]) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "top_logprobs": list(top)}


@pytest.mark.parametrize(
    ("logprobs", "likely"),
    [
        ([told()], (("Yes", -0.1),)),
        ([told("Yes", -0.1, {"token": "No", "logprob": -2.5})], (("Yes", -0.1), ("No", -2.5))),
        ([told("Yes", -3.0, {"token": "No", "logprob": -0.1})], (("No", -0.1), ("Yes", -3.0))),
        ([told("Yes", 0.00001)], (("Yes", 0.0),)),  # a probability is 1 at most
        ([told("Yes", 0.7, {"token": "No", "logprob": 2.0})], ()),  # these are none
        ([told("Yes", float("nan"))], ()),
        ([told("Yes", "-0.1")], ()),
        ([told(5, -0.1, {"token": "No"}, {"logprob": -1.0}, "No")], ()),  # type: ignore[arg-type]
        ([], ()),
        (None, ()),
        (5, ()),
        ([None], ()),
    ],
    ids=str,
)
def test_odd_log_probabilities_are_left_out(logprobs: Any, likely: tuple[tuple[str, float], ...]) -> None:
    message = {"role": "assistant", "content": "Yes"}
    assert first_token({"message": message, "logprobs": logprobs}).top_logprobs == likely
    choice = {"message": message, "logprobs": {"content": logprobs}}
    assert first_token({"choices": [choice]}).top_logprobs == likely


# --- the wire -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["ollama", "openai"])
def server(request: pytest.FixtureRequest) -> Iterator[ModelServer]:
    engine = ScriptedModel(lambda messages: YES, piece_chars=400)
    kind = OllamaServer if request.param == "ollama" else OpenAIServer
    with kind(engine) as server:
        yield server


def model_of(server: ModelServer, at_once: int = 2) -> ServerModel:
    if isinstance(server, OpenAIServer):
        return openai_compatible.model(server.api_base, openai_wire.MODEL, "", 10.0, CallLimit(at_once))
    return ollama.model(server.url, ollama_wire.MODEL, 10.0, CallLimit(at_once))


def judge(server: ModelServer, *found: Passage) -> tuple[Grade, ...]:
    return LLMLogprobEvaluator(model_of(server)).grade(QUESTION, found or passages(1), Event())


def without_log_probabilities(server: ModelServer) -> None:
    if isinstance(server, OpenAIServer):
        server.has_logprobs = False
    else:
        server.version = "0.12.10"  # type: ignore[attr-defined]


def test_the_grade_is_the_share_of_yes_with_the_tokens_as_raw_reply(server: ModelServer) -> None:
    (grade,) = judge(server)
    assert grade.score == pytest.approx(0.75 / 0.90)
    assert grade.reason == "yes 0.75, no 0.15 of the first token" and grade.cause == ""
    assert [token for token, _ in json.loads(grade.raw or "")] == ["Yes", "No", " yes", "**", "YES"]
    assert grade.usage.calls == 1 and grade.usage.completion_tokens == 1 and grade.usage.prompt_tokens > 50


def test_one_token_is_asked_for_and_no_thought(server: ModelServer) -> None:
    judge(server)
    ask, body = server.engine.asks[0], server.requests[-1][1]
    assert (ask.max_tokens, ask.temperature, ask.top, ask.schema) == (1, 0.0, TOP, None)
    assert (body["logprobs"], body["top_logprobs"], body.get("stream", False)) == (True, 20, False)
    assert [message["role"] for message in ask.messages] == ["system", "user"]
    assert QUESTION in ask.messages[1]["content"] and ask.messages[1]["content"].endswith("yes or no?")
    if isinstance(server, OllamaServer):
        assert body["think"] is False
        assert body["options"]["num_ctx"] == CONTEXT_WINDOW, "another window would load the model anew"


def test_passage_is_judged_by_its_first_2000_characters(server: ModelServer) -> None:
    judge(server, passage(1, "a" * (JUDGED_CHARACTERS - 1) + "bc"))
    sent = server.engine.asks[0].messages[1]["content"]
    assert "ab\n" in sent and "abc" not in sent


def test_grades_come_in_the_order_of_the_passages(server: ModelServer) -> None:
    def say(messages: tuple[Message, ...]) -> Token:
        return Token(Yes=0.9, No=0.1) if "second" in messages[1]["content"] else Token(Yes=0.2, No=0.8)

    server.engine = ScriptedModel(say)
    grades = judge(server, passage(1, "the first"), passage(2, "the second"), passage(3, "the third"))
    assert [grade.score for grade in grades] == [pytest.approx(score) for score in (0.2, 0.9, 0.2)]
    assert server.chat_calls == sum(grade.usage.calls for grade in grades) == 3


def test_neither_word_is_ungraded_with_the_tokens_and_asked_once(server: ModelServer) -> None:
    server.engine = ScriptedModel([Token(The=0.7, It=0.3)])
    (grade,) = judge(server)
    assert (grade.score, grade.cause, grade.retryable) == (None, NEITHER, False)
    assert json.loads(grade.raw or "")[0][0] == "The" and grade.usage.calls == server.chat_calls == 1


def test_a_model_that_thinks_first_is_ungraded_and_says_so(server: ModelServer) -> None:
    server.engine = ScriptedModel(lambda messages: Token({"<think>": 0.97, "Yes": 0.03}), piece_chars=400)
    assert {grade.cause for grade in judge(server, *passages(2))} == {THINKS}


def test_a_server_without_log_probabilities_is_asked_once_and_told_as_such(server: ModelServer) -> None:
    without_log_probabilities(server)
    grades = judge(server, *passages(5))
    assert server.chat_calls == 1 and sum(grade.usage.calls for grade in grades) == 1
    assert {(grade.score, grade.retryable, grade.error) for grade in grades} == {(None, True, "NoLogProbabilities")}
    (cause,) = {grade.cause for grade in grades}
    assert "sends no log probabilities" in cause and server.url in cause and "another evaluator" in cause
    assert ("Update it to 0.12.11 or later" in cause) is isinstance(server, OllamaServer)


def test_a_server_that_refuses_to_be_asked_for_them_is_told_as_such() -> None:
    refusal = json.dumps({"error": {"message": "logprobs are not supported by this model"}}).encode()
    with answering(lambda path: Said(400, {"content-type": "application/json"}, lambda: [refusal])) as server:
        model = openai_compatible.model(f"{server.url}/v1", "m", "", 5.0, CallLimit(1))
        with pytest.raises(NoLogProbabilities, match="sends no log probabilities"):
            model.first_tokens([(("user", "Yes?"),)] * 4, Event())
        assert len(server.paths) == 1


REFUSALS = [
    ("Requested sample logprobs of 20, which is greater than max allowed: 5", 5),
    ("Invalid value for 'top_logprobs': must be less than or equal to 8.", 8),
    ("top_logprobs: Input should be between 0 and 5", 5),
    ("logprobs are not supported by this model", None),
    ("'qwen2.5-7b' does not know this: at most 5", None),
    ("top_logprobs must be 0", None),
]


@pytest.mark.parametrize(("said", "most"), REFUSALS, ids=str)
def test_a_refusal_may_say_how_many_tokens_are_told(said: str, most: int | None) -> None:
    assert allowed(said) == most


def test_a_server_that_tells_fewer_tokens_is_asked_for_those() -> None:
    with OpenAIServer(ScriptedModel(lambda messages: YES, piece_chars=400), most_told=5) as server:
        model = model_of(server)
        for count in (1, 3):
            found = LLMLogprobEvaluator(model).grade(QUESTION, passages(count), Event())
            assert all(grade.score == pytest.approx(0.75 / 0.90) for grade in found)
        told = [body["top_logprobs"] for path, body in server.requests if path.endswith("completions")]
        assert told == [20, 5, 5, 5, 5], "what was learned once is kept"


def test_a_server_that_was_updated_is_asked_again(server: ModelServer) -> None:
    model = model_of(server)
    without_log_probabilities(server)
    assert LLMLogprobEvaluator(model).grade(QUESTION, passages(2), Event())[0].score is None
    if isinstance(server, OpenAIServer):
        server.has_logprobs = True
    else:
        server.version = "0.13.0"  # type: ignore[attr-defined]
    assert all(grade.score is not None for grade in LLMLogprobEvaluator(model).grade(QUESTION, passages(2), Event()))


def test_a_run_breaks_off_at_a_server_without_log_probabilities_and_goes_on_once_it_has_them() -> None:
    with OllamaServer(ScriptedModel(lambda messages: YES, piece_chars=400), version="0.11.4") as server:
        bench = Bench(policy="worst-chunk", judge=LLMLogprobEvaluator.card, web=WebMode.OFF)
        bench.evaluator.grade = LLMLogprobEvaluator(model_of(server)).grade  # type: ignore[method-assign]
        broken = bench.pipeline.run(QUESTION)
        assert broken.failure is not None and "Update it to 0.12.11 or later" in broken.failure.summary
        assert server.chat_calls == broken.usage.calls == 1 and broken.decision is None
        server.version = "0.12.11"
        whole = bench.pipeline.resume(broken)
        assert whole.failure is None and whole.decision is not None and whole.decision.action == "CORRECT"
        assert server.chat_calls == whole.usage.calls == 1 + len(whole.grades or ())


def test_a_model_of_a_llamaindex_user_has_none_and_is_not_asked() -> None:
    model = ServerModel(LlamaIndexClient(object(), "theirs"), CallLimit(1), Capacity(), lambda: None)  # type: ignore[arg-type, return-value]
    (grade,) = LLMLogprobEvaluator(model).grade(QUESTION, passages(1), Event())
    assert grade.cause == "LlamaIndex hands on no log probabilities of theirs. Choose another evaluator."


@pytest.mark.parametrize("fault", [{"status": 500}, {"die_after": 0}, {"broken_after": 0}], ids=str)
def test_an_outage_is_retryable_and_names_the_server(server: ModelServer, fault: dict[str, Any]) -> None:
    for name, value in fault.items():
        setattr(server.faults, name, value)
    grades = judge(server, *passages(2))
    assert {(grade.score, grade.retryable, grade.error) for grade in grades} == {(None, True, "ModelUnavailable")}
    assert all(server.url in grade.cause for grade in grades)
    server.faults.clear()
    assert all(grade.score is not None for grade in judge(server, *passages(2)))


def test_stop_closes_the_connection(server: ModelServer) -> None:
    server.engine = ScriptedModel(lambda messages: YES, delay_s=30.0)
    with pytest.raises(Stopped):
        LLMLogprobEvaluator(model_of(server)).grade(QUESTION, passages(3), set_when(lambda: server.active > 0))
    assert server.wait_for_disconnects()


def test_no_more_calls_wait_together_than_the_cap(server: ModelServer) -> None:
    under_way: list[int] = []

    def say(messages: tuple[Message, ...]) -> Token:
        under_way.append(server.active)
        return YES

    server.engine = ScriptedModel(say, delay_s=0.02)
    model = model_of(server, at_once=3)
    for found in (passages(1), passages(9)):
        LLMLogprobEvaluator(model).grade(QUESTION, found, Event())
    assert max(under_way) == 3


def test_the_first_goes_alone_until_the_server_has_told_log_probabilities(server: ModelServer) -> None:
    under_way: list[int] = []

    def say(messages: tuple[Message, ...]) -> Token:
        under_way.append(server.active)
        return YES

    server.engine = ScriptedModel(say, delay_s=0.02)
    model = model_of(server, at_once=4)
    for _ in range(2):
        LLMLogprobEvaluator(model).grade(QUESTION, passages(4), Event())
    assert under_way[:2] == [1, 1] and max(under_way[:4]) == 3 and max(under_way[4:]) == 4


def test_each_call_is_noted_for_the_record(server: ModelServer) -> None:
    with noted(StepName.GRADE) as calls:
        LLMLogprobEvaluator(NotedModel(model_of(server))).grade(QUESTION, passages(3), Event())
    assert [(call.reply, call.usage.calls) for call in calls] == [("Yes", 1)] * 3


def test_only_the_call_that_was_made_is_noted(server: ModelServer) -> None:
    without_log_probabilities(server)
    with noted(StepName.GRADE) as calls:
        LLMLogprobEvaluator(NotedModel(model_of(server))).grade(QUESTION, passages(3), Event())
    assert len(calls) == server.chat_calls == 1 and "no log probabilities" in calls[0].error


# --- real models ----------------------------------------------------------------------------------------------------

ANSWERING = passage(1, "The ferry to Vennick leaves at ten in winter.")


def test_a_real_small_model_behind_ollama_and_behind_its_own_openai_server_says_the_same() -> None:
    """Of SmolLM2-135M; whether it is right nobody asks: it has no judgement."""
    with OllamaServer(RealModel()) as server:
        (mine,) = LLMLogprobEvaluator(ollama.model(server.url, ollama_wire.MODEL, 60.0, CallLimit(1))).grade(
            QUESTION, [ANSWERING], Event()
        )
    theirs = openai_compatible.model(f"{load_model().listening_address}/v1", "smollm2", "", 60.0, CallLimit(1))
    (other,) = LLMLogprobEvaluator(theirs).grade(QUESTION, [ANSWERING], Event())
    for grade in (mine, other):
        assert grade.score is not None and 0.0 < grade.score < 1.0 and grade.cause == ""
        assert len(json.loads(grade.raw or "")) == TOP
        assert grade.usage.completion_tokens == 1 and grade.usage.prompt_tokens > 100
    assert mine.score == pytest.approx(other.score, abs=0.05), "the same prompt and weights behind two protocols"

"""P(yes) through the real clients: spellings, faults, a server without log probabilities, and real small models."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

import pytest

from crag_core.base.protocols import Reply
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.evaluators.judges.llm_logprob import LLMLogprobEvaluator
from crag_core.evaluators.shared.yes_no import NEITHER, THINKS, yes_or_no
from crag_core.llms import ollama, openai_compatible
from crag_core.llms.context_window import CONTEXT_WINDOW
from crag_core.llms.first_token import TOP, first_token
from crag_core.llms.model import CallLimit, ServerModel
from crag_core.pipeline.run import WebMode
from tests.fakes import QUESTION, Bench, passages
from tests.stand_ins import ollama_server as ollama_wire
from tests.stand_ins import openai_server as openai_wire
from tests.stand_ins.engines import ScriptedModel, Token
from tests.stand_ins.model_server import ModelServer
from tests.stand_ins.ollama_server import OllamaServer
from tests.stand_ins.openai_server import OpenAIServer

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
        ([told("Yes", 0.5, {"token": "No", "logprob": -1.5})], ()),  # what is left would say No
        ([told("No", -0.1, {"token": "Yes", "logprob": math.nan})], ()),
        ([told("No", -0.1, {"token": "Yes", "logprob": None})], (("No", -0.1),)),
        ([told("Yes", -(10**400))], (("Yes", -1e9),)),
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


def model_of(server: ModelServer) -> ServerModel:
    if isinstance(server, OpenAIServer):
        return openai_compatible.model(server.api_base, openai_wire.MODEL, "", 10.0, CallLimit(2))
    return ollama.model(server.url, ollama_wire.MODEL, 10.0, CallLimit(2))


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


def test_neither_word_is_ungraded_with_the_tokens_and_asked_once(server: ModelServer) -> None:
    server.engine = ScriptedModel([Token(The=0.7, It=0.3)])
    (grade,) = judge(server)
    assert (grade.score, grade.cause, grade.retryable) == (None, NEITHER, False)
    assert json.loads(grade.raw or "")[0][0] == "The" and grade.usage.calls == server.chat_calls == 1


def test_a_server_without_log_probabilities_is_asked_once_and_told_as_such(server: ModelServer) -> None:
    without_log_probabilities(server)
    grades = judge(server, *passages(5))
    assert server.chat_calls == 1 and sum(grade.usage.calls for grade in grades) == 1
    assert {(grade.score, grade.retryable, grade.error) for grade in grades} == {(None, True, "NoLogProbabilities")}
    (cause,) = {grade.cause for grade in grades}
    assert "sends no log probabilities" in cause and server.url in cause and "another evaluator" in cause
    assert ("Update it to 0.12.11 or later" in cause) is isinstance(server, OllamaServer)


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


def test_an_outage_is_retryable_and_names_the_server(server: ModelServer) -> None:
    server.faults.die_after = 0
    grades = judge(server, *passages(2))
    assert {(grade.score, grade.retryable, grade.error) for grade in grades} == {(None, True, "ModelUnavailable")}
    assert all(server.url in grade.cause for grade in grades)
    server.faults.clear()
    assert all(grade.score is not None for grade in judge(server, *passages(2)))

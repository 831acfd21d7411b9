"""Calls through both real clients: every fault as the project's own error, usage, and cancelling that closes lines."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from crag_core.base.errors import ModelMissing, ModelUnavailable, Stopped
from crag_core.base.protocols import LanguageModel, Messages, Reply
from crag_core.base.types.steps import Usage
from crag_core.llms import client as llama_client
from crag_core.llms import ollama, openai_compatible
from crag_core.llms.model import CallLimit, ServerModel
from tests.fakes import set_when
from tests.security.servers import Said, answering
from tests.stand_ins import ollama_server as ollama_wire
from tests.stand_ins import openai_server as openai_wire
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import wait_until
from tests.stand_ins.model_server import ModelServer
from tests.stand_ins.ollama_server import OllamaServer
from tests.stand_ins.openai_server import OpenAIServer

CHAT: Messages = (("system", "Be brief."), ("user", "Who was Alan Turing?"))
REPLY = "A mathematician, born in London."
LONG = "word " * 400


@pytest.fixture(params=["ollama", "openai"])
def server(request: pytest.FixtureRequest) -> Iterator[ModelServer]:
    engine = ScriptedModel(lambda messages: REPLY)
    kind = OllamaServer if request.param == "ollama" else OpenAIServer
    with kind(engine) as server:
        yield server


def model_of(server: ModelServer, timeout: float = 10.0, at_once: int = 2, name: str = "") -> ServerModel:
    return limited_model(server, CallLimit(at_once), timeout, name)


def limited_model(server: ModelServer, limit: CallLimit, timeout: float = 10.0, name: str = "") -> ServerModel:
    if isinstance(server, OpenAIServer):
        return openai_compatible.model(server.api_base, name or openai_wire.MODEL, "", timeout, limit)
    return ollama.model(server.url, name or ollama_wire.MODEL, timeout, limit)


def no_cancel() -> threading.Event:
    return threading.Event()


def call_once(model: LanguageModel, cancel: threading.Event) -> Reply:
    return model.complete(CHAT, cancel)


def call_streaming(model: LanguageModel, cancel: threading.Event) -> list[str | Usage]:
    return list(model.stream(CHAT, cancel))


CALLS: list[Callable[[LanguageModel, threading.Event], Any]] = [call_once, call_streaming]


# --- when it works --------------------------------------------------------------------------------------------------


def test_stream_gives_the_pieces_as_they_come_and_the_usage_last(server: ModelServer) -> None:
    *pieces, usage = model_of(server).stream(CHAT, no_cancel())
    assert "".join(str(piece) for piece in pieces) == REPLY
    assert len(pieces) == 8
    assert usage == Usage(1, 6, 8)


def test_pieces_arrive_while_the_model_still_writes(server: ModelServer) -> None:
    server.engine = ScriptedModel(lambda messages: LONG, piece_chars=5, delay_s=0.01)
    stream = model_of(server).stream(CHAT, no_cancel())
    assert next(stream) == "word "
    assert server.engine.pieces_written < 100
    stream.close()  # type: ignore[attr-defined]


def test_temperature_limit_and_roles_go_with_the_request(server: ModelServer) -> None:
    model_of(server).complete(CHAT, no_cancel())
    ask = server.engine.asks[0]
    assert (ask.temperature, ask.max_tokens, ask.schema) == (0.0, 768, None)
    assert [(message["role"], message["content"]) for message in ask.messages] == list(CHAT)


def test_replies_of_several_chats_keep_their_order_and_their_own_errors(server: ModelServer) -> None:
    def reply(messages: Any) -> str:
        if messages[-1]["content"] == "2":
            raise RuntimeError("out of memory")
        return f"reply {messages[-1]['content']}"

    server.engine = ScriptedModel(reply)
    first, second, third = model_of(server).complete_all([(("user", str(n)),) for n in (1, 2, 3)], no_cancel())
    assert isinstance(first, Reply) and first.text == "reply 1"
    assert isinstance(second, ModelUnavailable)
    assert isinstance(third, Reply) and third.text == "reply 3"


def test_nothing_is_asked_twice_behind_our_back(server: ModelServer) -> None:
    server.faults.status = 500
    with pytest.raises(ModelUnavailable):
        model_of(server).complete(CHAT, no_cancel())
    assert server.chat_calls == 1


# --- faults ---------------------------------------------------------------------------------------------------------

FAULTS = [
    ({"status": 500}, "failed"),
    ({"status": 503}, "failed"),
    ({"status": 429}, "failed"),
    ({"die_after": 0}, "went away"),
    ({"error_after": 0}, "failed"),
]
STREAM_FAULTS = [
    ({"die_after": 3}, ("went away",)),
    ({"broken_after": 3}, ("went away", "does not speak")),
    ({"error_after": 3}, ("failed", "went away")),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("fault", "words"), FAULTS, ids=str)
def test_fault_is_a_typed_error_with_a_hint(
    server: ModelServer, fault: dict[str, Any], words: str, call: Callable[..., Any]
) -> None:
    for name, value in fault.items():
        setattr(server.faults, name, value)
    with pytest.raises(ModelUnavailable) as failed:
        call(model_of(server), no_cancel())
    assert words in failed.value.message and server.url in failed.value.message
    assert failed.value.hint and failed.value.retryable
    server.faults.clear()
    assert call(model_of(server), no_cancel()), "the same call works once the fault is over"


@pytest.mark.parametrize(("fault", "words"), STREAM_FAULTS, ids=str)
def test_fault_in_mid_stream_comes_after_the_pieces_before_it(
    server: ModelServer, fault: dict[str, Any], words: tuple[str, ...]
) -> None:
    for name, value in fault.items():
        setattr(server.faults, name, value)
    pieces: list[str | Usage] = []
    with pytest.raises(ModelUnavailable) as failed:
        pieces.extend(model_of(server).stream(CHAT, no_cancel()))
    assert any(word in failed.value.message for word in words) and failed.value.hint


@pytest.mark.parametrize("call", CALLS)
def test_refused_connection_says_how_to_start_the_server(server: ModelServer, call: Callable[..., Any]) -> None:
    server.stop()
    with pytest.raises(ModelUnavailable, match="does not answer or went away") as failed:
        call(model_of(server), no_cancel())
    assert failed.value.hint.startswith("Start it")


@pytest.mark.parametrize("call", CALLS)
def test_timeout_is_told_with_a_way_out(server: ModelServer, call: Callable[..., Any]) -> None:
    server.faults.delay_s = 5.0
    with pytest.raises(ModelUnavailable, match=r"did not begin to answer within 0\.5 s") as failed:
        call(model_of(server, timeout=0.1), no_cancel())
    assert failed.value.hint == "Wait and continue, or choose a smaller model." and failed.value.is_late
    assert server.wait_for_disconnects()


@pytest.mark.parametrize("call", CALLS)
def test_missing_model_names_what_to_do(server: ModelServer, call: Callable[..., Any]) -> None:
    with pytest.raises(ModelMissing, match="does not have the model 'nobody'") as failed:
        call(model_of(server, name="nobody"), no_cancel())
    assert not failed.value.retryable
    assert failed.value.hint.startswith(("Get it with: ollama pull nobody", "Choose one that it lists."))


# --- cancelling -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
def test_cancel_before_the_first_token_closes_the_connection(server: ModelServer, call: Callable[..., Any]) -> None:
    server.faults.delay_s = 10.0
    with pytest.raises(Stopped):
        call(model_of(server), set_when(lambda: server.active == 1))
    assert server.wait_for_disconnects()
    assert server.engine.asks == [] and wait_until(lambda: server.active == 0, 60)


@pytest.mark.parametrize("call", CALLS)
def test_cancel_in_the_middle_closes_the_connection_and_ends_the_writing(
    server: ModelServer, call: Callable[..., Any]
) -> None:
    engine = server.engine = ScriptedModel(lambda messages: LONG, piece_chars=5, delay_s=0.01)
    with pytest.raises(Stopped):
        call(model_of(server), set_when(lambda: engine.pieces_written >= 3))
    assert server.wait_for_disconnects()
    written = engine.pieces_written
    assert not wait_until(lambda: engine.pieces_written > written, 0.1)
    assert written < 400


def test_closing_the_stream_closes_the_connection(server: ModelServer) -> None:
    server.engine = ScriptedModel(lambda messages: LONG, piece_chars=5, delay_s=0.01)
    stream = model_of(server).stream(CHAT, no_cancel())
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert server.wait_for_disconnects()


def test_models_can_be_called_inside_a_running_event_loop(server: ModelServer) -> None:
    async def inside() -> str:
        return model_of(server).complete(CHAT, no_cancel()).text

    assert asyncio.run(inside()) == REPLY


# --- the loop behind the calls --------------------------------------------------------------------------------------


def test_half_a_surrogate_pair_is_sent_as_a_question_mark(server: ModelServer) -> None:
    reply = model_of(server).complete((("user", "broken \ud800 text"),), no_cancel())
    assert reply.text == REPLY
    assert server.engine.asks[-1].messages[0]["content"] == "broken ? text"


# --- how long a reply is waited for ---------------------------------------------------------------------------------


def test_calls_behind_one_that_was_given_up_are_given_up_with_it(server: ModelServer) -> None:
    """One after the other they would wait six times as long."""
    model = model_of(server, timeout=0.2, at_once=1)
    server.faults.delay_s = 30.0
    found = model.complete_all([CHAT] * 6, no_cancel())
    assert all(isinstance(one, ModelUnavailable) and one.is_late for one in found) and len(found) == 6
    assert server.chat_calls <= 1


@pytest.mark.parametrize(
    ("patience", "pause_s", "told"),
    [
        (10, 0.6, "fell silent for 0.4 s in the middle of a reply"),
        (1, 0.05, "took longer than 0.4 s in all for a reply"),
    ],
)
def test_a_reply_that_falls_silent_or_drips_has_an_end(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, patience: int, pause_s: float, told: str
) -> None:
    monkeypatch.setattr(llama_client, "PATIENCE", patience)
    server.engine = ScriptedModel(lambda messages: LONG, piece_chars=5, delay_s=pause_s)
    pieces: list[str | Usage] = []
    with pytest.raises(ModelUnavailable, match=told) as failed:
        pieces.extend(model_of(server, timeout=0.4).stream(CHAT, no_cancel()))
    assert failed.value.is_late and server.wait_for_disconnects()
    assert server.engine.pieces_written < 100


def test_a_text_without_end_is_given_up(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_client, "LONGEST_TEXT", 1000)
    server.engine = ScriptedModel(lambda messages: LONG, piece_chars=50)
    with pytest.raises(ModelUnavailable, match="wrote more than 1000 characters"):
        list(model_of(server).stream(CHAT, no_cancel()))


def test_what_a_model_thinks_in_a_field_of_its_own_is_no_answer() -> None:
    thought = {"model": "m", "message": {"role": "assistant", "content": "", "thinking": "Hm."}, "done": False}
    said = {"model": "m", "message": {"role": "assistant", "content": "Nine."}, "done": True}
    body = b"".join(json.dumps(one).encode() + b"\n" for one in (thought, said))
    with answering(lambda path: Said(headers={"content-type": "application/x-ndjson"}, pieces=lambda: [body])) as odd:
        model = ollama.model(odd.url, "m", 5.0, CallLimit(1))
        assert [one for one in model.stream(CHAT, no_cancel()) if isinstance(one, str)] == ["Nine."]
        assert model.complete(CHAT, no_cancel()).text == "Nine."

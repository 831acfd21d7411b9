"""JSON of another shape than a reply has: told as a server's, with no connection left open; a bug of ours stays one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from crag_core.base.errors import ModelUnavailable
from crag_core.base.network import http_guard
from crag_core.base.protocols import Reply
from crag_core.base.types.steps import NO_END, Usage
from crag_core.llms import ollama, openai_compatible
from crag_core.llms.model import CallLimit, ServerModel
from crag_core.llms.reply_errors import LARGEST_COUNT
from tests.security.servers import Asked, Said, answering
from tests.stand_ins.ollama_server import MODEL

CHAT = (("system", "Be brief."), ("user", "Who was Alan Turing?"))
CLIENTS: dict[str, Callable[[str], ServerModel]] = {
    "ollama": lambda url: ollama.model(url, MODEL, 5.0, CallLimit(1)),
    "openai": lambda url: openai_compatible.model(f"{url}/v1", MODEL, "", 5.0, CallLimit(1)),
}
EXPECTED = {
    "ollama": ("does not speak Ollama's protocol: expected an object with a message, found", "Check OLLAMA_HOST: "),
    "openai": ("does not speak OpenAI's protocol: expected choices with a message, found", "Check OPENAI_BASE_URL; "),
}
EVENTS = {"content-type": "text/event-stream"}
every_wire = pytest.mark.parametrize("wire", CLIENTS)


def ask(model: ServerModel) -> Reply:
    return model.complete(CHAT, threading.Event())


def stream(model: ServerModel) -> list[str | Usage]:
    return list(model.stream(CHAT, threading.Event()))


def piece(wire: str, text: str, **more: Any) -> bytes:
    """One piece of a sound stream."""
    message = {"role": "assistant", "content": text}
    if wire == "ollama":
        return json.dumps({"model": "m", "message": message, "done": False, **more}).encode() + b"\n"
    return event({"id": "c", "choices": [{"index": 0, "delta": message, "finish_reason": None}], **more})


def event(body: Any) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def line(wire: str, body: Any) -> bytes:
    return json.dumps(body).encode() + b"\n" if wire == "ollama" else event(body)


def whole(wire: str, text: str, **more: Any) -> bytes:
    message = {"role": "assistant", "content": text}
    if wire == "ollama":
        return json.dumps({"model": "m", "message": message, "done": True, **more}).encode()
    return json.dumps({"id": "c", "choices": [{"index": 0, "message": message}], **more}).encode()


JSON = {"content-type": "application/json"}


# --- replies --------------------------------------------------------------------------------------------------------


@every_wire
@pytest.mark.parametrize(
    "body", [["yes"], None, 5, {"message": 5}, {"choices": 5}, {"choices": [None]}], ids=json.dumps
)
def test_in_mid_stream_it_comes_after_the_pieces_before_it(wire: str, body: Any) -> None:
    sent = [piece(wire, "As "), piece(wire, "told."), line(wire, body), piece(wire, "Never read.")]
    pieces: list[str | Usage] = []
    words, hint = EXPECTED[wire]
    with (
        answering(lambda path: Said(headers=EVENTS, pieces=lambda: sent)) as server,
        pytest.raises(ModelUnavailable) as failed,
    ):
        for one in CLIENTS[wire](server.url).stream(CHAT, threading.Event()):
            pieces.append(one)
    assert pieces == ["As ", "told."]
    assert words in failed.value.message and server.url in failed.value.message and failed.value.hint.startswith(hint)


@every_wire
@pytest.mark.parametrize(
    "body", [{"message": {"role": "assistant"}}, {"message": {"role": "judge", "content": "yes"}}, [1]], ids=json.dumps
)
def test_no_connection_is_left_open_to_a_server_that_goes_on(wire: str, body: Any) -> None:
    """The client fails at the first piece; who is not told to stop would go on writing."""
    left = threading.Event()

    def endless() -> Iterator[bytes]:
        try:
            yield line(wire, body)
            while not left.wait(0.01):
                yield piece(wire, "word ")
        finally:
            left.set()

    with answering(lambda path: Said(headers=EVENTS, pieces=endless)) as server:
        with pytest.raises(ModelUnavailable):
            stream(CLIENTS[wire](server.url))
        assert left.wait(5.0)


def test_the_words_repeat_nothing_of_the_server() -> None:
    body = line("ollama", {"message": {"role": "s3cret", "content": "s3cret"}})
    with (
        answering(lambda path: Said(headers=EVENTS, pieces=lambda: [body])) as server,
        pytest.raises(ModelUnavailable, match="found something else") as failed,
    ):
        ask(CLIENTS["ollama"](server.url))
    assert "s3cret" not in str(failed.value) and len(failed.value.message) < 400


@pytest.mark.parametrize("body", [b"", b": nothing\n\n", b"data: [DONE]\n\n", event({"choices": []}), event({})])
def test_a_stream_that_gives_nothing_is_no_empty_answer(body: bytes) -> None:
    with (
        answering(lambda path: Said(headers=EVENTS, pieces=lambda: [body])) as server,
        pytest.raises(ModelUnavailable, match="does not speak OpenAI's protocol"),
    ):
        stream(CLIENTS["openai"](server.url))


@every_wire
@pytest.mark.parametrize(
    ("reason", "ended"),
    [
        ("stop", ""), ("length", "length"), ("content_filter", "content_filter"), ("load", "load"), (None, ""),
        ("no end", NO_END),
    ],
)  # fmt: skip
def test_why_a_reply_ended_is_told_where_it_is_not_whole(wire: str, reason: str | None, ended: str) -> None:
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": reason or "stop"}]}
    final = event(last) if wire == "openai" else piece(wire, "", done=True, done_reason=reason)
    counts = event({"choices": [], "usage": {"prompt_tokens": 6}}) if wire == "openai" else b""
    pieces = [piece(wire, "To"), *([] if reason == "no end" else [final, counts])]
    with answering(lambda path: Said(headers=EVENTS, pieces=lambda: pieces)) as server:
        *_, usage = stream(CLIENTS[wire](server.url))
    assert isinstance(usage, Usage) and usage.ended == ended


def test_a_reply_without_a_word_is_whole_though_the_client_drops_its_only_piece() -> None:
    last = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    counts = event({"choices": [], "usage": {"prompt_tokens": 6}})
    with answering(lambda path: Said(headers=EVENTS, pieces=lambda: [last, counts])) as server:
        assert stream(CLIENTS["openai"](server.url)) == [Usage(1, 6)]


# --- counts ---------------------------------------------------------------------------------------------------------

ODD = [-5, 10**30, LARGEST_COUNT + 1, "many", [1], {}, None, 1e400, float("nan")]


@pytest.mark.parametrize("count", ODD, ids=repr)
def test_a_count_that_is_none_costs_no_reply(count: Any) -> None:
    more = {"usage": {"prompt_tokens": count, "completion_tokens": 3, "total_tokens": 3}}
    with answering(lambda path: Said(headers=EVENTS, pieces=lambda: [piece("openai", "Hello", **more)])) as server:
        assert stream(CLIENTS["openai"](server.url)) == ["Hello", Usage(1, 0, 3, ended=NO_END)]


# --- where it must not be caught --------------------------------------------------------------------------------------


@pytest.fixture
def sound() -> Iterator[Asked]:
    with answering(lambda path: Said(headers=JSON, pieces=lambda: [whole("ollama", "Hello")])) as server:
        yield server


@pytest.mark.parametrize("call", [ask, stream])
def test_a_bug_of_ours_while_a_reply_is_read_is_let_through(
    call: Callable[[ServerModel], object], sound: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place tells it from a client's: a function made in the module whose part it takes."""
    monkeypatch.setattr(http_guard._Bounded, "__aiter__", eval("lambda self: [][1]", vars(http_guard)))
    with pytest.raises(IndexError):
        call(CLIENTS["ollama"](sound.url))
    assert sound.paths.count("/api/chat") == 1


# --- the list of models ---------------------------------------------------------------------------------------------

LISTS = [
    '["yes"]', "null", "{}", '{"models": 5, "data": 5}', "[" * 50_000, "1" * 5000, "", "<html>",
    '{"models": [5], "data": [5]}', '{"models": [{"model": 5}], "data": [{"id": 5}]}',
    '{"models": [{"model": ""}], "data": [{"id": ""}]}',
]  # fmt: skip


@pytest.mark.parametrize("body", LISTS, ids=lambda body: body[:60])
def test_a_list_of_another_shape_is_told_and_never_a_bug(body: str) -> None:
    with answering(lambda path: Said(headers=JSON, pieces=lambda: [body.encode()])) as server:
        for state, hint in (
            (ollama.list_models(server.url), "Check OLLAMA_HOST: "),
            (openai_compatible.list_models(f"{server.url}/v1"), "Check OPENAI_BASE_URL; it usually ends in /v1."),
        ):
            assert (state.reachable, state.models) == (False, ()) and server.url in state.message
            assert state.hint.startswith(hint)

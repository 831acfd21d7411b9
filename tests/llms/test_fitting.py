"""Prompts that fit into what a model reads at once, the reply included, over the wire and with servers that refuse."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from threading import Event
from typing import Any

import pytest

from crag_core.base.errors import PromptTooLong
from crag_core.base.prompts.messages import shipped
from crag_core.base.protocols import Messages, Reply
from crag_core.base.types.knowledge import Excerpt
from crag_core.base.types.steps import Usage
from crag_core.llms import ollama, openai_compatible
from crag_core.llms.client import Call
from crag_core.llms.context_window import (
    ANSWER_TOKENS,
    CONTEXT_WINDOW,
    Capacity,
    describe_length,
    least,
    tokens_in,
    words_of,
)
from crag_core.llms.model import CallLimit, ServerModel
from tests.builders import passage
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer

PROMPTS = shipped()

REAL = (  # as Ollama sends it on from its runner
    '{"error":{"code":400,"message":"request (24530 tokens) exceeds the available context size (8192 tokens), try '
    'increasing it","type":"exceed_context_size_error","n_prompt_tokens":24530,"n_ctx":8192}}'
)
COMPOUND = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen "
LONG = tuple(Excerpt(passage(f"p{n}"), COMPOUND * 300) for n in range(1, 4))
ASKED = PROMPTS.answer("What?", LONG)


class Counting:
    """Reads `reads` tokens, `each` for a letter, and refuses what is longer; counts what it is sent."""

    name = "counting"

    def __init__(self, reads: int, each: float) -> None:
        self.reads, self.each = reads, each
        self.sent: list[int] = []

    def _count(self, messages: Messages) -> int:
        self.sent.append(int(sum(len(text) for _, text in messages) * self.each))
        if self.sent[-1] + ANSWER_TOKENS > self.reads:
            raise PromptTooLong("Too long.")
        return self.sent[-1]

    async def pieces(
        self, messages: Messages, call: Call, schema: dict[str, Any] | None = None
    ) -> AsyncGenerator[Reply, None]:
        counted = self._count(messages)
        call.is_begun = True
        yield Reply("Nine.")
        yield Reply("", Usage(1, counted, 1))


def fitting(model: Any, reads: int | None = None) -> tuple[ServerModel, Capacity]:
    async def told_by_server() -> int | None:
        return reads

    capacity = Capacity()
    return ServerModel(model, CallLimit(1), capacity, told_by_server), capacity


@pytest.mark.parametrize("reads", [2048, 4096, 8192, None])
def test_prompt_and_reply_fit_and_what_is_cut_is_told(reads: int | None) -> None:
    counting = Counting(reads or CONTEXT_WINDOW, 0.4)
    model, capacity = fitting(counting, reads)
    *pieces, usage = model.stream(ASKED, Event())
    assert pieces == ["Nine."] and len(counting.sent) == 1 and isinstance(usage, Usage) and usage.cut > 1000
    assert model.complete(ASKED, Event()).usage.cut > 1000
    short = PROMPTS.judge("What?", "Dogs pay.")
    assert model.complete(short, Event()).usage.cut == 0
    assert tokens_in(capacity.fit(ASKED)[0]) + ANSWER_TOKENS <= (reads or CONTEXT_WINDOW)


@pytest.mark.parametrize(("parameters", "asked"), [("", 8192), ("stop x\nnum_ctx 2048", 2048), ("num_ctx 32768", 8192)])
def test_ollama_is_asked_to_read_what_its_modelfile_says_and_the_prompt_is_cut_to_that(
    parameters: str, asked: int
) -> None:
    with OllamaServer(ScriptedModel(lambda messages: "Nine."), context_length=8192) as server:
        server.parameters = parameters
        model = ollama.model(server.url, MODEL, 5.0, CallLimit(1))
        short = model.complete(PROMPTS.judge("What?", "Dogs pay."), Event())
        long = model.complete(ASKED, Event())
        told = [body["options"]["num_ctx"] for path, body in server.requests if path == "/api/chat"]
    assert told == [asked, asked], "another number would load the model anew"
    assert short.usage.cut == 0 and (long.usage.cut > 35_000) is (asked == 2048)


def test_a_server_that_refuses_a_prompt_is_asked_once_more_with_less() -> None:
    counting = Counting(8192, 3.0)  # many more tokens than the bound says
    model, _ = fitting(counting)
    assert next(iter(model.stream(ASKED, Event()))) == "Nine."
    assert len(counting.sent) == 2 and counting.sent[1] < counting.sent[0]
    whole = Counting(8192, 3.0)
    assert fitting(whole)[0].complete(ASKED, Event()).usage.cut > 1000 and len(whole.sent) == 2
    with pytest.raises(PromptTooLong):
        fitting(Counting(10, 3.0))[0].complete(ASKED, Event())


@pytest.mark.parametrize("raw", [REAL, '{"error":"the input length exceeds the context length"}', "prompt is too long"])
def test_an_error_of_length_is_told_in_plain_words(raw: str) -> None:
    from ollama import ResponseError

    error = ollama.explain(ResponseError(raw, 400), "http://127.0.0.1:11434", "small")
    assert isinstance(error, PromptTooLong) and "{" not in str(error)
    assert "too long for 'small'" in error.message and "longer context" in error.hint
    if raw is REAL:
        assert ": 24,530 tokens, and the model reads 8,192 at once." in error.message


def test_another_error_in_json_is_told_by_its_words() -> None:
    from ollama import ResponseError

    error = ollama.explain(ResponseError('{"error":{"code":500,"message":"out of memory"}}', 500), "http://x", "m")
    assert error is not None and error.message.endswith("failed: out of memory.")
    assert words_of({"error": {"message": {"error": "deep"}}}) == "deep" and words_of("{broken") == "{broken"
    assert describe_length(ValueError("no such thing"), "x", "m") is None


@pytest.mark.parametrize(
    ("entry", "reads"),
    [
        ({"max_model_len": 4096}, 4096),
        ({"meta": {"n_ctx_train": 131072, "n_ctx": 2048}}, 2048),
        ({"context_length": 32768, "loaded_context_length": 4096}, 4096),
        ({"context_length": "many", "meta": []}, None),
        ({"max_model_len": True}, None),
        ({}, None),
    ],
)
def test_what_openai_servers_list_is_read(entry: dict[str, object], reads: int | None) -> None:
    assert openai_compatible.reads_at_once({"data": [{"id": "other"}, {"id": "m", **entry}]}, "m") == reads
    assert openai_compatible.reads_at_once([entry], "m") is None and least(7, None) is None

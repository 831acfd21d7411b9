"""The stand-in servers, proved with the real clients that the application uses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Literal

import httpx
import ollama
import openai
import pytest
from ddgs import DDGS
from ddgs.engines.duckduckgo import Duckduckgo
from ddgs.exceptions import DDGSException, TimeoutException
from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.ollama import Ollama
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field

from tests.stand_ins.duckduckgo_server import BROKEN_PAGE, DuckDuckGoServer, WebResult
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import wait_until
from tests.stand_ins.model_server import ModelServer
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.stand_ins.openai_server import OpenAIServer
from tests.stand_ins.real_model import RealModel

QUESTION = [ChatMessage(role="user", content="Who was Alan Turing?")]
REPLY = "A mathematician, born in London."


class Verdict(BaseModel):
    verdict: Literal["yes", "no"]
    reason: str = Field(max_length=40)


@pytest.fixture
def ollama_server() -> Iterator[OllamaServer]:
    with OllamaServer(ScriptedModel(lambda messages: REPLY)) as server:
        yield server


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    with OpenAIServer(ScriptedModel(lambda messages: REPLY)) as server:
        yield server


def llm_of(server: ModelServer, **options: Any) -> LLM:
    """The LlamaIndex class that belongs to a server, without retries."""
    if isinstance(server, OpenAIServer):
        known = {"model": "smollm2", "api_base": server.api_base, "api_key": "none", "is_chat_model": True}
        return OpenAILike(**known | {"max_retries": 0, "timeout": 10.0} | options)
    known = {"model": MODEL, "base_url": server.url, "context_window": 4096, "request_timeout": 10.0}
    return Ollama(**known | options)


# --- Ollama ---------------------------------------------------------------------------------------------------------


def test_ollama_client_sees_models(ollama_server: OllamaServer) -> None:
    client = ollama.Client(host=ollama_server.url)
    assert httpx.get(ollama_server.url).text == "Ollama is running"
    assert httpx.get(f"{ollama_server.url}/api/version").json() == {"version": ollama_server.version}
    assert [model.model for model in client.list().models] == [MODEL]
    assert client.show(MODEL).modelinfo["llama.context_length"] == 8192
    assert client.ps().models == []
    assert client.generate(MODEL, "Who?", options={"num_ctx": 2048}).response == REPLY
    assert [model.context_length for model in client.ps().models] == [2048]


def test_ollama_names_the_missing_model_as_ollama_does(ollama_server: OllamaServer) -> None:
    client = ollama.Client(host=ollama_server.url)
    with pytest.raises(ollama.ResponseError) as refused:
        client.chat("x", [{"role": "user", "content": "Who?"}])
    assert (refused.value.status_code, refused.value.error) == (404, "model 'x' not found")
    with pytest.raises(ollama.ResponseError, match="model 'x:latest' not found"):
        client.show("x")


def test_ollama_chat_carries_options_and_counts(ollama_server: OllamaServer) -> None:
    llm = llm_of(ollama_server, temperature=0.0, additional_kwargs={"num_predict": 3})
    response = llm.chat(QUESTION)
    assert response.message.content == REPLY[:12]
    assert response.raw["done_reason"] == "length"
    assert response.raw["usage"] == {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7}
    path, body = ollama_server.requests[-1]
    assert (path, body["stream"], ollama_server.chat_calls) == ("/api/chat", False, 1)
    assert body["options"] == {"temperature": 0.0, "num_ctx": 4096, "num_predict": 3}


def test_scripted_replies_come_in_turn_and_run_out(ollama_server: OllamaServer) -> None:
    ollama_server.engine = ScriptedModel(["one", {"verdict": "no", "reason": "far"}])
    llm = llm_of(ollama_server)
    assert llm.chat(QUESTION).message.content == "one"
    verdict = llm.structured_predict(Verdict, PromptTemplate("Is {city} in France?"), city="London")
    assert verdict == Verdict(verdict="no", reason="far")
    assert ollama_server.requests[-1][1]["format"] == Verdict.model_json_schema()
    with pytest.raises(ollama.ResponseError, match="found the queue empty"):
        llm.chat(QUESTION)


# --- both model servers ---------------------------------------------------------------------------------------------


@pytest.fixture(params=["ollama", "openai"])
def server(request: pytest.FixtureRequest) -> ModelServer:
    return request.getfixturevalue(f"{request.param}_server")


def stream(llm: LLM) -> list[str]:
    return [chunk.delta or "" for chunk in llm.stream_chat(QUESTION)]


def test_reply_is_streamed_in_pieces(server: ModelServer) -> None:
    async def read() -> list[str]:
        return [chunk.delta or "" async for chunk in await llm_of(server).astream_chat(QUESTION)]

    deltas = asyncio.run(read())
    assert "".join(deltas) == REPLY
    assert server.pieces_sent == server.engine.pieces_written == len([delta for delta in deltas if delta]) == 8
    assert (server.chat_calls, server.disconnects) == (1, 0)


SYNC_FAULTS: list[tuple[dict[str, Any], type[Exception], type[Exception]]] = [
    # the fault, what Ollama's client makes of it, what OpenAI's does
    ({"status": 500}, ollama.ResponseError, openai.InternalServerError),
    ({"status": 429}, ollama.ResponseError, openai.RateLimitError),
    ({"die_after": 0}, httpx.RemoteProtocolError, openai.APIConnectionError),
    ({"die_after": 2}, httpx.RemoteProtocolError, httpx.RemoteProtocolError),
    ({"broken_after": 2}, json.JSONDecodeError, json.JSONDecodeError),
    ({"error_after": 2}, ollama.ResponseError, openai.APIError),
]


@pytest.mark.parametrize(("fault", "of_ollama", "of_openai"), SYNC_FAULTS, ids=lambda value: str(value))
def test_fault_in_a_stream(
    server: ModelServer, fault: dict[str, Any], of_ollama: type[Exception], of_openai: type[Exception]
) -> None:
    for name, value in fault.items():
        setattr(server.faults, name, value)
    with pytest.raises(of_openai if isinstance(server, OpenAIServer) else of_ollama):
        stream(llm_of(server))
    server.faults.clear()
    assert "".join(stream(llm_of(server))) == REPLY
    assert (server.chat_calls, server.disconnects) == (2, 0)


def test_silence_before_the_first_byte_times_out(server: ModelServer) -> None:
    server.faults.delay_s = 5.0
    is_openai = isinstance(server, OpenAIServer)
    llm = llm_of(server, **{"timeout" if is_openai else "request_timeout": 0.1})
    with pytest.raises(openai.APITimeoutError if is_openai else httpx.ReadTimeout):
        llm.chat(QUESTION)
    assert server.wait_for_disconnects()
    assert server.engine.asks == []


def test_stopped_server_refuses_and_comes_back_on_its_port(server: ModelServer) -> None:
    llm, url = llm_of(server), server.url
    server.stop()
    with pytest.raises(openai.APIConnectionError if isinstance(server, OpenAIServer) else ConnectionError):
        llm.chat(QUESTION)
    server.start()
    assert server.url == url
    assert llm.chat(QUESTION).message.content == REPLY


async def read_all(llm: LLM) -> None:
    async for _ in await llm.astream_chat(QUESTION):
        pass


async def read_once(llm: LLM) -> None:
    await llm.achat(QUESTION)


@pytest.mark.parametrize("read", [read_all, read_once])
@pytest.mark.parametrize("moment", ["before the first token", "in mid-stream"])
def test_cancelled_task_closes_the_connection(
    server: ModelServer, read: Callable[[LLM], Awaitable[None]], moment: str
) -> None:
    engine = server.engine = ScriptedModel(lambda messages: "word " * 200, piece_chars=5, delay_s=0.02)
    if moment == "before the first token":
        server.faults.delay_s = 10.0

    def is_time() -> bool:
        return engine.pieces_written >= 3 or (server.faults.delay_s > 0 and server.active == 1)

    async def cancel() -> None:
        task = asyncio.ensure_future(read(llm_of(server)))
        assert await asyncio.to_thread(wait_until, is_time, 2.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.wait_for_disconnects)
        written = engine.pieces_written
        await asyncio.sleep(0.1)
        assert engine.pieces_written == written < 200

    asyncio.run(cancel())
    assert wait_until(lambda: server.active == 0, 1.0)
    assert server.disconnects == 1


def test_closed_stream_closes_the_connection(ollama_server: OllamaServer) -> None:
    ollama_server.engine = ScriptedModel(lambda messages: "word " * 200, piece_chars=5, delay_s=0.02)
    chunks = llm_of(ollama_server).stream_chat(QUESTION)
    next(chunks)
    chunks.close()
    assert ollama_server.wait_for_disconnects()


# --- OpenAI ---------------------------------------------------------------------------------------------------------


def test_openai_lists_models_and_knows_no_other(openai_server: OpenAIServer) -> None:
    client = openai.OpenAI(base_url=openai_server.api_base, api_key="none")
    assert [model.id for model in client.models.list()] == ["smollm2"]
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        llm_of(openai_server, model="x").chat(QUESTION)


def test_openai_counts_tokens_in_a_stream_only_if_asked(openai_server: OpenAIServer) -> None:
    assert llm_of(openai_server).chat(QUESTION).raw.usage.completion_tokens == 8
    assert list(llm_of(openai_server).stream_chat(QUESTION))[-1].raw.usage is None
    asked = list(llm_of(openai_server).stream_chat(QUESTION, stream_options={"include_usage": True}))
    assert asked[-1].raw.usage.completion_tokens == 8


def test_openai_schema_reaches_the_engine(openai_server: OpenAIServer) -> None:
    engine = openai_server.engine = ScriptedModel([{"verdict": "no", "reason": "far"}])
    llm = llm_of(openai_server, should_use_structured_outputs=True)
    assert llm.structured_predict(Verdict, PromptTemplate("Is London in France?")).verdict == "no"
    assert set(engine.asks[0].schema["properties"]) == {"verdict", "reason"}


# --- DuckDuckGo -----------------------------------------------------------------------------------------------------


FOUND = [
    WebResult("Alan Turing", "https://example.org/turing?a=1&b=2", "Born in 1912 & <raised> in England."),
    WebResult("Advertisement", "https://duckduckgo.com/y.js?ad=1", "Buy now."),
    WebResult("Enigma", "https://example.org/enigma", "A machine."),
]


@pytest.fixture
def duckduckgo() -> Iterator[DuckDuckGoServer]:
    with DuckDuckGoServer(FOUND) as server:
        yield server


def search(timeout_s: float = 5.0) -> list[dict[str, Any]]:
    return DDGS(timeout=timeout_s).text("alan turing", backend="duckduckgo", max_results=5)


def test_ddgs_reads_results_and_drops_advertisements(duckduckgo: DuckDuckGoServer) -> None:
    first, second = search()
    assert first["href"] == FOUND[0].url
    assert first["title"] == FOUND[0].title
    assert "Born in 1912 &" in first["body"]
    assert second["href"] == FOUND[2].url
    assert duckduckgo.queries == ["alan turing"]


def test_ddgs_results_may_depend_on_the_query(duckduckgo: DuckDuckGoServer) -> None:
    duckduckgo.results = lambda query: [WebResult(query.upper(), "https://example.org/", "")]
    assert search()[0]["title"] == "ALAN TURING"


@pytest.mark.parametrize("status", [202, 403, 429, 500])
def test_ddgs_cannot_tell_a_refusal_from_nothing_found(duckduckgo: DuckDuckGoServer, status: int) -> None:
    duckduckgo.status = status
    with pytest.raises(DDGSException) as refused:
        search()
    duckduckgo.status, duckduckgo.results = 200, ()
    with pytest.raises(DDGSException) as empty:
        search()
    assert type(refused.value) is type(empty.value) is DDGSException
    assert str(refused.value) == str(empty.value) == "No results found."


def test_ddgs_makes_an_empty_result_of_a_broken_page(duckduckgo: DuckDuckGoServer) -> None:
    duckduckgo.page = BROKEN_PAGE
    assert search() == [{"title": "", "href": "", "body": ""}]


def test_ddgs_times_out(duckduckgo: DuckDuckGoServer) -> None:
    duckduckgo.delay_s = 5.0
    with pytest.raises(TimeoutException):
        search(timeout_s=0.2)


def test_ddgs_is_refused_until_the_server_is_back(duckduckgo: DuckDuckGoServer) -> None:
    duckduckgo.stop()
    with pytest.raises(DDGSException, match="Connection refused"):
        search()
    duckduckgo.start()
    assert len(search()) == 2


def test_seam_is_closed_afterwards() -> None:
    before = Duckduckgo.search_url
    with DuckDuckGoServer() as server:
        assert Duckduckgo.search_url == f"{server.url}/html/"
    assert Duckduckgo.search_url == before


# --- the real model -------------------------------------------------------------------------------------------------


@pytest.mark.model
def test_real_model_behind_both_wires() -> None:
    engine = RealModel()
    with OllamaServer(engine) as ollama_server, OpenAIServer(engine) as openai_server:
        llm = llm_of(ollama_server, request_timeout=120.0, additional_kwargs={"num_predict": 12})
        response = llm.chat(QUESTION)
        assert response.message.content
        assert response.raw["usage"]["completion_tokens"] == 12
        assert response.raw["eval_duration"] > 0

        like = llm_of(openai_server, timeout=120.0, should_use_structured_outputs=True)
        assert like.structured_predict(Verdict, PromptTemplate("Is Paris in France?")).verdict in ("yes", "no")

        chunks = llm_of(ollama_server, request_timeout=120.0).stream_chat(QUESTION)
        deltas = [next(chunks).delta for _ in range(5)]
        chunks.close()
        assert all(deltas)
        assert ollama_server.wait_for_disconnects()
        written = engine.pieces_written
        # The token that was being computed may still come.
        assert not wait_until(lambda: engine.pieces_written > written + 1, 0.3)

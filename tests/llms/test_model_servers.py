"""Looking for models: what is said of a server that is there, empty, something else, or away."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from crag_core.llms import ollama, openai_compatible
from crag_core.llms.servers import MOST_MODELS, host_url
from tests.stand_ins import ollama_server as ollama_wire
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import LocalServer
from tests.stand_ins.ollama_server import OllamaServer
from tests.stand_ins.openai_server import OpenAIServer

# --- where Ollama is ------------------------------------------------------------------------------------------------

HOSTS = [
    ("", "http://127.0.0.1:11434"),
    ("box", "http://box:11434"),
    ("box:1234", "http://box:1234"),
    ("192.168.0.7", "http://192.168.0.7:11434"),
    ("0.0.0.0", "http://127.0.0.1:11434"),
    (":8080", "http://127.0.0.1:8080"),
    ("http://box:1234", "http://box:1234"),
    ("https://box:8443", "https://box:8443"),
    ("https://box/ollama", "https://box:443/ollama"),
    ("https://box:8443/a/b/", "https://box:8443/a/b"),
    ("[::1]", "http://[::1]:11434"),
]


@pytest.mark.parametrize(("value", "url"), HOSTS, ids=repr)
def test_host_url_makes_an_address_of_what_people_write(value: str, url: str) -> None:
    assert host_url(value) == url
    assert host_url(url) == url, "reading it again changes nothing"


# --- Ollama ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def ollama_server() -> Iterator[OllamaServer]:
    with OllamaServer(ScriptedModel([]), models=["llama3.2", "qwen:7b"]) as server:
        yield server


def test_ollama_without_models_says_how_to_get_one(ollama_server: OllamaServer) -> None:
    ollama_server.models = []
    state = ollama.list_models(ollama_server.url)
    assert (state.reachable, state.models) == (True, ())
    assert "no model yet" in state.message and "ollama pull" in state.hint


def test_embedding_models_are_not_offered(ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    ollama_server.models = ["embeddinggemma:latest", "llama3.2:latest"]
    state = ollama.list_models(ollama_server.url)
    assert state.models == ("llama3.2:latest",) and len(state.versions) == 2
    monkeypatch.setitem(ollama_wire.DETAILS, "family", "nomic-bert")
    state = ollama.list_models(ollama_server.url)
    assert state.reachable and state.models == () and "no model that writes" in state.message


def test_a_model_that_can_chat_is_offered_before_one_that_cannot(ollama_server: OllamaServer) -> None:
    ollama_server.base_models = {ollama.list_models(ollama_server.url).models[0]}
    ollama._CHATS.clear()
    assert ollama.list_models(ollama_server.url).models == ("qwen:7b", "llama3.2:latest")
    can = [ollama.chats(ollama_server.url, name) for name in ("qwen:7b", "llama3.2")]
    assert can == [True, False]


class Something(LocalServer):
    """Answers every list of models with one response."""

    def __init__(self, response: Response) -> None:
        async def answer(body: object) -> ASGIApp:
            return response

        super().__init__({("GET", "/api/tags"): answer, ("GET", "/v1/models"): answer})


# --- OpenAI-compatible ----------------------------------------------------------------------------------------------


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    with OpenAIServer(ScriptedModel([]), models=["one", "two"]) as server:
        yield server


def test_openai_key_is_sent_and_never_shown() -> None:
    seen: list[str] = []

    class Keyed(Something):
        def __init__(self) -> None:
            super().__init__(JSONResponse({"data": [{"id": "one"}]}))
            application = self._app

            async def watched(scope, receive, send):  # type: ignore[no-untyped-def]
                seen.extend(value.decode() for name, value in scope.get("headers", ()) if name == b"authorization")
                await application(scope, receive, send)

            self._app = watched  # type: ignore[assignment]

    with Keyed() as server:
        state = openai_compatible.list_models(f"{server.url}/v1", "s3cret")
        openai_compatible.list_models(f"{server.url}/v1")
    assert seen == ["Bearer s3cret"]
    assert state.reachable and "s3cret" not in repr(state)


def test_an_entry_without_a_name_is_left_out_and_of_very_many_the_first_are_offered() -> None:
    odd = [{}, {"id": 7, "model": 7}, "x", [], {"id": "a\ud800", "model": "a\ud800"}, {"id": "a\nb", "model": "a\nb"}]
    one = {"id": "one", "model": "one"}
    listed = json.dumps({"data": [*odd, one, one], "models": [*odd, one | {"size": "x"}, one, one]})
    with Something(Response(listed)) as server:
        states = [openai_compatible.list_models(f"{server.url}/v1"), ollama.list_models(server.url)]
    assert [(state.reachable, state.models, state.message) for state in states] == [(True, ("one",), "")] * 2
    with Something(JSONResponse({"data": [{"id": f"m{n}"} for n in range(MOST_MODELS + 1)]})) as server:
        state = openai_compatible.list_models(f"{server.url}/v1")
    assert len(state.models) == MOST_MODELS and state.message.endswith("lists 501 models; the first 500 are offered.")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "no address at all", "http://[::1:5"])
def test_openai_that_is_away_or_no_address_is_told_not_raised(url: str) -> None:
    state = openai_compatible.list_models(url)
    assert not state.reachable and state.message and state.hint


def test_address_is_told_without_what_may_be_secret() -> None:
    with Something(JSONResponse({"error": "no"}, 401)) as server:
        secret = server.url.replace("http://", "http://me:s3cret@")
        states = [openai_compatible.list_models(f"{secret}/v1"), ollama.list_models(secret)]
    states += [openai_compatible.list_models(f"{secret}/v1"), ollama.list_models(secret)]  # now nothing answers there
    for state in states:
        assert server.url in state.message and "s3cret" not in repr(state)

"""A local Ollama server: what it has, and a model of it."""

from __future__ import annotations

import json

from crag_core.errors import CragError, ModelMissing, ModelUnavailable
from crag_core.llama_import import import_llama_index
from crag_core.llms.model import LlamaIndexModel, is_of_request
from crag_core.llms.ollama_import import import_ollama
from crag_core.model_servers import ServerState, shown

CONTEXT_WINDOW = 8192
ANSWER_TOKENS = 768


def look(host: str, timeout: float = 2.0) -> ServerState:
    """Ask the server for its models; never raises for a server that is away."""
    import httpx

    import_ollama()
    from ollama import Client, ResponseError

    called = shown(host)
    try:
        listed = Client(host=host, timeout=timeout).list().models
    except (ConnectionError, OSError, httpx.HTTPError, httpx.InvalidURL):
        return silent(host)
    except (ResponseError, ValueError, TypeError):
        return ServerState(False, (), f"What answers at {called} is not Ollama.", "Check OLLAMA_HOST.")
    chat_models = tuple(
        item.model for item in listed if item.model and "bert" not in ((item.details and item.details.family) or "")
    )
    if not chat_models:
        return ServerState(True, (), f"Ollama at {called} has no model yet.", "Get one with: ollama pull llama3.2")
    return ServerState(True, chat_models)


def silent(host: str) -> ServerState:
    return ServerState(False, (), f"Ollama does not answer at {shown(host)}.", "Start it with: ollama serve")


def model(host: str, name: str, timeout: float, at_once: int) -> LlamaIndexModel:
    """A chat model of the server at `host`; `timeout` in seconds for one reply, generous since CPUs are slow."""
    import_llama_index()
    import_ollama()
    from llama_index.llms.ollama import Ollama

    llm = Ollama(
        model=name,
        base_url=host,
        request_timeout=timeout,
        context_window=CONTEXT_WINDOW,
        temperature=0.0,
        thinking=False,
        additional_kwargs={"num_predict": ANSWER_TOKENS},
    )
    return LlamaIndexModel(
        llm,
        name,
        explain=lambda error: explain(error, host, name, timeout),
        structured=lambda schema: {"format": schema},
        at_once=at_once,
    )


def explain(error: Exception, host: str, name: str, timeout: float) -> CragError | None:
    import httpx
    from ollama import ResponseError

    called = shown(host)
    if isinstance(error, ResponseError) and error.status_code == 404:
        return ModelMissing(
            f"Ollama at {called} does not have the model {name!r}.", hint=f"Get it with: ollama pull {name}"
        )
    if isinstance(error, ResponseError):
        told = f"Ollama at {called} failed: {error.error}."
        refused = is_of_request(error.status_code)
        return ModelUnavailable(told, hint="See the log of ollama serve.", is_of_request=refused)
    if isinstance(error, httpx.TimeoutException):
        return ModelUnavailable(
            f"Ollama at {called} took longer than {timeout:.0f} s with {name!r}.", hint="Choose a smaller model."
        )
    if isinstance(error, ConnectionError | OSError | httpx.HTTPError):
        return ModelUnavailable(f"Ollama at {called} does not answer or went away.", hint="Start it with: ollama serve")
    if isinstance(error, json.JSONDecodeError):
        return ModelUnavailable(
            f"What answers at {called} does not speak Ollama's protocol.", hint="Check OLLAMA_HOST."
        )
    return None

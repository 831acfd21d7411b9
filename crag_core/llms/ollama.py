"""A local Ollama server: what it has, and a model of it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from crag_core.errors import CragError, ModelMissing, ModelUnavailable
from crag_core.llama_import import import_llama_index
from crag_core.llms.model import LlamaIndexModel

DEFAULT_HOST = "http://127.0.0.1:11434"
_EVERY_ADDRESS = ("", "0.0.0.0", "[::]")  # fit to listen on, not to connect to
CONTEXT_WINDOW = 8192
ANSWER_TOKENS = 768


@dataclass(frozen=True)
class ServerState:
    """Whether a model server answers, and the chat models it has; `message` and `hint` say what is wrong."""

    reachable: bool
    models: tuple[str, ...] = ()
    message: str = ""
    hint: str = ""


def host_url(value: str | None) -> str:
    """A usable URL from what people put into OLLAMA_HOST: a bare host, host:port, or the listen address 0.0.0.0."""
    text = (value or "").strip().rstrip("/") or DEFAULT_HOST
    if "://" not in text:
        text = f"http://{text}"
    scheme, _, rest = text.partition("://")
    address, slash, path = rest.partition("/")
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        host, port = address, "11434" if scheme == "http" else "443"
    return f"{scheme}://{'127.0.0.1' if host in _EVERY_ADDRESS else host}:{port}{slash}{path}"


def look(host: str, timeout: float = 2.0) -> ServerState:
    """Ask the server for its models; never raises for a server that is away."""
    import httpx
    from ollama import Client, ResponseError

    try:
        listed = Client(host=host, timeout=timeout).list().models
    except (ConnectionError, OSError, httpx.HTTPError, httpx.InvalidURL):
        return ServerState(False, (), f"Ollama does not answer at {host}.", "Start it with: ollama serve")
    except (ResponseError, ValueError, TypeError):
        return ServerState(False, (), f"What answers at {host} is not Ollama.", "Check OLLAMA_HOST.")
    chat_models = tuple(
        item.model for item in listed if item.model and "bert" not in ((item.details and item.details.family) or "")
    )
    if not chat_models:
        return ServerState(True, (), f"Ollama at {host} has no model yet.", "Get one with: ollama pull llama3.2")
    return ServerState(True, chat_models)


def model(host: str, name: str, timeout: float, at_once: int) -> LlamaIndexModel:
    """A chat model of the server at `host`; `timeout` in seconds for one reply, generous since CPUs are slow."""
    import_llama_index()
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

    if isinstance(error, ResponseError) and error.status_code == 404:
        return ModelMissing(
            f"Ollama at {host} does not have the model {name!r}.", hint=f"Get it with: ollama pull {name}"
        )
    if isinstance(error, ResponseError):
        return ModelUnavailable(f"Ollama at {host} failed: {error.error}.", hint="See the log of ollama serve.")
    if isinstance(error, httpx.TimeoutException):
        return ModelUnavailable(
            f"Ollama at {host} took longer than {timeout:.0f} s with {name!r}.", hint="Choose a smaller model."
        )
    if isinstance(error, ConnectionError | OSError | httpx.HTTPError):
        return ModelUnavailable(f"Ollama at {host} does not answer or went away.", hint="Start it with: ollama serve")
    if isinstance(error, json.JSONDecodeError):
        return ModelUnavailable(f"What answers at {host} does not speak Ollama's protocol.", hint="Check OLLAMA_HOST.")
    return None

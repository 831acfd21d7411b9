"""A local Ollama server: what it has, and a model of it."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from crag_core.errors import CragError, ModelMissing, ModelUnavailable
from crag_core.llama_import import import_llama_index
from crag_core.llms.capacity import ANSWER_TOKENS, CONTEXT_WINDOW, capacity_of, least, length_told, words_of
from crag_core.llms.fitting import Fitting
from crag_core.llms.model import LlamaIndexModel, is_of_request
from crag_core.llms.ollama_import import import_ollama
from crag_core.llms.served import Served, alone
from crag_core.llms.shape import WrongShape, note_reply
from crag_core.model_servers import ServerState, ollama_urls, shown, without_login

VERSION_SIGNS = 12  # of the digest, as `ollama list` shows them
LOOKING = 3.0
"""Seconds in which a server has to have told all its models."""
_LONGEST = 300  # characters of what the server says of a failure
PATIENCE = 10
"""A reply may take so many times what is waited for one piece of it: slow machines write slowly, but not for ever."""


def _bounds(host: str, limit: int, seconds: float, *, is_async: bool) -> dict[str, Any]:
    """As always; and OLLAMA_API_KEY, which the client sends to anybody, only for the host of OLLAMA_HOST.

    A name and password in `host` are sent too, which the client leaves out.
    """
    import httpx

    from crag_core import outgoing

    def keep_key(request: httpx.Request) -> None:
        own = {httpx.URL(url).host for url in ollama_urls(os.environ.get("OLLAMA_HOST", ""))}
        key = os.environ.get("OLLAMA_API_KEY")
        if key and request.url.host not in own and request.headers.get("authorization") == f"Bearer {key}":
            del request.headers["authorization"]

    async def keep_key_async(request: httpx.Request) -> None:
        keep_key(request)

    bounds = (outgoing.async_hooks if is_async else outgoing.hooks)(limit, seconds)
    bounds["event_hooks"]["request"].append(keep_key_async if is_async else keep_key)
    return bounds | {"auth": without_login(host)[1]}


def look(host: str, timeout: float = 2.0) -> ServerState:
    """Ask the server for its models; never raises for a server that is away."""
    import httpx

    import_ollama()
    from ollama import Client, ResponseError

    from crag_core import outgoing

    called = shown(host)
    bounds = _bounds(host, outgoing.LARGEST_LIST, LOOKING, is_async=False)
    try:
        listed = Client(host=host, timeout=timeout, **bounds).list().models
    except outgoing.NotAsked as error:
        return ServerState(False, (), f"What answers at {called} {error}.", "Check OLLAMA_HOST.")
    except (ConnectionError, OSError, httpx.HTTPError, httpx.InvalidURL):
        return silent(host)
    except (ResponseError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return ServerState(False, (), f"What answers at {called} is not Ollama.", "Check OLLAMA_HOST.")
    chat_models = tuple(
        item.model for item in listed if item.model and "bert" not in ((item.details and item.details.family) or "")
    )
    if not chat_models:
        return ServerState(True, (), f"Ollama at {called} has no model yet.", "Get one with: ollama pull llama3.2")
    versions = tuple((item.model, item.digest[:VERSION_SIGNS]) for item in listed if item.model and item.digest)
    return ServerState(True, chat_models, versions=versions)


def silent(host: str) -> ServerState:
    return ServerState(False, (), f"Ollama does not answer at {shown(host)}.", "Start it with: ollama serve")


def model(host: str, name: str, timeout: float, at_once: int) -> Served:
    """As `client`, with at most `at_once` calls under way; for one who is the only one to ask there."""
    return alone(client(host, name, timeout), host, at_once)


def client(host: str, name: str, timeout: float) -> Fitting:
    """A chat model of the server at `host`; `timeout` in seconds for one reply, generous since CPUs are slow."""
    import_llama_index()
    import_ollama()
    from llama_index.llms.ollama import Ollama
    from ollama import AsyncClient

    from crag_core import outgoing

    bounds = _bounds(host, outgoing.LARGEST_REPLY, PATIENCE * timeout, is_async=True)
    bounds["event_hooks"]["response"].append(note_reply)
    llm = Ollama(
        model=name,
        base_url=host,
        request_timeout=timeout,
        context_window=CONTEXT_WINDOW,
        temperature=0.0,
        thinking=False,
        async_client=AsyncClient(host=host, timeout=timeout, **bounds),
        additional_kwargs={"num_predict": ANSWER_TOKENS},
    )
    made = LlamaIndexModel(
        llm,
        name,
        explain=lambda error: explain(error, host, name, timeout),
        structured=lambda schema: {"format": schema},
        longest=PATIENCE * timeout,
    )

    async def reads() -> int | None:
        shown = await llm.async_client.show(name)
        known = [value for key, value in (shown.modelinfo or {}).items() if key.endswith(".context_length")]
        asked = re.search(r"^num_ctx\s+(\d{1,9})\s*$", shown.parameters or "", re.MULTILINE)
        return least(*known, int(asked[1]) if asked else None)

    return Fitting(made, capacity_of(host, name), reads)


def explain(error: Exception, host: str, name: str, timeout: float) -> CragError | None:
    import httpx
    from ollama import ResponseError

    from crag_core.outgoing import refusal_in

    called = shown(host)
    if why := refusal_in(error):
        return ModelUnavailable(f"What answers at {called} {why}.", hint="Check OLLAMA_HOST.")
    if isinstance(error, ResponseError) and (too_long := length_told(error, called, name)):
        return too_long
    if isinstance(error, ResponseError) and error.status_code == 404:
        return ModelMissing(
            f"Ollama at {called} does not have the model {name!r}.", hint=f"Get it with: ollama pull {name}"
        )
    if isinstance(error, ResponseError):
        failed = f"Ollama at {called} failed: {words_of(error.error)[:_LONGEST]}."
        refused = is_of_request(error.status_code)
        return ModelUnavailable(failed, hint="See the log of ollama serve.", is_of_request=refused)
    if isinstance(error, httpx.TimeoutException):
        return ModelUnavailable(
            f"Ollama at {called} took longer than {timeout:.0f} s with {name!r}.", hint="Choose a smaller model."
        )
    if isinstance(error, TimeoutError):
        return ModelUnavailable(
            f"The reply of Ollama at {called} took longer than {PATIENCE * timeout:g} s in all with {name!r}.",
            hint="Choose a smaller model.",
        )
    if isinstance(error, ConnectionError | OSError | httpx.HTTPError):
        return ModelUnavailable(f"Ollama at {called} does not answer or went away.", hint="Start it with: ollama serve")
    found = error.found if isinstance(error, WrongShape) else "no JSON"
    if isinstance(error, WrongShape | json.JSONDecodeError):
        wrong = f"expected an object with a message, found {found}"
        return ModelUnavailable(
            f"What answers at {called} does not speak Ollama's protocol: {wrong}.", hint="Check OLLAMA_HOST."
        )
    return None

"""A local Ollama server: what it has, and a model of it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from crag_core.base.concurrency.cancellation import run
from crag_core.base.errors import CragError, ModelMissing, ModelUnavailable
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.base.network.addresses import without_login
from crag_core.llms.client import LlamaIndexClient, timeouts_of
from crag_core.llms.context_window import ANSWER_TOKENS, CONTEXT_WINDOW, capacity_of, describe_length, least, words_of
from crag_core.llms.first_token import TOP
from crag_core.llms.model import CallLimit, ServerModel
from crag_core.llms.model_list import ask_json, list_entries
from crag_core.llms.reply_errors import explain_call, part
from crag_core.llms.servers import MOST_MODELS, ServerState, ollama_url, shown, too_many

VERSION_SIGNS = 12  # of the digest, as `ollama list` shows them
_CHECK = "Check OLLAMA_HOST: scheme, host and port, such as http://localhost:11434."
_START = "Start it with: ollama serve"
_SHOWING = 1.0
"""Seconds in which the models say whether they can chat; who has not said so by then is asked at the next look."""
_CHATS: dict[tuple[str, str, str], bool] = {}
"""Whether a model, by server, name and digest, has a template for chats, as base models do not."""
_NO_CHAT = "{{ .Prompt }}"
_LONGEST = 300  # characters of what the server says of a failure


def _own_key(host: str) -> str:
    """OLLAMA_API_KEY, where `host` is that of OLLAMA_HOST: nobody else gets it."""
    own = ollama_url(os.environ.get("OLLAMA_HOST", "").strip())
    is_own = urlsplit(host).hostname == urlsplit(own).hostname
    return os.environ.get("OLLAMA_API_KEY", "") if is_own else ""


def list_models(host: str) -> ServerState:
    """Ask the server for its models; never raises for a server that is away."""
    called = shown(host)
    url = f"{host.rstrip('/')}/api/tags"
    try:
        listed = list_entries(url, _own_key(host), where=("models", "model"), check=_CHECK, start=_START)
    except ModelUnavailable as error:
        return ServerState(False, (), error.message, error.hint)
    if not listed:
        return ServerState(True, (), f"Ollama at {called} has no model yet.", "Get one with: ollama pull llama3.2")
    digests = ((name, part(entry, "digest")) for name, entry in listed.items())
    versions = tuple((name, digest[:VERSION_SIGNS]) for name, digest in digests if isinstance(digest, str))
    writers = [name for name, entry in listed.items() if not _embeds(name, entry)]
    keys = {name: (host, name, digest) for name, digest in versions}
    run(_learn_chats([key for name in writers if (key := keys.get(name)) and key not in _CHATS][:MOST_MODELS]))
    writers.sort(key=lambda name: not _CHATS.get(keys.get(name, ("", "", "")), True))  # the first is the default
    if not writers:
        none = f"Ollama at {called} has no model that writes."
        return ServerState(True, (), none, "Get one with: ollama pull llama3.2", versions=versions)
    return ServerState(True, tuple(writers[:MOST_MODELS]), too_many(called, len(writers)), versions=versions)


def chats(host: str, name: str) -> bool:
    """False for a model that has no template for chats, as far as the last look at its server told."""
    return all(can for (of, model, _), can in _CHATS.items() if of == host and model in (name, f"{name}:latest"))


async def _learn_chats(keys: Sequence[tuple[str, str, str]]) -> None:
    at_once = asyncio.Semaphore(8)

    async def learn(key: tuple[str, str, str]) -> None:
        with suppress(Exception):  # the list stands without it
            async with at_once:
                about = await ask_json(f"{key[0].rstrip('/')}/api/show", _own_key(key[0]), _SHOWING, {"model": key[1]})
            _CHATS[key] = str(part(about, "template")).strip() != _NO_CHAT

    with suppress(TimeoutError):
        async with asyncio.timeout(_SHOWING):
            await asyncio.gather(*map(learn, keys))


def _embeds(name: str, entry: dict[str, Any]) -> bool:
    """The list does not say what a model can do: embedding models are told by their name or family."""
    family = part(part(entry, "details"), "family")
    return "embed" in name or "bert" in (family if isinstance(family, str) else "")


def model(host: str, name: str, timeout: float, limit: CallLimit) -> ServerModel:
    """A chat model of the server at `host`; `timeout` in seconds of silence in a reply; CPUs are slow."""
    import_llama_index()
    import httpx
    from llama_index.llms import ollama as of_llama_index
    from ollama import AsyncClient

    from crag_core.base.network import http_guard

    async def keep_key(request: httpx.Request) -> None:
        """The client sends OLLAMA_API_KEY to anybody."""
        key = os.environ.get("OLLAMA_API_KEY")
        if key and not _own_key(host) and request.headers.get("authorization") == f"Bearer {key}":
            del request.headers["authorization"]

    waits = timeouts_of(timeout)
    bounds = http_guard.hooks(http_guard.LARGEST_REPLY, waits.total)
    bounds["event_hooks"]["request"].append(keep_key)
    # A name and password in `host` are sent too, which the client leaves out. How long a reply may be silent is watched
    # where its pieces are read.
    login = without_login(host)[1]
    server = AsyncClient(host=host, timeout=httpx.Timeout(timeout, read=None), auth=login, **bounds)
    capacity = capacity_of(host, name)

    class Ollama(of_llama_index.Ollama):
        def get_context_window(self) -> int:
            return capacity.window

    llm = Ollama(
        model=name,
        base_url=host,
        request_timeout=timeout,
        temperature=0.0,
        thinking=False,
        async_client=server,  # type: ignore[call-arg]  # its base takes it
        additional_kwargs={"num_predict": ANSWER_TOKENS},
    )

    async def first(messages: list[dict[str, str]]) -> object:
        """By Ollama's own client, since LlamaIndex's drops what it does not know. Other options would load it anew."""
        return await server.chat(
            name, messages, think=False, logprobs=True, top_logprobs=TOP, keep_alive=llm.keep_alive,
            options={"temperature": 0.0, "num_ctx": capacity.window, "num_predict": 1},
        )  # fmt: skip

    made = LlamaIndexClient(
        llm,
        name,
        explain=lambda error: explain(error, host, name),
        structured=lambda schema: {"format": schema},
        timeouts=waits,
        first=first,
        no_probabilities=(
            f"Ollama at {shown(host)} sends no log probabilities with its replies.",
            "Update it to 0.12.11 or later, or choose another evaluator.",
        ),
    )

    async def context_length() -> int | None:
        """As its Modelfile has it (`num_ctx`), as long as the model can."""
        about = await server.show(name)
        known = [value for key, value in (about.modelinfo or {}).items() if key.endswith(".context_length")]
        asked = re.search(r"^num_ctx\s+(\d{1,9})\s*$", about.parameters or "", re.MULTILINE)
        return least(*known, int(asked[1]) if asked else CONTEXT_WINDOW)

    return ServerModel(made, limit, capacity, context_length, asked_from=0)


def explain(error: Exception, host: str, name: str) -> CragError | None:
    from ollama import ResponseError

    called = f"Ollama at {shown(host)}"
    if isinstance(error, ResponseError):
        said = words_of(error.error)[:_LONGEST]
        if too_long := describe_length(error, shown(host), name):
            return too_long
        if error.status_code == 404 and "model" in said:
            return ModelMissing(f"{called} does not have the model {name!r}.", hint=f"Get it with: ollama pull {name}")
        hint = _CHECK if error.status_code in (404, 405) else "See the log of ollama serve."
        return ModelUnavailable(f"{called} failed: {said}.", hint=hint)
    expected = "Ollama's protocol: expected an object with a message"
    return explain_call(error, called, host, name, expected=expected, check=_CHECK, start=_START)

"""A local Ollama server: what it has, and a model of it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from crag_core.base.concurrency.cancellation import run
from crag_core.base.errors import CragError, ModelMissing, ModelUnavailable
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.base.network.addresses import without_login
from crag_core.llms.client import LlamaIndexClient, Timeouts
from crag_core.llms.context_window import ANSWER_TOKENS, CONTEXT_WINDOW, capacity_of, describe_length, least, words_of
from crag_core.llms.first_token import TOP
from crag_core.llms.model import CallLimit, ServerModel
from crag_core.llms.reply_errors import explain_call, note_reply
from crag_core.llms.servers import MOST_MODELS, ServerState, is_name, ollama_url, shown, too_many

VERSION_SIGNS = 12  # of the digest, as `ollama list` shows them
LOOKING = 3.0
"""Seconds in which a server must list its models."""
SHOWING = 1.0
"""Seconds in which it is asked what each of them can do; who has not said so by then is asked at the next look."""
_SHOWN_AT_ONCE = 8
_GLANCE = 0.5  # seconds for what is loaded
_CHECK = "Check OLLAMA_HOST: scheme, host and port, such as http://localhost:11434."
_START = "Start it with: ollama serve"
_LONGEST = 300  # characters of what the server says of a failure
LOADING = 5
"""Before its first piece a reply is waited for so many times as long as for a further one: the server may load the
model, or serve others."""
PATIENCE = 10
"""A reply may take so many times what is waited for one piece of it: slow machines write slowly, but not for ever."""
_WRITES: dict[tuple[str, str, str], bool | None] = {}
"""Whether a model, by server, name and digest, is one that writes; None: its server does not say so."""

_CHATS: dict[tuple[str, str, str], bool] = {}
"""Whether it has a template for chats, as base models do not."""
_NO_CHAT = "{{ .Prompt }}"


def chats(host: str, name: str) -> bool:
    """Whether a model can chat, as far as the last look at its server told."""
    return all(can for (of, model, _), can in _CHATS.items() if of == host and model in (name, f"{name}:latest"))


def _bounds(host: str, limit: int, seconds: float) -> dict[str, Any]:
    """As always; and OLLAMA_API_KEY, which the client sends to anybody, only for the host of OLLAMA_HOST.

    A name and password in `host` are sent too, which the client leaves out.
    """
    import httpx

    from crag_core.base.network import http_guard

    async def keep_key(request: httpx.Request) -> None:
        own = httpx.URL(ollama_url(os.environ.get("OLLAMA_HOST", "").strip())).host
        key = os.environ.get("OLLAMA_API_KEY")
        if key and request.url.host != own and request.headers.get("authorization") == f"Bearer {key}":
            del request.headers["authorization"]

    bounds = http_guard.hooks(limit, seconds)
    bounds["event_hooks"]["request"].append(keep_key)
    return bounds | {"auth": without_login(host)[1]}


def list_models(host: str, timeout: float = 2.0) -> ServerState:
    """Ask the server for its models; never raises for a server that is away."""
    import httpx
    from ollama import ResponseError

    from crag_core.base.network import http_guard

    called = shown(host)
    try:
        listed, chat_models = run(_look(host, timeout))
    except http_guard.NotAsked as error:
        return ServerState(False, (), f"What answers at {called} {error}.", _CHECK)
    except (ConnectionError, OSError, httpx.HTTPError, httpx.InvalidURL):  # a TimeoutError is an OSError
        return ServerState(False, (), f"Ollama does not answer at {called}.", _START)
    except (ResponseError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return ServerState(False, (), f"What answers at {called} is not Ollama.", _CHECK)
    if not listed:
        return ServerState(True, (), f"Ollama at {called} has no model yet.", "Get one with: ollama pull llama3.2")
    versions = tuple((item.model, item.digest[:VERSION_SIGNS]) for item in listed if item.model and item.digest)
    if not chat_models:
        none = f"Ollama at {called} has no model that writes."
        return ServerState(True, (), none, "Get one with: ollama pull llama3.2", versions=versions)
    chosen, more = chat_models[:MOST_MODELS], too_many(called, len(chat_models))
    return ServerState(True, chosen, more, versions=versions)


async def _look(host: str, timeout: float) -> tuple[Sequence[Any], tuple[str, ...]]:
    """What the server lists, and the names of those that write; `TimeoutError` after `LOOKING` seconds in all."""
    from ollama import AsyncClient

    from crag_core.base.network import http_guard

    bounds = _bounds(host, http_guard.LARGEST_LIST, LOOKING)
    async with AsyncClient(host=host, timeout=timeout, **bounds) as client:
        async with asyncio.timeout(LOOKING):
            listed = await _list(host, timeout)
        room = asyncio.Semaphore(_SHOWN_AT_ONCE)

        async def show(item: Any, key: tuple[str, str, str]) -> None:
            with suppress(Exception):  # the list stands without it, and so does a reply of another shape
                async with room:
                    about = await client.show(item.model)
                can = about.capabilities
                _CHATS[key] = (about.template or "").strip() != _NO_CHAT
                _WRITES[key] = None if can is None else "completion" in can

        keys = [(host, item.model, item.digest or "") for item in listed]
        new = [show(item, key) for item, key in zip(listed, keys, strict=True) if key not in _WRITES]
        with suppress(TimeoutError):
            async with asyncio.timeout(SHOWING):
                await asyncio.gather(*new)
    writers = [(item.model, key) for item, key in zip(listed, keys, strict=True) if _writes(item, key)]
    writers.sort(key=lambda pair: not _CHATS.get(pair[1], True))  # the first is the default
    return listed, tuple(name for name, _ in writers)


async def _list(host: str, timeout: float) -> list[Any]:
    """The sound entries of its list, each model once; Ollama's own client refuses a list for one that is not."""
    import httpx
    from ollama import ListResponse

    from crag_core.base.network import http_guard

    key = os.environ.get("OLLAMA_API_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    bounds = _bounds(host, http_guard.LARGEST_LIST, LOOKING)
    async with httpx.AsyncClient(headers=headers, timeout=timeout, **bounds) as client:
        reply = await client.get(f"{without_login(host)[0].rstrip('/')}/api/tags")
    entries = reply.json()["models"] if reply.status_code == 200 else None
    if not isinstance(entries, list):
        raise ValueError("expected a list of models, found something else")
    found: dict[str, Any] = {}
    for entry in entries:
        with suppress(ValueError):
            item = ListResponse.Model.model_validate(entry)
            if is_name(item.model):
                found.setdefault(item.model, item)
    if entries and not found:
        raise ValueError("expected models with names, found none")
    return list(found.values())


def _writes(item: Any, key: tuple[str, str, str]) -> bool:
    """Older servers say nothing of what a model can do: then its family tells, and in doubt it can write."""
    said = _WRITES.get(key)
    return "bert" not in ((item.details and item.details.family) or "") if said is None else said


def list_loaded(host: str) -> tuple[str, ...] | None:
    """The models that the server has in its memory, or begins to load, in full; None: it does not say so."""
    from ollama import AsyncClient

    from crag_core.base.network import http_guard

    async def ask() -> tuple[str, ...]:
        bounds = _bounds(host, http_guard.LARGEST_LIST, _GLANCE)
        async with asyncio.timeout(_GLANCE), AsyncClient(host=host, timeout=_GLANCE, **bounds) as client:
            return tuple(one.model or one.name or "" for one in (await client.ps()).models)

    try:
        return run(ask())
    except Exception:  # only the page's words depend on it
        return None


def model(host: str, name: str, timeout: float, limit: CallLimit) -> ServerModel:
    """A chat model of the server at `host`; `timeout` in seconds of silence in a reply; CPUs are slow."""
    import_llama_index()
    import httpx
    from llama_index.llms import ollama as of_llama_index
    from ollama import AsyncClient

    from crag_core.base.network import http_guard

    waits = Timeouts(LOADING * timeout, timeout, PATIENCE * timeout)
    bounds = _bounds(host, http_guard.LARGEST_REPLY, waits.total)
    bounds["event_hooks"]["response"].append(note_reply)
    # How long a reply may be silent is watched where its pieces are read.
    server = AsyncClient(host=host, timeout=httpx.Timeout(timeout, read=None), **bounds)
    capacity = capacity_of(host, name)

    class Ollama(of_llama_index.Ollama):  # spans are called after it
        def get_context_window(self) -> int:
            return capacity.wanted

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
            options={"temperature": 0.0, "num_ctx": capacity.wanted, "num_predict": 1},
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

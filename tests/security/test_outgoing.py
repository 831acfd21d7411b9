"""Server-side request forgery and endless replies, at the moment of asking: what every client keeps to."""

from __future__ import annotations

import gzip
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from crag_core.base.errors import CragError, ModelUnavailable
from crag_core.base.network import http_guard
from crag_core.base.network.http_guard import NotAsked
from crag_core.base.protocols import Cancel
from crag_core.base.types.web import WebOutcome
from crag_core.llms import client, ollama, openai_compatible
from crag_core.llms.model import CallLimit, ServerModel
from crag_core.websearch.duckduckgo import DuckDuckGo
from crag_core.websearch.searxng import SearXNG
from tests.security.servers import Asked, Said, answering
from tests.stand_ins.duckduckgo_server import search_url_at

MESSAGES = (("system", "Answer."), ("user", "How much?"))
MODELS: dict[str, Callable[[str], ServerModel]] = {
    "ollama": lambda url: ollama.model(url, "m", 5, CallLimit(2)),
    "openai": lambda url: openai_compatible.model(f"{url}/v1", "m", "key", 5, CallLimit(2)),
}
LOOKS: dict[str, Callable[[str], Any]] = {
    "ollama": lambda url: ollama.list_models(url),
    "openai": lambda url: openai_compatible.list_models(f"{url}/v1", "key"),
}


def stream(model: ServerModel, cancel: Cancel) -> list[object]:
    return list(model.stream(MESSAGES, cancel))


CALLS: dict[str, Callable[[ServerModel, Cancel], object]] = {
    "whole": lambda model, cancel: model.complete(MESSAGES, cancel),
    "stream": stream,
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
every_look = pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are looked up here, as on a machine without a proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def resolve(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Every name leads to this address; nothing is sent, since a connection would be refused by the tests' guard."""
    monkeypatch.setattr(http_guard, "_look_up", lambda host: [address])


# --- names that lead to a forbidden address -------------------------------------------------------------------------


@every_call
@every_model
def test_no_model_is_asked_at_a_name_that_leads_to_metadata(
    make: Callable[[str], ServerModel],
    call: Callable[[ServerModel, Cancel], object],
    no_proxy: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve(monkeypatch, "169.254.169.254")
    with pytest.raises(ModelUnavailable, match=r"was not asked, since 169\.254\.169\.254"):
        call(make("http://innocent.example:11434"), threading.Event())


def test_no_search_is_sent_there_either(no_proxy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, "fe80::1")
    reply = SearXNG("http://innocent.example").search("ferry", 3, threading.Event())
    assert reply.outcome is WebOutcome.FAILED and "was not asked" in reply.message


def test_a_name_that_changes_its_address_after_the_look_up_is_found_by_the_connection() -> None:
    class Stream:
        def get_extra_info(self, name: str) -> object:
            return ("169.254.169.254", 80) if name == "server_addr" else None

    with pytest.raises(NotAsked, match="169"):
        http_guard.check_peer(httpx.Response(200, extensions={"network_stream": Stream()}))


# --- redirects ------------------------------------------------------------------------------------------------------


@pytest.fixture
def target() -> Iterator[Asked]:
    """Where nobody may be led."""
    with answering(lambda path: Said(pieces=lambda: [b"{}"])) as server:
        yield server


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@every_call
@every_model
def test_no_model_call_follows_a_redirect(
    make: Callable[[str], ServerModel], call: Callable[[ServerModel, Cancel], object], status: int, target: Asked
) -> None:
    with (
        answering(lambda path: Said(status, {"location": f"{target.url}/latest/meta-data"})) as server,
        pytest.raises(ModelUnavailable, match="not followed"),
    ):
        call(make(server.url), threading.Event())
    asked = [path for path in server.paths if path != "/api/show"]  # what the model reads is looked up before
    assert len(asked) == 1 and target.paths == []


@every_look
def test_no_look_at_the_models_follows_a_redirect(look: Callable[[str], Any], target: Asked) -> None:
    with answering(lambda path: Said(302, {"location": f"{target.url}/latest"})) as server:
        state = look(server.url)
    assert not state.reachable and "not followed" in state.message and target.paths == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nor_does_one_of_duckduckgo(status: int, target: Asked) -> None:
    """The client of `ddgs` follows redirects by itself, to any address."""
    with answering(lambda path: Said(status, {"location": f"{target.url}/latest"})) as server, search_url_at(server):
        reply = DuckDuckGo().search("ferry", 3, threading.Event())
    assert reply.outcome is WebOutcome.FAILED and f"HTTP {status}" in reply.message
    assert server.paths == ["/html/"] and target.paths == []


# --- replies without end --------------------------------------------------------------------------------------------

BLOCK = b" " * 100_000


def endless() -> Iterator[bytes]:
    return itertools.repeat(BLOCK)


@every_look
def test_a_list_of_models_without_end_is_given_up(look: Callable[[str], Any]) -> None:
    with answering(lambda path: Said(pieces=endless)) as server:
        state = look(server.url)
    assert not state.reachable and "more than 5 MB" in state.message


@every_call
@every_model
def test_a_reply_of_a_model_without_end_is_given_up(
    make: Callable[[str], ServerModel], call: Callable[[ServerModel, Cancel], object]
) -> None:
    with (
        answering(lambda path: Said(pieces=endless)) as server,
        pytest.raises(ModelUnavailable, match="more than 20 MB"),
    ):
        call(make(server.url), threading.Event())


@every_look
def test_a_packed_list_is_not_unpacked(look: Callable[[str], Any]) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    with answering(lambda path: Said(headers={"content-encoding": "gzip"}, pieces=lambda: [bomb])) as server:
        state = look(server.url)
    assert not state.reachable and "packing" in state.message
    assert server.headers[0]["accept-encoding"] == "identity"


def drip() -> Iterator[bytes]:
    pause = threading.Event()
    while not pause.wait(0.02):
        yield b" "


@every_model
def test_a_reply_that_drips_ends_after_its_time(
    make: Callable[[str], ServerModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PATIENCE", 0.04)  # times 5 s
    for call in CALLS.values():
        with answering(lambda path: Said(pieces=drip)) as server, pytest.raises(CragError):
            call(make(server.url), threading.Event())


def test_a_packed_page_of_duckduckgo_is_not_unpacked_beyond_that() -> None:
    bomb = gzip.compress(b" " * 300_000_000)
    said = Said(headers={"content-encoding": "gzip", "content-type": "text/html"}, pieces=lambda: [bomb])
    with answering(lambda path: said) as server, search_url_at(server):
        reply = DuckDuckGo().search("ferry", 3, threading.Event())
    assert reply.outcome is WebOutcome.FAILED and "more than 2 MB" in reply.message

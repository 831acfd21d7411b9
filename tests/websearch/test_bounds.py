"""What holds for every provider asked by HTTP: bounded in time and size, stopped at once, sent nowhere else."""

from __future__ import annotations

import gzip
import threading
import tracemalloc
from collections.abc import Iterator

import pytest

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel, WebReply, WebSearcher
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.http import LARGEST_REPLY
from crag_core.websearch.searxng import SearXNG
from crag_core.websearch.tavily import Tavily
from tests.fakes import set_when
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.json_server import JsonServer, Mishaps, Said
from tests.stand_ins.searxng_server import SearXNGServer
from tests.stand_ins.tavily_server import KEY, TavilyServer

FOUND = [WebResult(f"Page {n}", f"https://example.org/{n}", f"Snippet {n}.") for n in range(1, 8)]


@pytest.fixture(params=[SearXNGServer, TavilyServer])
def server(request: pytest.FixtureRequest) -> Iterator[JsonServer]:
    with request.param(FOUND) as server:
        yield server


def searcher_of(server: JsonServer, timeout: float = 5.0) -> WebSearcher:
    if isinstance(server, TavilyServer):
        return Tavily(KEY, timeout, server.address)
    return SearXNG(server.url, timeout)


def search(server: JsonServer, timeout: float = 5.0, cancel: Cancel | None = None) -> WebReply:
    return searcher_of(server, timeout).search("alan turing", 5, cancel or threading.Event())


# --- time -----------------------------------------------------------------------------------------------------------


def test_silent_server_times_out_with_its_seconds(server: JsonServer) -> None:
    server.mishaps = Mishaps(delay_s=30.0)
    reply = search(server, 1.0)
    assert reply.outcome is WebOutcome.TIMED_OUT
    assert reply.message == f"{reply.provider} did not answer within 1 s."
    assert server.wait_for_disconnects(), "nothing goes on behind the user's back"


def test_dripping_bytes_do_not_stretch_the_time(server: JsonServer) -> None:
    server.mishaps = Mishaps(drip_s=0.02)
    reply = search(server, 0.5)
    assert reply.outcome is WebOutcome.TIMED_OUT
    assert server.bytes_sent > 5, "it was dripping all the time"


# --- stopping -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mishaps", [Mishaps(delay_s=30.0), Mishaps(drip_s=0.02)], ids=["silent", "dripping"])
def test_cancel_lets_go_at_once_and_closes_the_connection(server: JsonServer, mishaps: Mishaps) -> None:
    server.mishaps = mishaps
    with pytest.raises(Stopped):
        search(server, 20.0, set_when(lambda: bool(server.heard)))
    assert server.wait_for_disconnects()
    assert len(server.heard) == 1


# --- size -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 500])
def test_endless_answer_is_given_up_at_its_bound(server: JsonServer, status: int) -> None:
    server.mishaps = Mishaps(said=Said(b" " * 65_536, status), is_endless=True)
    reply = search(server, 20.0)
    assert reply.outcome is WebOutcome.FAILED
    assert "more than 2 MB" in reply.message
    assert server.wait_for_disconnects()
    assert server.bytes_sent < 10 * LARGEST_REPLY, "what the sockets hold comes on top"


def test_packed_answer_is_refused_and_not_unpacked(server: JsonServer) -> None:
    bomb = gzip.compress(b" " * 40_000_000)
    assert len(bomb) < 60_000, "it comes in one piece"
    server.mishaps = Mishaps(said=Said(bomb, headers={"content-encoding": "gzip"}))
    tracemalloc.start()
    reply = search(server, 20.0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reply.outcome is WebOutcome.FAILED and "not asked for" in reply.message
    assert server.heard[0].headers["accept-encoding"] == "identity"
    assert most < 10 * LARGEST_REPLY


# --- connections ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_told_and_not_followed(server: JsonServer, status: int) -> None:
    with SearXNGServer(FOUND) as elsewhere:
        headers = {"location": f"{elsewhere.url}/search?format=json&pageno=1"}
        server.mishaps = Mishaps(said=Said(b"", status, headers=headers))
        reply = search(server)
        assert reply.outcome is WebOutcome.FAILED
        assert "sends requests on to another address, which is not followed" in reply.message
        assert (len(server.heard), elsewhere.heard) == (1, [])


def test_refused_connection_is_a_failure_until_the_server_is_back(server: JsonServer) -> None:
    server.stop()
    searcher = searcher_of(server)
    reply = searcher.search("alan turing", 5, threading.Event())
    assert reply.outcome is WebOutcome.FAILED
    assert f"could not be reached at {server.url.removeprefix('http://')}" in reply.message
    server.start()
    assert searcher.search("alan turing", 5, threading.Event()).outcome is WebOutcome.USED


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:port", "socks5://127.0.0.1:1", "nonsense://127.0.0.1"])
def test_unusable_proxy_of_the_environment_is_a_failure(
    server: JsonServer, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("HTTP_PROXY", proxy)
    reply = search(server)
    assert reply.outcome is WebOutcome.FAILED
    assert "the proxy set in the environment" in reply.message

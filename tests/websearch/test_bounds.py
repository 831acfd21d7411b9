"""What holds for every provider asked by HTTP: bounded in time and size, stopped at once, sent nowhere else."""

from __future__ import annotations

import gzip
import json
import threading
import time
import tracemalloc
from collections.abc import Iterator

import pytest

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel, WebReply, WebSearcher
from crag_core.base.types.web import WebOutcome
from crag_core.websearch import PROVIDERS
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


def test_healthy_server_is_asked_once_and_by_the_name_of_this_program(server: JsonServer) -> None:
    assert len(search(server).passages) == 5
    assert [heard.headers["user-agent"] for heard in server.heard] == ["CRAG-Explorer"]


# --- time -----------------------------------------------------------------------------------------------------------


def test_silent_server_times_out_with_its_seconds(server: JsonServer) -> None:
    server.mishaps = Mishaps(delay_s=30.0)
    reply = search(server, 0.3)
    assert reply.outcome is WebOutcome.TIMED_OUT
    assert reply.message == f"{reply.provider} did not answer within 0.3 s."
    assert server.wait_for_disconnects(), "nothing goes on behind the user's back"


def test_dripping_bytes_do_not_stretch_the_time(server: JsonServer) -> None:
    server.mishaps = Mishaps(drip_s=0.02)
    start = time.monotonic()
    reply = search(server, 0.5)
    assert reply.outcome is WebOutcome.TIMED_OUT
    assert 0.4 < time.monotonic() - start < 3.0
    assert server.bytes_sent > 5, "it was dripping all the time"


def test_slow_server_within_the_time_is_waited_for(server: JsonServer) -> None:
    server.mishaps = Mishaps(delay_s=0.2)
    assert search(server).outcome is WebOutcome.USED


# --- stopping -------------------------------------------------------------------------------------------------------


class AnyFlag(threading.Event):
    """A flag of flags, as a run may bring: only `is_set` and `wait` are there to be used."""

    def __init__(self, inner: threading.Event) -> None:
        super().__init__()
        self.inner = inner

    def is_set(self) -> bool:
        return self.inner.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        return self.inner.wait(timeout)


@pytest.mark.parametrize("mishaps", [Mishaps(delay_s=30.0), Mishaps(drip_s=0.02)], ids=["silent", "dripping"])
def test_cancel_lets_go_at_once_and_closes_the_connection(server: JsonServer, mishaps: Mishaps) -> None:
    server.mishaps = mishaps
    set_at: list[float] = []

    def is_time() -> bool:
        if server.heard and not set_at:
            set_at.append(time.monotonic())
        return bool(set_at)

    with pytest.raises(Stopped):
        search(server, 20.0, AnyFlag(set_when(is_time)))
    assert time.monotonic() - set_at[0] < 1.0
    assert server.wait_for_disconnects()
    assert len(server.heard) == 1


def test_cancelled_search_asks_nobody(server: JsonServer) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Stopped):
        search(server, cancel=cancel)
    assert server.heard == []


def test_searches_at_once_do_not_hold_each_other_up(server: JsonServer) -> None:
    server.mishaps = Mishaps(delay_s=0.4)
    replies: list[WebReply] = []
    threads = [threading.Thread(target=lambda: replies.append(search(server))) for _ in range(8)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [reply.outcome for reply in replies] == [WebOutcome.USED] * 8
    assert time.monotonic() - start < 8 * 0.4


# --- size -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 500])
def test_endless_answer_is_given_up_at_its_bound(server: JsonServer, status: int) -> None:
    server.mishaps = Mishaps(said=Said(b" " * 65_536, status), is_endless=True)
    reply = search(server, 20.0)
    assert reply.outcome is WebOutcome.FAILED
    assert "more than 2 MB" in reply.message
    assert server.wait_for_disconnects()
    assert server.bytes_sent < 10 * LARGEST_REPLY, "what the sockets hold comes on top"


def test_answer_just_within_the_bound_is_read(server: JsonServer) -> None:
    body = json.dumps({"results": [{"url": "https://example.org/", "title": "T", "content": "C"}]}).encode()
    server.mishaps = Mishaps(said=Said(body.ljust(LARGEST_REPLY)))
    assert search(server).outcome is WebOutcome.USED
    server.mishaps = Mishaps(said=Said(body.ljust(LARGEST_REPLY + 1)))
    assert search(server).outcome is WebOutcome.FAILED


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
        assert elsewhere.url in reply.message and "not followed" in reply.message
        assert (len(server.heard), elsewhere.heard) == (1, [])


@pytest.mark.parametrize("target", ["javascript:alert(1)", "https://[::1", "//", "data:text/html,x", "ftp://h/", ""])
def test_redirect_to_no_web_address_is_a_failure(server: JsonServer, target: str) -> None:
    server.mishaps = Mishaps(said=Said(b"", 302, headers={"location": target}))
    reply = search(server)
    assert reply.outcome is WebOutcome.FAILED
    assert "not followed" in reply.message
    assert "alert" not in reply.message
    assert len(server.heard) == 1


def test_relative_redirect_is_shown_whole(server: JsonServer) -> None:
    server.mishaps = Mishaps(said=Said(b"", 302, headers={"location": "/login"}))
    assert f"{server.url}/login" in search(server).message


def test_connection_closed_in_the_middle_is_a_failure(server: JsonServer) -> None:
    server.mishaps = Mishaps(is_cut=True)
    reply = search(server)
    assert reply.outcome is WebOutcome.FAILED
    assert "could not be asked (" in reply.message
    assert len(server.heard) == 1


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


# --- the table ------------------------------------------------------------------------------------------------------


def test_providers_are_listed_by_name_in_their_order() -> None:
    assert list(PROVIDERS) == ["duckduckgo", "searxng", "tavily", "snapshot"]
    assert [provider.name for provider in PROVIDERS.values()] == ["DuckDuckGo", "SearXNG", "Tavily", "Offline web"]

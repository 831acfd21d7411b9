"""DuckDuckGo through the real `ddgs` engine against a page of our own: every outcome told apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from crag_core.base.errors import Stopped
from crag_core.base.types.passages import Origin
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.duckduckgo import DuckDuckGo
from tests.fakes import set_when
from tests.stand_ins.duckduckgo_server import BROKEN_PAGE, DuckDuckGoServer, WebResult

FOUND = [
    WebResult("Alan Turing", "https://example.org/turing?a=1&b=2", "Born in 1912 & <raised> in England."),
    WebResult("Advertisement", "https://duckduckgo.com/y.js?ad=1", "Buy now."),
    WebResult("Enigma", "http://example.org/enigma", "A machine."),
    WebResult("Bombe", "https://example.org/bombe", "Another machine."),
]


@pytest.fixture
def server() -> Iterator[DuckDuckGoServer]:
    with DuckDuckGoServer(FOUND) as server:
        yield server


def searcher(timeout: float = 5.0) -> DuckDuckGo:
    return DuckDuckGo(timeout)


def no_cancel() -> threading.Event:
    return threading.Event()


def test_results_become_web_passages_in_their_order(server: DuckDuckGoServer) -> None:
    reply = searcher().search("alan turing", 5, no_cancel())
    assert (reply.outcome, reply.provider, reply.from_cache) == (WebOutcome.USED, "DuckDuckGo", False)
    assert [passage.source for passage in reply.passages] == ["Alan Turing", "Enigma", "Bombe"]
    first = reply.passages[0]
    assert first.url == FOUND[0].url
    assert first.text == "Born in 1912 & in England.", "ddgs takes out what looks like a tag"
    assert (first.origin, first.found_by) == (Origin.WEB, ("web",))
    assert first.scores == (), "DuckDuckGo gives none"
    assert len({passage.id for passage in reply.passages}) == 3
    assert server.queries == ["alan turing"]


def test_result_without_text_or_title_is_named_by_its_host(server: DuckDuckGoServer) -> None:
    server.results = [
        WebResult("", "https://example.org/x", "Some text."),
        WebResult("A title", "https://example.org/y", ""),
    ]
    first, second = searcher().search("alan turing", 5, no_cancel()).passages
    assert first.source == "example.org"
    assert second.text == "A title"


@pytest.mark.parametrize("status", [202, 403, 429])
def test_rate_limit_is_told(server: DuckDuckGoServer, status: int) -> None:
    server.status = status
    reply = searcher().search("alan turing", 5, no_cancel())
    assert reply.outcome is WebOutcome.RATE_LIMITED
    assert "try again in a minute" in reply.message
    assert server.queries == ["alan turing"]


@pytest.mark.parametrize("status", [404, 500, 503])
def test_other_refusal_is_a_failure_not_a_rate_limit(server: DuckDuckGoServer, status: int) -> None:
    server.status = status
    reply = searcher().search("alan turing", 5, no_cancel())
    assert reply.outcome is WebOutcome.FAILED
    assert f"HTTP {status}" in reply.message
    assert len(server.queries) == 1


def test_time_out_is_told_with_its_seconds(server: DuckDuckGoServer) -> None:
    server.delay_s = 5.0
    reply = searcher(timeout=0.2).search("alan turing", 5, no_cancel())
    assert (reply.outcome, reply.message) == (WebOutcome.TIMED_OUT, "DuckDuckGo did not answer within 0.2 s.")


@pytest.mark.parametrize("page", [BROKEN_PAGE, "", "   ", "\x00", "<!-- -->", "{}"], ids=repr)
def test_broken_or_blank_page_brings_nothing_and_raises_nothing(server: DuckDuckGoServer, page: str) -> None:
    server.page = page
    reply = searcher().search("alan turing", 5, no_cancel())
    assert reply.outcome in (WebOutcome.EMPTY, WebOutcome.FAILED)
    assert reply.passages == () and reply.message


def test_cancel_during_a_request_lets_go_at_once(server: DuckDuckGoServer) -> None:
    server.delay_s = 8.0
    cancel = set_when(lambda: bool(server.queries))
    with pytest.raises(Stopped):
        searcher().search("alan turing", 5, cancel)

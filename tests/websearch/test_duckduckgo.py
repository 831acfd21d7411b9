"""DuckDuckGo through the real `ddgs` engine against a page of our own: every outcome told apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from crag_core.base.errors import Stopped
from crag_core.base.protocols import WebReply
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


def search(timeout: float = 5.0) -> WebReply:
    return DuckDuckGo(timeout).search("alan turing", 5, threading.Event())


def test_results_become_web_passages_in_their_order(server: DuckDuckGoServer) -> None:
    reply = search()
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
    first, second = search().passages
    assert first.source == "example.org"
    assert second.text == "A title"


@pytest.mark.parametrize(
    ("status", "outcome", "told"),
    [
        *((status, WebOutcome.RATE_LIMITED, "try again in a minute") for status in (202, 403, 429)),
        *((status, WebOutcome.FAILED, f"HTTP {status}") for status in (404, 500, 503)),
    ],
)
def test_a_rate_limit_and_another_refusal_are_told_apart(
    server: DuckDuckGoServer, status: int, outcome: WebOutcome, told: str
) -> None:
    server.status = status
    reply = search()
    assert reply.outcome is outcome and told in reply.message
    assert server.queries == ["alan turing"]


def test_time_out_is_told_with_its_seconds(server: DuckDuckGoServer) -> None:
    server.delay_s = 5.0
    reply = search(0.2)
    assert (reply.outcome, reply.message) == (WebOutcome.TIMED_OUT, "DuckDuckGo did not answer within 0.2 s.")


@pytest.mark.parametrize("page", [BROKEN_PAGE, "", "   ", "\x00", "<!-- -->", "{}"], ids=repr)
def test_broken_or_blank_page_brings_nothing_and_raises_nothing(server: DuckDuckGoServer, page: str) -> None:
    server.page = page
    reply = search()
    assert reply.outcome in (WebOutcome.EMPTY, WebOutcome.FAILED)
    assert reply.passages == () and reply.message


def test_cancel_during_a_request_lets_go_at_once(server: DuckDuckGoServer) -> None:
    server.delay_s = 8.0
    cancel = set_when(lambda: bool(server.queries))
    with pytest.raises(Stopped):
        DuckDuckGo().search("alan turing", 5, cancel)

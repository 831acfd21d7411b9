"""Tavily: what is sent, what comes of each status, and that the key is seen by nobody but the server."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.protocols import WebReply
from crag_core.base.serialization import to_plain
from crag_core.base.types.passages import Origin
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.search_chain import SearchChain
from crag_core.websearch.tavily import Tavily
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.json_server import Mishaps, Said
from tests.stand_ins.tavily_server import KEY, TavilyServer

FOUND = [WebResult(f"Page {n}", f"https://example.org/{n}", f"Snippet {n}.") for n in range(1, 31)]


@pytest.fixture
def server() -> Iterator[TavilyServer]:
    with TavilyServer(FOUND) as server:
        yield server


def search(server: TavilyServer, limit: int = 5, query: str = "alan turing") -> WebReply:
    return Tavily(KEY, 5.0, server.address).search(query, limit, threading.Event())


def test_results_become_web_passages_in_their_order(server: TavilyServer) -> None:
    reply = search(server)
    assert (reply.outcome, reply.provider, reply.message) == (WebOutcome.USED, "Tavily", "")
    assert [passage.source for passage in reply.passages] == [f"Page {n}" for n in range(1, 6)]
    first = reply.passages[0]
    assert (first.text, first.url) == ("Snippet 1.", "https://example.org/1")
    assert (first.origin, first.found_by) == (Origin.WEB, ("web",))
    assert [passage.scores for passage in reply.passages] == [(("provider", 0.9),)] * 5
    assert [heard.body for heard in server.heard] == [{"query": "alan turing", "max_results": 5}]
    assert server.heard[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(("limit", "asked"), [(1, 1), (20, 20), (50, 20)])
def test_no_more_is_asked_for_than_tavily_gives(server: TavilyServer, limit: int, asked: int) -> None:
    assert len(search(server, limit).passages) == asked
    assert [heard.body["max_results"] for heard in server.heard] == [asked]


@pytest.mark.parametrize("score", [None, "0.9", True, [0.9], float("nan"), float("inf"), 10**400], ids=str)
def test_a_score_that_is_no_number_is_left_out(server: TavilyServer, score: object) -> None:
    results = [{"url": "https://example.org/1", "title": "Page 1", "content": "Snippet 1.", "score": score}]
    server.mishaps = Mishaps(said=Said(json.dumps({"results": results}).encode()))
    assert [passage.scores for passage in search(server).passages] == [()]


@pytest.mark.parametrize(
    ("status", "outcome", "told"),
    [
        (401, WebOutcome.FAILED, ("the key was refused", "HTTP 401: Unauthorized", "TAVILY_API_KEY")),
        (403, WebOutcome.FAILED, ("the key was refused", "HTTP 403", "TAVILY_API_KEY")),
        (429, WebOutcome.RATE_LIMITED, ("limiting the rate of requests", "try again in a minute")),
        (432, WebOutcome.FAILED, ("limit of the plan", "HTTP 432: This request exceeds your plan", "app.tavily.com")),
        (433, WebOutcome.FAILED, ("limit of the plan", "HTTP 433: This request exceeds the pay-as-you-go",)),
        (400, WebOutcome.FAILED, ("HTTP 400: Invalid topic",)),
        (500, WebOutcome.FAILED, ("HTTP 500: Internal Server Error",)),
    ],
)  # fmt: skip
def test_each_refusal_is_told_apart(
    server: TavilyServer, status: int, outcome: WebOutcome, told: tuple[str, ...]
) -> None:
    server.status = status
    reply = search(server)
    assert (reply.outcome, reply.passages, len(server.heard)) == (outcome, (), 1)
    for words in told:
        assert words in reply.message


# --- the key --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["", "  ", "tvly key", "tvly-ä", "tvly-\nx", "“tvly-x”", "tvly\x00", "Bearer tvly-x", "="]
)
def test_text_that_can_be_no_key_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(BadRecord, match="TAVILY_API_KEY: expected a key such as tvly-…") as refused:
        Tavily(key)
    assert not key.strip(" =") or key not in str(refused.value)


def troubles(server: TavilyServer) -> Iterator[WebReply]:
    """A reply from each kind of trouble, with a server that writes the key into whatever it says."""
    server.repeats_key = True
    for status in (200, 400, 401, 403, 429, 432, 433, 500):
        server.status = status
        yield search(server)
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in KEY)
    for said in (
        Said(f'{{"detail": {{"error": "bad key {escaped}"}}}}'.encode(), 401),
        Said(f'{{"results": [{{"url": "https://e.org/{escaped}", "title": "{escaped}"}}]}}'.encode()),
        Said({"error": ["x" * 150 + KEY]}, 500),
        Said(b"", 302, headers={"location": f"https://example.org/{'x' * 120}{KEY}"}),
        Said(b"", 302, headers={"location": f"https://[{KEY}"}),
        Said(b"x", headers={"content-encoding": KEY}),
    ):
        server.mishaps = Mishaps(said=said)
        yield search(server)
    server.mishaps = Mishaps(is_cut=True)
    yield search(server)
    server.stop()
    yield search(server)


def test_key_is_in_no_reply_and_no_log(server: TavilyServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    replies = list(troubles(server))
    assert sum(reply.outcome is WebOutcome.USED for reply in replies) == 2
    assert len(server.heard) >= 14 and "[key]" in replies[2].message
    assert "HTTP Request: POST" in caplog.text and "send_request_headers" in caplog.text, "the logs were on"
    recorded = json.dumps([to_plain(reply) for reply in replies], ensure_ascii=False)
    # What a server writes into its headers, the client's own DEBUG log repeats; this program has no hand in it.
    said_by_server = [record for record in caplog.records if "receive_response_headers" in record.getMessage()]
    logged = "\n".join(record.getMessage() for record in caplog.records if record not in said_by_server)
    for shown in (recorded, logged, repr(replies)):
        for length in (len(KEY), 12):
            assert KEY[:length] not in shown


def test_key_is_in_no_face_of_its_objects() -> None:
    searcher = Tavily(KEY)
    shown = [repr(searcher), str(searcher), searcher.name, repr(SearchChain([searcher])), SearchChain([searcher]).name]
    assert not any(KEY in text for text in [*shown, repr(searcher._server)])

"""SearXNG through its JSON format: pages, what stands in a result, and every way in which an instance says no."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from crag_core.base.protocols import WebReply
from crag_core.base.types.passages import Origin
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.searxng import SearXNG
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.json_server import Mishaps, Said
from tests.stand_ins.searxng_server import FORBIDDEN, SEARCH_ERROR, TOO_MANY, SearXNGServer

FOUND = [WebResult(f"Page {n}", f"https://example.org/{n}", f"Snippet {n}.") for n in range(1, 26)]


@pytest.fixture
def server() -> Iterator[SearXNGServer]:
    with SearXNGServer(FOUND) as server:
        yield server


def search(server: SearXNGServer, limit: int = 5, query: str = "alan turing") -> WebReply:
    return SearXNG(server.url, 5.0).search(query, limit, threading.Event())


def test_results_become_web_passages_in_their_order(server: SearXNGServer) -> None:
    reply = search(server)
    assert (reply.outcome, reply.provider, reply.message) == (WebOutcome.USED, "SearXNG", "")
    assert [passage.source for passage in reply.passages] == [f"Page {n}" for n in range(1, 6)]
    first = reply.passages[0]
    assert (first.text, first.url) == ("Snippet 1.", "https://example.org/1")
    assert (first.origin, first.found_by) == (Origin.WEB, ("web",))
    assert first.id == first.document_id
    assert [passage.score("provider") for passage in reply.passages[:3]] == [1.0, 0.5, 1 / 3], "as the instance said it"
    assert [dict(heard.params) for heard in server.heard] == [{"q": "alan turing", "format": "json"}]


# --- what stands in a result ----------------------------------------------------------------------------------------


UGLY: dict[str, object] = {
    "no object": "https://example.org/",
    "no address": {"url": None, "title": "T", "content": "C"},
    "a script": {"url": "javascript:alert(1)", "title": "T", "content": "C"},
    "no host": {"url": "https://:80/x", "title": "T", "content": "C"},
    "neither text nor title": {"url": "https://example.org/", "title": " ", "content": None},
    "deep": {"url": [[[{"a": 1}]]], "title": {"b": []}, "content": 1e999},
}


@pytest.mark.parametrize("result", UGLY.values(), ids=UGLY)
def test_result_that_leads_nowhere_is_dropped(server: SearXNGServer, result: object) -> None:
    good = {"url": "https://example.org/good", "title": "Good", "content": "Text."}
    server.mishaps = Mishaps(said=Said({"results": [result, good]}))
    assert [passage.source for passage in search(server, 1).passages] == ["Good"]
    server.mishaps = Mishaps(said=Said({"results": [result]}))
    assert search(server).outcome is WebOutcome.EMPTY


# --- no answer ------------------------------------------------------------------------------------------------------


HTML_ONLY = ("HTTP 403", "JSON format is off", "settings.yml", "search: {formats: [html, json]}", "limiter: false")


@pytest.mark.parametrize(
    ("said", "outcome", "told"),
    [
        (FORBIDDEN, WebOutcome.FAILED, HTML_ONLY),
        (TOO_MANY, WebOutcome.RATE_LIMITED, ("try again later", "limiter: false")),
        (SEARCH_ERROR, WebOutcome.FAILED, ("HTTP 500: search error",)),
        (Said(b"<h1>Bad gateway</h1>", 502, "text/html"), WebOutcome.FAILED, ("HTTP 502)",)),
        (Said({"error": "Invalid value x for parameter pageno"}, 400), WebOutcome.FAILED, ("HTTP 400: Invalid value",)),
        (Said({"detail": [{"msg": "a\nb"}]}, 422), WebOutcome.FAILED, ("HTTP 422: a b)",)),
        (Said(b"[" * 5000, 500), WebOutcome.FAILED, ("HTTP 500)",)),
    ],
    ids=["403", "429", "500", "502", "400", "list", "deep"],
)
def test_a_refusal_is_told_with_its_words_and_what_to_do(
    server: SearXNGServer, said: Said, outcome: WebOutcome, told: tuple[str, ...]
) -> None:
    server.mishaps = Mishaps(said=said)
    reply = search(server)
    assert (reply.outcome, len(server.heard)) == (outcome, 1)
    for words in told:
        assert words in reply.message


NO_JSON: dict[str, bytes] = {
    "a page": b"<!DOCTYPE html><html></html>",
    "cut short": b'{"results": [{"url": "https://exam',
    "nothing": b"",
    "no results": b'{"query": "x"}',
    "results of another kind": b'{"results": {"url": "https://example.org/"}}',
    "deep": b'{"results": ' + b"[" * 100_000,
    "a number too long": b'{"results": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON)
def test_answer_that_is_not_its_json_is_a_failure(server: SearXNGServer, body: bytes) -> None:
    server.mishaps = Mishaps(said=Said(body))
    reply = search(server)
    assert (reply.outcome, len(server.heard)) == (WebOutcome.FAILED, 1)
    assert "not SearXNG's JSON" in reply.message and "formats: [html, json]" in reply.message


# --- its address ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "/", "//", "/search", "/search/"])
def test_instance_below_a_path_is_found(ending: str) -> None:
    with SearXNGServer(FOUND, prefix="/tools/searxng") as server:
        reply = SearXNG(f"{server.url}/tools/searxng{ending}").search("x", 5, threading.Event())
        assert (reply.outcome, len(server.heard)) == (WebOutcome.USED, 1)


def test_name_and_password_of_the_address_are_sent_and_never_shown(
    server: SearXNGServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.login = ("ann", "p@ss wörd")
    searcher = SearXNG(server.url.replace("//", "//ann:p%40ss%20w%C3%B6rd@"))
    assert searcher.search("x", 5, threading.Event()).outcome is WebOutcome.USED
    server.login = ("ann", "changed")
    refused = searcher.search("x", 5, threading.Event())
    assert refused.outcome is WebOutcome.FAILED and "HTTP 401" in refused.message
    server.stop()
    away = searcher.search("x", 5, threading.Event())
    assert away.outcome is WebOutcome.FAILED and "could not be reached at 127.0.0.1" in away.message
    assert "HTTP Request" in caplog.text
    for shown in (repr(searcher), refused.message, away.message, caplog.text):
        assert "p@ss" not in shown and "p%40ss" not in shown and "ann" not in shown

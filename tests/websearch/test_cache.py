"""The memory of web searches: what is asked once, what is asked again."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from crag_core.base.protocols import WebReply
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.search_chain import SearchChain
from tests.fakes import FakeSearcher, Hand, found_web


def cached(reply: WebReply | None = None, **options: object) -> tuple[SearchChain, FakeSearcher]:
    inner = FakeSearcher(reply or found_web())
    return SearchChain([inner], **options), inner  # type: ignore[arg-type]


def search(searcher: SearchChain, query: str = "ferry", limit: int = 5) -> WebReply:
    return searcher.search(query, limit, threading.Event())


def test_same_query_asks_once_and_says_where_it_came_from() -> None:
    searcher, inner = cached()
    first, second = search(searcher), search(searcher)
    assert len(inner.asked) == 1
    assert (first.from_cache, second.from_cache) == (False, True)
    assert replace(second, from_cache=False) == first


def test_case_and_white_space_make_no_other_query() -> None:
    searcher, inner = cached()
    for query in ("Ferry  times", "ferry times", " FERRY\ttimes "):
        search(searcher, query)
    assert inner.asked == [("Ferry  times", 5)]


@pytest.mark.parametrize("outcome", [WebOutcome.FAILED, WebOutcome.RATE_LIMITED, WebOutcome.TIMED_OUT])
def test_failures_are_not_kept(outcome: WebOutcome) -> None:
    searcher, inner = cached(WebReply(outcome, "Fake search"))
    assert not search(searcher).from_cache
    inner.reply = found_web()
    assert search(searcher).outcome is WebOutcome.USED
    assert len(inner.asked) == 2


def test_answers_expire() -> None:
    clock = Hand()
    searcher, inner = cached(seconds=60.0, clock=clock)
    search(searcher)
    clock.now += 59.9
    assert search(searcher).from_cache
    clock.now += 0.1
    assert not search(searcher).from_cache, "60 s are over, however often it was read in between"
    assert len(inner.asked) == 2


def test_size_is_bounded_and_the_oldest_goes_first() -> None:
    searcher, inner = cached(size=2)
    for query in ("a", "b", "a", "c"):
        search(searcher, query)
    assert [query for query, _ in inner.asked] == ["a", "b", "c"]
    assert search(searcher, "c").from_cache and search(searcher, "b").from_cache
    assert not search(searcher, "a").from_cache


def test_newest_answer_is_shown_for_health() -> None:
    searcher, inner = cached()
    assert searcher.last is None
    search(searcher)
    inner.reply = WebReply(WebOutcome.RATE_LIMITED, "Fake search")
    search(searcher, "other")
    assert searcher.last is not None and searcher.last.outcome is WebOutcome.RATE_LIMITED

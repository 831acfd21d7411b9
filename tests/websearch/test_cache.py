"""The memory of web searches: what is asked once, what is asked again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.search_chain import CachedSearcher
from tests.fakes import FakeSearcher, found_web, web_passage


class HandClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def cached(reply: WebReply | None = None, **options: object) -> tuple[CachedSearcher, FakeSearcher]:
    inner = FakeSearcher(reply or found_web())
    return CachedSearcher(inner, **options), inner  # type: ignore[arg-type]


def search(searcher: CachedSearcher, query: str = "ferry", limit: int = 5) -> WebReply:
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


@pytest.mark.parametrize(("query", "limit"), [("ferries", 5), ("ferry", 3)])
def test_another_query_or_limit_is_asked(query: str, limit: int) -> None:
    searcher, inner = cached()
    search(searcher)
    search(searcher, query, limit)
    assert len(inner.asked) == 2


@pytest.mark.parametrize("outcome", [WebOutcome.FAILED, WebOutcome.RATE_LIMITED, WebOutcome.TIMED_OUT])
def test_failures_are_not_kept(outcome: WebOutcome) -> None:
    searcher, inner = cached(WebReply(outcome, "Fake search"))
    assert not search(searcher).from_cache
    inner.reply = found_web()
    assert search(searcher).outcome is WebOutcome.USED
    assert len(inner.asked) == 2


def test_nothing_found_is_kept() -> None:
    searcher, inner = cached(WebReply(WebOutcome.EMPTY, "Fake search"))
    search(searcher)
    assert search(searcher).from_cache and len(inner.asked) == 1


def test_stop_is_passed_on_and_not_kept() -> None:
    searcher, inner = cached()

    def stop(query: str, limit: int, cancel: Cancel) -> WebReply:
        raise Stopped("Stopped by you.")

    original: Callable[..., WebReply] = inner.search
    inner.search = stop  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        search(searcher)
    inner.search = original  # type: ignore[method-assign]
    assert not search(searcher).from_cache


def test_answers_expire() -> None:
    clock = HandClock()
    searcher, inner = cached(seconds=60.0, clock=clock)
    search(searcher)
    clock.now += 59.9
    assert search(searcher).from_cache
    clock.now += 0.1
    assert not search(searcher).from_cache, "60 s are over, however often it was read in between"
    assert len(inner.asked) == 2


def test_clock_that_starts_at_zero_finds_nothing_by_itself() -> None:
    searcher, inner = cached(clock=lambda: 0.0)
    assert not search(searcher).from_cache and len(inner.asked) == 1


def test_size_is_bounded_and_the_longest_unused_goes_first() -> None:
    searcher, inner = cached(size=2)
    for query in ("a", "b", "a", "c"):
        search(searcher, query)
    assert [query for query, _ in inner.asked] == ["a", "b", "c"]
    assert search(searcher, "a").from_cache
    assert not search(searcher, "b").from_cache
    assert not search(searcher, "c").from_cache


def test_newest_answer_is_shown_for_health() -> None:
    searcher, inner = cached()
    assert searcher.last is None
    search(searcher)
    inner.reply = WebReply(WebOutcome.RATE_LIMITED, "Fake search")
    search(searcher, "other")
    assert searcher.last is not None and searcher.last.outcome is WebOutcome.RATE_LIMITED


def test_many_threads_get_their_own_answers() -> None:
    class Echo:
        name = "Echo"

        def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
            return WebReply(WebOutcome.USED, "Echo", (web_passage(1, query),))

    searcher = CachedSearcher(Echo(), size=8)
    queries = [f"query {n % 20}" for n in range(800)]
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda query: search(searcher, query), queries))
    assert [reply.passages[0].text for reply in replies] == queries


def test_slow_search_holds_up_nobody_else() -> None:
    going, leave = threading.Event(), threading.Event()

    class Slow:
        name = "Slow"

        def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
            if query == "slow":
                going.set()
                assert leave.wait(5.0)
            return found_web()

    searcher = CachedSearcher(Slow())
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(search, searcher, "slow")
        assert going.wait(5.0)
        assert search(searcher, "quick").outcome is WebOutcome.USED
        assert not slow.done()
        leave.set()
